"""Definition of a pipeline stage: its inputs, products, rules and reports, and the storage of its value."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.core import tables
from docindex_dagster.core.errors import LostTableError
from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.core.layout import Layout
from docindex_dagster.pipeline.source_run import SourceRun

Inputs = Mapping[str, Any]
"""Values of earlier stages, by stage name."""
# Metadata key of the fingerprint of the inputs that a table was built from.
_MADE_OF = b"docindex.made_of"
_MAX_SAMPLES = 5
_README = r"(?i)^readme(\.\w+)?$"


def counts(column: pa.ChunkedArray, name: str, unit: str) -> pa.Table:
    """Count the values of a column, most frequent first, in a table with the columns `name` and `unit`."""
    found = pc.value_counts(pc.fill_null(column, "none")).to_pylist()
    ranked = sorted(found, key=lambda item: (-item["counts"], item["values"]))
    return pa.table(
        {name: [item["values"] for item in ranked], unit: [item["counts"] for item in ranked]},
        schema=pa.schema([(name, pa.string()), (unit, pa.int64())]),
    )


def text_table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> pa.Table:
    """Return a table of text columns."""
    columns = list(zip(*rows, strict=True)) or [() for _ in names]
    return pa.table([pa.array(column, pa.string()) for column in columns], names=list(names))


def changes(table: pa.Table, previous: pa.Table | None, key: str, content: str) -> dict[str, int]:
    """Count added, changed, reused and removed rows; `key` identifies a row, and `content` shows whether it changed."""
    if previous is None or not {key, content} <= set(previous.column_names):
        return {"added": table.num_rows, "changed": 0, "reused": 0, "removed": 0}
    row_keys = [_keys(rows, key, content) for rows in (table, previous)]
    known, same = (_count_in(table[key], previous[key]), _count_in(*row_keys))
    return {
        "added": table.num_rows - known,
        "changed": known - same,
        "reused": same,
        "removed": previous.num_rows - known,
    }


def _keys(table: pa.Table, key: str, content: str) -> pa.ChunkedArray:
    columns = table[key], table[content]
    return pc.binary_join_element_wise(*columns, "\0", null_handling="replace", null_replacement="\0")


def _count_in(values: pa.ChunkedArray, known: pa.ChunkedArray) -> int:
    return pc.sum(pc.is_in(values, known), min_count=0).as_py() or 0


@dataclass(frozen=True, slots=True)
class Product:
    """A product of a stage, which Dagster shows as an asset."""

    name: str
    description: str
    kinds: frozenset[str]


@dataclass(frozen=True, slots=True)
class Report:
    """The report on a product.

    `version` is the same for the same content. Neither `sample` nor `breakdowns` may contain text of the source, since
    Dagster stores them permanently, and the source may be removed.
    """

    version: str
    numbers: Mapping[str, int | float | str]
    rows: pa.Table | None = None  # Dagster gets their number and columns
    sample: pa.Table | None = None
    breakdowns: Mapping[str, pa.Table] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check that warns but stops nothing; `reason` may be set even if it passed."""

    passed: bool
    reason: str = ""
    details: Mapping[str, pa.Table] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a stage: a value for later stages, reports on its products, and check results."""

    value: Any
    reports: Mapping[str, Report]
    checks: Mapping[str, CheckResult] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Storage:
    """The storage of a stage's value in tables of its source.

    Attributes:
        tables: The names of the tables.
        read: Returns the value; None if it is missing or damaged.
        write: Stores the value, with metadata for the tables, unless it is unchanged; returns whether it wrote.
        version_of: Returns the data version of a value.
    """

    tables: tuple[str, ...]
    read: Callable[[Layout, str], Any]
    write: Callable[[Layout, str, Any, Mapping[bytes, bytes]], bool]
    version_of: Callable[[Any], str]

    def kept_version(self, layout: Layout, key: str) -> str | None:
        """Return the data version of a source's stored value, read from a table's footer."""
        return tables.metadata_value(layout.table(self.tables[0], key), tables.VERSION)

    def input_fingerprint(self, layout: Layout, key: str) -> str | None:
        """Return the fingerprint of the inputs of a source's tables; None if a table is missing or they differ."""
        found = {tables.metadata_value(layout.table(table, key), _MADE_OF) for table in self.tables}
        return found.pop() if len(found) == 1 else None


