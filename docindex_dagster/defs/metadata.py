"""What each asset shows in the UI: numbers under stable names, its columns, and a few rows."""

from collections.abc import Mapping
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.errors import VerificationError

_SAMPLE_ROWS = 5
_SAMPLE_CHARS = 200


def of_table(table: pa.Table, sample: tuple[str, ...]) -> dict[str, Any]:
    """The number of rows, the columns, and the first rows of some of them."""
    return {
        "dagster/partition_row_count": table.num_rows,
        "dagster/column_schema": column_schema(table.schema),
        "sample": sample_rows(table.select(list(sample))),
    }


def changes(table: pa.Table, previous: pa.Table | None, key: str, content: str) -> dict[str, int]:
    """How many rows are added, changed, reused and removed: `key` names a row, `content` tells its versions apart."""
    if previous is None or not {key, content} <= set(previous.column_names):
        return {"added": table.num_rows, "changed": 0, "reused": 0, "removed": 0}
    old, new = ({*zip(rows[key].to_pylist(), rows[content].to_pylist(), strict=True)} for rows in (previous, table))
    known = {name for name, _ in old} & {name for name, _ in new}
    same = len(old & new)
    return {
        "added": len(new) - len(known),
        "changed": len(known) - same,
        "reused": same,
        "removed": len(old) - len(known),
    }


def column_schema(schema: pa.Schema) -> dg.TableSchema:
    """The columns of a table."""
    return dg.TableSchema(
        columns=[
            dg.TableColumn(field.name, str(field.type), constraints=dg.TableColumnConstraints(nullable=field.nullable))
            for field in schema
        ]
    )


def sample_rows(table: pa.Table) -> dg.TableMetadataValue:
    """At most five rows, each cell cut to 200 characters."""
    rows = table.slice(0, _SAMPLE_ROWS).to_pylist()
    return records(
        [{name: "" if value is None else str(value)[:_SAMPLE_CHARS] for name, value in row.items()} for row in rows],
        table.column_names,
    )


def counts(column: pa.ChunkedArray, name: str, unit: str) -> dg.TableMetadataValue:
    """How often each value of a column occurs, the most frequent first."""
    found = pc.value_counts(pc.fill_null(column, "none")).to_pylist()
    ranked = sorted(found, key=lambda item: (-item["counts"], item["values"]))
    return records([{name: item["values"], unit: item["counts"]} for item in ranked], [name, unit])


def records(rows: list[dict[str, Any]], columns: list[str]) -> dg.TableMetadataValue:
    """Rows as a table; an empty one keeps its columns."""
    schema = dg.TableSchema(columns=[dg.TableColumn(name) for name in columns])
    return dg.MetadataValue.table([dg.TableRecord(row) for row in rows], schema=schema)


def rule_specs(asset: str, rules: Mapping[str, str]) -> list[dg.AssetCheckSpec]:
    """Blocking checks for rules that are verified where the data is made; `rules` maps names to descriptions."""
    return [
        dg.AssetCheckSpec(name, asset=asset, blocking=True, description=description)
        for name, description in rules.items()
    ]


def passed(asset: str, rules: Mapping[str, str]) -> list[dg.AssetCheckResult]:
    """All rules held: were one broken, there would be no table."""
    return [dg.AssetCheckResult(passed=True, asset_key=asset, check_name=name) for name in rules]


def not_evaluated(asset: str, *names: str) -> list[dg.AssetCheckResult]:
    """Warnings that there was nothing to look at, because a rule was broken before."""
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


def failed(asset: str, rules: Mapping[str, str], error: VerificationError) -> list[dg.AssetCheckResult]:
    """Which rules were broken and by what; the others held."""
    return [
        dg.AssetCheckResult(
            passed=name not in error.failures,
            asset_key=asset,
            check_name=name,
            metadata={"reason": error.failures[name]} if name in error.failures else {},
        )
        for name in rules
    ]
