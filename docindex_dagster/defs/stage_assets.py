"""Pipeline stages as assets with their checks, and the checks of the sources themselves.

The work of the stages is in `docindex_dagster.pipeline`.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import dagster as dg

from docindex_dagster.core.errors import SourceError
from docindex_dagster.core.settings import Settings
from docindex_dagster.defs import metadata
from docindex_dagster.defs.outcomes import as_dagster_failure
from docindex_dagster.defs.resources import Project
from docindex_dagster.defs.tags import SOURCES
from docindex_dagster.pipeline.stage import CheckResult, Product, Stage
from docindex_dagster.pipeline.stages import by_name, stages
from docindex_dagster.runner.entries import ProductEntry, StageEntry
from docindex_dagster.sources import registry
from docindex_dagster.sources.mirror import remote_heads

source = dg.AssetSpec(
    "source",
    description="The source files, outside Dagster: a documentation folder or a git working tree. Sensors observe "
    "them. See docs/explanation/freshness.md.",
    group_name="discovery",
    kinds={"file", "git"},
    partitions_def=SOURCES,
)

_Event = dg.MaterializeResult[None] | dg.AssetCheckResult
FOLDERS_ARE_THERE = "every_folder_is_there"
REMOTES_ANSWER = "every_remote_answers"
_ADVICE = "restore it, correct docindex.toml, or run `docindex source remove`; its index is kept until then"
_TIMEOUT_S = 10


def stage_assets(left_out: Collection[Stage] = (), pools: Mapping[str, str] | None = None) -> list[dg.AssetsDefinition]:
    """Return the assets of all stages that are not left out; `pools` limits some stages, by name."""
    stages_by_name = by_name()
    return [
        _assets_of(stage, stages_by_name, (pools or {}).get(stage.name), position)
        for position, stage in enumerate(stages())
        if stage not in left_out
    ]


def _assets_of(stage: Stage, stages_by_name: dict[str, Stage], pool: str | None, position: int) -> dg.AssetsDefinition:
    """Return a single step that makes all products of a stage, or none."""
    deps = [stages_by_name[name].products[0].name for name in stage.inputs] or ["source"]

    @dg.multi_asset(
        name=stage.name,
        specs=[spec(stage, product, deps) for product in stage.products],
        check_specs=list(check_specs(stage)),
        can_subset=False,
        required_resource_keys={"run", "embedding_model"},
        pool=pool,
        # The runner executes stages in this order, too.
        op_tags={"dagster/priority": str(-position)},
    )
    @as_dagster_failure
    def body(context: dg.AssetExecutionContext) -> Iterator[_Event]:
        yield from _materialize(stage, context)

    return body


def spec(stage: Stage, product: Product, deps: Sequence[str | dg.AssetKey]) -> dg.AssetSpec:
    """Return the asset for one product of a stage."""
    return dg.AssetSpec(
        product.name,
        deps=deps,
        description=product.description,
        group_name=stage.group,
        kinds=set(product.kinds),
        code_version=stage.version,
        partitions_def=SOURCES,
        skippable=True,  # a broken rule yields no materialization
    )


def check_specs(stage: Stage) -> Iterator[dg.AssetCheckSpec]:
    """Yield the checks of the products of a stage."""
    for product in stage.products:
        yield from metadata.rule_specs(product.name, stage.rules)
    for name, description in stage.warnings.items():
        yield metadata.check_spec(name, stage.products[0].name, description, SOURCES)


def _materialize(stage: Stage, context: dg.AssetExecutionContext) -> Iterator[_Event]:
    entry = context.resources.run.entry(stage.name, context)
    if entry.broken:
        for product in stage.products:
            yield from metadata.verified(product.name, stage.rules, entry.broken)
        yield from metadata.not_evaluated(stage.products[0].name, *stage.warnings)
        return
    for text in entry.warnings:
        context.log.warning(text)
    yield from _results(stage, entry)


def _results(stage: Stage, entry: StageEntry) -> Iterator[dg.MaterializeResult[None]]:
    for product in stage.products:
        reported = entry.products[product.name]
        yield dg.MaterializeResult(
            asset_key=product.name,
            data_version=dg.DataVersion(reported.version),
            metadata=event_metadata(reported, entry),
            check_results=check_results(stage, product, entry),
        )


def event_metadata(product: ProductEntry, entry: StageEntry) -> dict[str, Any]:
    """Return the metadata of a materialization: short values first, a long sample last."""
    schema, sample = product.schema, product.sample
    return {
        **({} if product.row_count is None else {"dagster/partition_row_count": product.row_count}),
        **({"warnings": "\n".join(entry.warnings)} if entry.warnings else {}),
        **product.numbers,
        **({"seconds": entry.seconds} if entry.seconds else {}),
        **entry.tables,
        **({} if schema is None else {"dagster/column_schema": metadata.column_schema(schema)}),
        **{name: metadata.table_value(table) for name, table in product.breakdowns.items()},
        **({} if sample is None else {"sample": metadata.sample_rows(sample)}),
    }


def check_results(stage: Stage, product: Product, entry: StageEntry) -> list[dg.AssetCheckResult]:
    """Return the check results of a stage that broke no rule; warnings belong to its first product."""
    warnings = entry.checks.items() if product is stage.products[0] else ()
    rules = metadata.verified(product.name, stage.rules)
    return [*rules, *(_check_result(product.name, name, result) for name, result in warnings)]


def _check_result(asset: str, name: str, result: CheckResult) -> dg.AssetCheckResult:
    """Convert the result of a check that only warns."""
    details = {key: metadata.table_value(table) for key, table in result.details.items()}
    reason = {"reason": result.reason} if result.reason and not result.passed else {}
    return dg.AssetCheckResult(
        passed=result.passed,
        severity=dg.AssetCheckSeverity.WARN,
        asset_key=asset,
        check_name=name,
        description=result.reason or None,
        metadata={**reason, **details},
    )


@dg.asset_check(
    asset="source",
    name=FOLDERS_ARE_THERE,
    description="Warns while the folder of a declared source is missing, or an indexed source is no longer declared. "
    "The index of the source is kept until you remove it. The sensor sources_changed reports this, too. See "
    "docs/explanation/freshness.md.",
)
def every_folder_is_there(context: dg.AssetCheckExecutionContext, project: Project) -> dg.AssetCheckResult:
    """Check the folder of each source."""
    return metadata.warning(
        FOLDERS_ARE_THERE, missing(project.read_settings(), context.instance.get_dynamic_partitions("source")), _ADVICE
    )


@dg.asset_check(
    asset="source",
    name=REMOTES_ANSWER,
    description="Warns while a followed repository cannot be reached. Its index is kept. The sensor git_head_changed "
    "reports this, too. See docs/how-to/index-a-private-repository.md.",
)
def every_remote_answers(project: Project) -> dg.AssetCheckResult:
    """Ask each remote for its current commit."""
    remotes = {key: source.remote for key, source in registry.sources(project.read_settings()).items() if source.remote}
    answers = remote_heads(remotes, _TIMEOUT_S).items()
    unreachable = {key: str(answer) for key, answer in answers if isinstance(answer, SourceError)}
    return metadata.warning(REMOTES_ANSWER, unreachable, _ADVICE)


def missing(settings: Settings, partitions: Sequence[str]) -> dict[str, str]:
    """Return why sources are missing, by key: the folder does not exist, or `docindex.toml` no longer declares them."""
    declared = registry.sources(settings)
    undeclared = {key: "no longer declared in docindex.toml" for key in partitions if key not in declared}
    missing_folders = {
        key: f"folder not found: {source.path}"
        for key, source in declared.items()
        if source.remote is None and not source.path.is_dir()
    }
    return dict(sorted({**undeclared, **missing_folders}.items()))


def source_evaluation(check: str, problems: Mapping[str, str]) -> dg.AssetCheckEvaluation:
    """Return the outcome of a check on `source` that a sensor evaluated, as a separate event."""
    return metadata.evaluation(metadata.warning(check, problems, _ADVICE), dg.AssetKey("source"))
