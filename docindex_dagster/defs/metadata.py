"""Metadata that assets and checks show in the UI: numbers under stable names, columns, and a few rows.

The UI keeps the order of metadata. It shows Markdown of checks, and long Markdown, only after a click.
"""

import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Any

import dagster as dg
import pyarrow as pa

from docindex_dagster.core.schemas import DESCRIPTIONS
from docindex_dagster.defs.tags import SOURCES

_CELL_CHARS = 200
_REASON_CHARS = 1000
_SHOWN_ROWS = 20
_NONE_BROKEN: Mapping[str, str] = MappingProxyType({})
_DOCS_LINK = "See docs/how-to/fix-failures.md."


def seconds_since(started: float) -> float:
    """Return the seconds since `started`, a value of `time.perf_counter()`, to the millisecond."""
    return round(time.perf_counter() - started, 3)


def column_schema(schema: pa.Schema) -> dg.TableSchema:
    """Return the columns of a table, with their descriptions."""
    return dg.TableSchema(
        columns=[
            dg.TableColumn(
                field.name,
                _type(field.type),
                description=DESCRIPTIONS.get(field.name),
                constraints=dg.TableColumnConstraints(nullable=field.nullable),
            )
            for field in schema
        ]
    )


def _type(column: pa.DataType) -> str:
    """Return a short type name; the UI gives types all the width they need, and descriptions the rest."""
    if pa.types.is_struct(column):
        return "struct"
    if pa.types.is_list(column):
        return f"list<{_type(column.value_type)}>"
    if pa.types.is_fixed_size_list(column):
        return f"list<{_type(column.value_type)}>[{column.list_size}]"
    return str(column)


def sample_rows(table: pa.Table) -> dg.TableMetadataValue:
    """Return rows as a table, with each cell on one line and cut to 200 characters."""
    rows = [{name: _cell(value) for name, value in row.items()} for row in table.to_pylist()]
    return records(rows, table.column_names)


def _cell(value: object, most: int = _CELL_CHARS) -> str:
    if value is None:
        return ""
    lines = (line.strip() for line in str(value).splitlines())
    text = " ⏎ ".join(line for line in lines if line)
    return text if len(text) <= most else text[: most - 1] + "…"


def records(rows: list[dict[str, Any]], columns: list[str]) -> dg.TableMetadataValue:
    """Return rows as a table; an empty one keeps its columns."""
    schema = dg.TableSchema(columns=[dg.TableColumn(name) for name in columns])
    return dg.MetadataValue.table([dg.TableRecord(row) for row in rows], schema=schema)


def rule_specs(asset: str, rules: Mapping[str, str]) -> list[dg.AssetCheckSpec]:
    """Return blocking checks for rules that are verified with the data; `rules` maps names to descriptions."""
    ending = "If it fails, nothing is published, and the previous index stays searchable."
    return [
        check_spec(name, asset, f"{description} {ending}", SOURCES, blocking=True)
        for name, description in rules.items()
    ]


def check_spec(
    name: str,
    asset: dg.AssetKey | str,
    description: str,
    partitions: dg.PartitionsDefinition[str] | None = None,
    *,
    blocking: bool = False,
) -> dg.AssetCheckSpec:
    """Return a check, which warns unless it blocks; `description` says what it checks, and what to do.

    With `partitions`, each result belongs to a partition, so that a run of one source does not hide the failure of
    another. Dagster calls partitioned checks a preview; without partitions, only the newest result counts.
    """
    description = f"{description} {_DOCS_LINK}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.PreviewWarning)
        return dg.AssetCheckSpec(
            name, asset=asset, description=description, blocking=blocking, partitions_def=partitions
        )


def not_evaluated(asset: str, *names: str) -> list[dg.AssetCheckResult]:
    """Return warnings that the checks were not evaluated, because a rule was broken before."""
    return [
        dg.AssetCheckResult(
            passed=False,
            severity=dg.AssetCheckSeverity.WARN,
            asset_key=asset,
            check_name=name,
            metadata={"reason": "not evaluated: another check failed before"},
        )
        for name in names
    ]


def verified(asset: str, rules: Iterable[str], broken: Mapping[str, str] = _NONE_BROKEN) -> list[dg.AssetCheckResult]:
    """Return the results of rules: those in `broken` failed, with a reason, and the others passed."""
    return [
        dg.AssetCheckResult(
            passed=name not in broken,
            asset_key=asset,
            check_name=name,
            metadata={"reason": broken[name]} if name in broken else {},
        )
        for name in rules
    ]


def warning(check: str, problems: Mapping[str, str], what_to_do: str) -> dg.AssetCheckResult:
    """Return the result of a check that warns about some sources, given their problems by key."""
    return dg.AssetCheckResult(
        passed=not problems,
        severity=dg.AssetCheckSeverity.WARN,
        check_name=check,
        metadata=source_problems(problems, what_to_do),
    )


def evaluation(
    result: dg.AssetCheckResult, asset: dg.AssetKey, partition: str | None = None
) -> dg.AssetCheckEvaluation:
    """Return the result of a check as a separate event, for `asset` unless the result names another one."""
    return dg.AssetCheckEvaluation(
        asset_key=result.asset_key or asset,
        check_name=result.check_name or "",
        passed=result.passed,
        severity=result.severity,
        description=result.description,
        metadata=result.metadata,
        partition=partition,
    )


def source_problems(sources: Mapping[str, str], what_to_do: str) -> dict[str, Any]:
    """Return the metadata of a check that warns about sources: their number, what to do, and the first reasons."""
    if not sources:
        return {"count": 0}
    left_out = len(sources) - _SHOWN_ROWS
    return {
        "count": len(sources),
        "what to do": what_to_do,
        "sources": texts(("source", "reason"), sources.items()),
        **({"left out": f"{left_out} more: `docindex status` lists all"} if left_out > 0 else {}),
    }


def table_value(table: pa.Table) -> dg.TableMetadataValue:
    """Return all rows of a table, with each text on one line and cut to 1,000 characters."""
    shown = [
        {name: _cell(cell, _REASON_CHARS) if isinstance(cell, str) else cell for name, cell in row.items()}
        for row in table.to_pylist()
    ]
    return records(shown, table.column_names)


def texts(columns: Sequence[str], rows: Iterable[Sequence[str]], most: int = _SHOWN_ROWS) -> dg.TableMetadataValue:
    """Return at most `most` rows, with each cell on one line and cut to 1,000 characters."""
    shown = [[_cell(text, _REASON_CHARS) for text in row] for row in islice(rows, most)]
    return records([dict(zip(columns, row, strict=True)) for row in shown], list(columns))
