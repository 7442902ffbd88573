"""What a stage is: what it reads, makes, promises and reports, and how its result is kept until the next run."""

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
"""The values of earlier stages, by the names of these."""
# The key under which the metadata of a table hold what it was made of.
_MADE_OF = b"docindex.made_of"
_MOST = 5
_README = r"(?i)^readme(\.\w+)?$"


def counts(column: pa.ChunkedArray, name: str, unit: str) -> pa.Table:
    """How often each value of a column occurs, the most frequent first, in two columns of these names."""
    found = pc.value_counts(pc.fill_null(column, "none")).to_pylist()
    ranked = sorted(found, key=lambda item: (-item["counts"], item["values"]))
    return pa.table(
        {name: [item["values"] for item in ranked], unit: [item["counts"] for item in ranked]},
        schema=pa.schema([(name, pa.string()), (unit, pa.int64())]),
    )


def texts(names: Sequence[str], rows: Iterable[Sequence[str]]) -> pa.Table:
    """Rows of texts under names of columns."""
    columns = list(zip(*rows, strict=True)) or [() for _ in names]
    return pa.table([pa.array(column, pa.string()) for column in columns], names=list(names))


def changes(table: pa.Table, previous: pa.Table | None, key: str, content: str) -> dict[str, int]:
    """How many rows are added, changed, reused and removed: `key` names a row, `content` says whether it changed."""
    if previous is None or not {key, content} <= set(previous.column_names):
        return {"added": table.num_rows, "changed": 0, "reused": 0, "removed": 0}
    of_both = [_keys(rows, key, content) for rows in (table, previous)]
    known, same = (_count_in(table[key], previous[key]), _count_in(*of_both))
    return {
        "added": table.num_rows - known,
        "changed": known - same,
        "reused": same,
        "removed": previous.num_rows - known,
    }


def _keys(table: pa.Table, key: str, content: str) -> pa.ChunkedArray:
    columns = table[key], table[content]
    return pc.binary_join_element_wise(*columns, "\0", null_handling="replace", null_replacement="\0")


def _count_in(values: pa.ChunkedArray, held: pa.ChunkedArray) -> int:
    return pc.sum(pc.is_in(values, held), min_count=0).as_py() or 0


@dataclass(frozen=True, slots=True)
class Product:
    """One thing that a stage makes, which Dagster shows as an asset."""

    name: str
    description: str
    kinds: frozenset[str]


@dataclass(frozen=True, slots=True)
class Report:
    """What is reported of a product.

    `version` is the same for the same content. Neither `sample` nor `breakdowns` have text of the source: Dagster's
    record keeps what it is given, and the text may be removed.
    """

    version: str
    numbers: Mapping[str, int | float | str]
    rows: pa.Table | None = None  # they are counted, and their columns are listed
    sample: pa.Table | None = None
    breakdowns: Mapping[str, pa.Table] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CheckResult:
    """How a check went that warns and stops nothing; `reason` may also say something where it passed."""

    passed: bool
    reason: str = ""
    details: Mapping[str, pa.Table] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a stage did: a value for later stages, and the reports of its products and of checks that warn."""

    value: Any
    reports: Mapping[str, Report]
    checks: Mapping[str, CheckResult] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Storage:
    """How the value of a stage is kept in tables of its source.

    Attributes:
        tables: their names.
        read: gives the value; None where there is none, or it is damaged.
        write: keeps the value, with metadata for the tables; leaves alone what is the same already, and says whether it
            wrote.
        version_of: the data version of a value.
    """

    tables: tuple[str, ...]
    read: Callable[[Layout, str], Any]
    write: Callable[[Layout, str, Any, Mapping[bytes, bytes]], bool]
    version_of: Callable[[Any], str]

    def kept_version(self, layout: Layout, key: str) -> str | None:
        """The data version of what is kept of a source, by a footer."""
        return tables.metadata_value(layout.table(self.tables[0], key), tables.VERSION)

    def made_of(self, layout: Layout, key: str) -> str | None:
        """What the tables of a source were made of; None where one is missing, or they differ."""
        found = {tables.metadata_value(layout.table(table, key), _MADE_OF) for table in self.tables}
        return found.pop() if len(found) == 1 else None


def table_storage(name: str) -> Storage:
    """A stage's value is one table."""

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
    """One step from files to stores.

    Attributes:
        name: of the step, and of its value.
        products: what it makes, all of it or nothing.
        group: of the products in the asset graph.
        version: raise it where the same inputs give something else.
        inputs: the stages whose values it is given.
        late: those of them without which it may run first; it runs once more with them.
        run: does it.
        storage: how its value is kept; None where no later stage reads it.
        rules: what holds for all that it makes, described by name: where one is broken, `run` raises a
            VerificationError, and nothing is written.
        warnings: checks that warn, described by name; they are the first product's.
        depends_on: besides the inputs, what of a run decides its value, such as settings.
        decided_by: the inputs whose versions decide its value; None for all of them.
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
        """Identify what decides its value, by the data versions of its inputs."""
        deciding = self.inputs if self.decided_by is None else self.decided_by
        return digest_parts(self.version, self.depends_on(run), *(versions[name] for name in deciding))

    def keep(self, run: SourceRun, value: Any, versions: Mapping[str, str]) -> bool:
        """Write its value, unless the same is there; says whether it wrote."""
        if self.storage is None:
            return False
        about = {_MADE_OF: self.made_of(run, versions).encode()}
        return self.storage.write(run.layout, run.key, value, about)

    def read(self, run: SourceRun) -> Any:
        """Read the value that an earlier run wrote.

        Raises:
            LostTableError: it is not there, or is damaged.
        """
        value = self.storage.read(run.layout, run.key) if self.storage else None
        if value is None:
            raise LostTableError(f"{self.name} of {run.key} is missing or damaged: index the source in full")
        return value


def previous(run: SourceRun, storage: Storage) -> Any:
    """What an earlier run made, to take rows from; None where nothing may be reused."""
    return None if run.is_full else storage.read(run.layout, run.key)


def well_known(chunks: pa.Table) -> pa.Table:
    """At most five chunks, one a file: the beginning of the README, then the first definition of the largest files.

    Args:
        chunks: with `path` and `qualified_name`, sorted by path and place.
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
    return chunks.take(files["shown"].slice(0, _MOST))
