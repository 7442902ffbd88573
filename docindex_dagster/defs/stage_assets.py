"""The stages of the pipeline as assets: what they make, what they promise, and what is shown of it.

What a stage does stands in `docindex_dagster.pipeline`.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import dagster as dg

from docindex_dagster.core.errors import VerificationError
from docindex_dagster.defs import metadata
from docindex_dagster.defs.failures import as_dagster_failure
from docindex_dagster.defs.io_managers import TABLES, Made
from docindex_dagster.defs.partitions import SOURCES
from docindex_dagster.pipeline.source_run import SourceRun
from docindex_dagster.pipeline.stage import CheckResult, Outcome, Product, Report, Stage
from docindex_dagster.pipeline.stages import by_name, stages
from docindex_dagster.runner.run import execute, versions

source = dg.AssetSpec(
    "source",
    description="The files themselves, outside of Dagster: a folder of documentation or a git work tree. Sensors "
    "observe them. See docs/operations.md, “How changes are noticed”.",
    group_name="discovery",
    kinds={"file", "git"},
    partitions_def=SOURCES,
)

_Event = dg.MaterializeResult[Any] | dg.AssetCheckResult


def stage_assets(left_out: Collection[Stage] = (), pools: Mapping[str, str] | None = None) -> list[dg.AssetsDefinition]:
    """The assets of all stages, but for those that are made in another way; `pools` limit some of them, by name."""
    known = by_name()
    return [
        _assets_of(stage, known, (pools or {}).get(stage.name), place)
        for place, stage in enumerate(stages())
        if stage not in left_out
    ]


def _assets_of(stage: Stage, known: dict[str, Stage], pool: str | None, place: int) -> dg.AssetsDefinition:
    """One step that makes all products of a stage, or none."""
    inputs = {name: dg.AssetIn(known[name].products[0].name, input_manager_key=TABLES) for name in stage.inputs}
    deps = [known[name].products[0].name for name in stage.inputs] or ["source"]

    @dg.multi_asset(
        name=stage.name,
        specs=[_spec(stage, product, deps) for product in stage.products],
        check_specs=list(check_specs(stage)),
        ins=inputs,
        can_subset=False,
        required_resource_keys={"run", "embedding_model"},
        pool=pool,
        # In the order of the stages, which lets what is begun ahead begin early; of equals Dagster takes any.
        op_tags={"dagster/priority": str(-place)},
    )
    @as_dagster_failure
    def body(context: dg.AssetExecutionContext, **values: Any) -> Iterator[_Event]:
        yield from _materialise(stage, context, values)

    return body


def _spec(stage: Stage, product: Product, deps: list[str]) -> dg.AssetSpec:
    spec = dg.AssetSpec(
        product.name,
        deps=deps,
        description=product.description,
        group_name=stage.group,
        kinds=set(product.kinds),
        code_version=stage.version,
        partitions_def=SOURCES,
        skippable=True,  # where a rule is broken, there is nothing
    )
    return spec if stage.storage is None else spec.with_io_manager_key(TABLES)


def check_specs(stage: Stage) -> Iterator[dg.AssetCheckSpec]:
    """The checks of what a stage makes."""
    for product in stage.products:
        yield from metadata.rule_specs(product.name, stage.rules)
    for name, description in stage.warnings.items():
        yield metadata.source_warning_spec(name, stage.products[0].name, description)


def _materialise(stage: Stage, context: dg.AssetExecutionContext, inputs: dict[str, Any]) -> Iterator[_Event]:
    started = time.perf_counter()
    run: SourceRun = context.resources.run.of(context.log, context.resources.embedding_model.load)
    try:
        outcome = execute(stage, run, inputs)
    except VerificationError as error:
        for product in stage.products:
            yield from metadata.failed(product.name, stage.rules, error)
        yield from metadata.not_evaluated(stage.products[0].name, *stage.warnings)
        return
    for text in outcome.warnings:
        context.log.warning(text)
    yield from _results(stage, outcome, metadata.seconds_since(started), _written(stage, run, outcome, inputs))


def _written(stage: Stage, run: SourceRun, outcome: Outcome, inputs: Mapping[str, Any]) -> Callable[[], bool]:
    """Begin to write the tables of a stage, while events of its step are recorded; what waits for them."""
    name, made_of = f"tables of {stage.name}", versions(inputs)

    def keep() -> bool:
        return stage.keep(run, outcome.value, made_of)

    if stage.storage:
        run.ahead.begin(name, "", keep)  # so that the lock of the source is held until they are written
    return lambda: bool(run.ahead.result(name, "", keep))


def _results(
    stage: Stage, outcome: Outcome, seconds: float, written: Callable[[], bool]
) -> Iterator[dg.MaterializeResult[Any]]:
    """What a stage made; `written` waits until its value is on the disk, and says whether that was written."""
    for product in stage.products:
        report = outcome.reports[product.name]
        is_first = product is stage.products[0]
        yield dg.MaterializeResult(
            asset_key=product.name,
            value=Made(outcome.value, written) if stage.storage else None,
            data_version=dg.DataVersion(report.version),
            metadata=event_metadata(report, outcome, seconds),
            check_results=[
                *metadata.passed(product.name, stage.rules),
                *(_check_results(product.name, outcome) if is_first else []),
            ],
        )


def event_metadata(report: Report, outcome: Outcome, seconds: float | None = None) -> dict[str, Any]:
    """What can be read at a glance first, a long sample last."""
    rows, sample = report.rows, report.sample
    return {
        **({} if rows is None else {"dagster/partition_row_count": rows.num_rows}),
        **({"warnings": "\n".join(outcome.warnings)} if outcome.warnings else {}),
        **report.numbers,
        **({} if seconds is None else {"seconds": seconds}),
        **({} if rows is None else {"dagster/column_schema": metadata.column_schema(rows.schema)}),
        **{name: metadata.table_value(table) for name, table in report.breakdowns.items()},
        **({} if sample is None else {"sample": metadata.sample_rows(sample)}),
    }


def _check_results(asset: str, outcome: Outcome) -> list[dg.AssetCheckResult]:
    return [check_result(asset, name, result) for name, result in outcome.checks.items()]


def check_result(asset: str, name: str, result: CheckResult) -> dg.AssetCheckResult:
    """How a check went that warns, as Dagster shows it."""
    details = {key: metadata.table_value(table, metadata.SHOWN_ROWS) for key, table in result.details.items()}
    reason = {"reason": result.reason} if result.reason and not result.passed else {}
    return dg.AssetCheckResult(
        passed=result.passed,
        severity=dg.AssetCheckSeverity.WARN,
        asset_key=asset,
        check_name=name,
        description=result.reason or None,
        metadata={**reason, **details},
    )