def table_storage(name: str) -> Storage:
    """Return a storage for a value that is a single table."""

    def read(layout: Layout, key: str) -> pa.Table | None:
        return tables.read(layout.table(name, key))

    def write(layout: Layout, key: str, table: pa.Table, about: Mapping[bytes, bytes]) -> bool:
        described = table.replace_schema_metadata({**(table.schema.metadata or {}), **about})
        return tables.write(layout.table(name, key), described)

    return Storage((name,), read, write, _version_of)


def _version_of(table: pa.Table) -> str:
    return tables.stamped_version(table.schema.metadata) or tables.data_version(table)


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of the pipeline from files to stores.

    Attributes:
        name: The name of the stage and of its value.
        products: The products, which it makes all or none of.
        group: The group of the products in the asset graph.
        version: The version of the code; increase it if the same inputs give a different value.
        inputs: The stages whose values it receives.
        late: The inputs that it may first run without; it then runs again with them.
        run: Runs the stage.
        storage: The storage of its value; None if no later stage reads it.
        rules: The descriptions of its rules, by name. If a rule is violated, `run` raises a VerificationError, and
            nothing is written.
        warnings: The descriptions of its checks that only warn, by name; they belong to the first product.
        depends_on: Returns whatever else determines its value, such as settings.
        decided_by: The inputs whose versions determine its value; None for all.
    """

    name: str
    products: tuple[Product, ...]
    group: str
    version: str
    inputs: tuple[str, ...]
    run: Callable[[SourceRun, Inputs], Outcome]
    storage: Storage | None = None
    rules: Mapping[str, str] = field(default_factory=dict)
    warnings: Mapping[str, str] = field(default_factory=dict)
    depends_on: Callable[[SourceRun], str] = lambda _run: ""
    decided_by: tuple[str, ...] | None = None
    late: tuple[str, ...] = ()

    def made_of(self, run: SourceRun, versions: Mapping[str, str]) -> str:
        """Return a fingerprint of everything that determines the value, given the data versions of the inputs."""
        inputs = self.inputs if self.decided_by is None else self.decided_by
        return digest_parts(self.version, self.depends_on(run), *(versions[name] for name in inputs))

    def keep(self, run: SourceRun, value: Any, versions: Mapping[str, str]) -> bool:
        """Write the value unless it is unchanged; return whether it was written."""
        if self.storage is None:
            return False
        metadata = {_MADE_OF: self.made_of(run, versions).encode()}
        return self.storage.write(run.layout, run.key, value, metadata)

    def read(self, run: SourceRun) -> Any:
        """Read the value that an earlier run wrote.

        Raises:
            LostTableError: The value is missing or damaged.
        """
        value = self.storage.read(run.layout, run.key) if self.storage else None
        if value is None:
            raise LostTableError(f"{self.name} of {run.key} is missing or damaged: index the source in full")
        return value


def previous(run: SourceRun, storage: Storage) -> Any:
    """Return the value of an earlier run, for reuse of its rows; None in a full run."""
    return None if run.is_full else storage.read(run.layout, run.key)


def pick_sample_chunks(chunks: pa.Table) -> pa.Table:
    """Return at most five sample chunks: the start of the README, then the first definitions of the largest files.

    Args:
        chunks: Chunks with `path` and `qualified_name`, sorted by path and position.
    """
    numbered = chunks.select(["path", "qualified_name"]).append_column("row", pa.array(np.arange(len(chunks))))
    named = numbered.filter(pc.is_valid(numbered["qualified_name"]))
    files = numbered.group_by("path").aggregate([("row", "count"), ("row", "min")])
    first_names = named.group_by("path").aggregate([("row", "min")]).rename_columns(["path", "named"])
    files = files.join(first_names, "path")
    files = (
        files.append_column("is_readme", pc.match_substring_regex(files["path"], _README))
        .append_column("shown", pc.coalesce(files["named"], files["row_min"]))
        .sort_by([("is_readme", "descending"), ("row_count", "descending"), ("path", "ascending")])
    )
    return chunks.take(files["shown"].slice(0, _MAX_SAMPLES))
