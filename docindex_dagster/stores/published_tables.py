"""Tables of a published generation as Arrow, for programs that process all rows rather than the best."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.core import tables
from docindex_dagster.core.errors import DamagedStoreError, QueryError, StoreError
from docindex_dagster.core.installation import missing_extra_message
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.schemas import CHUNKS, COMMIT, COMMITS, NODES, TRIPLES, embeddings_schema
from docindex_dagster.stores import graph_files, lance_table
from docindex_dagster.stores.damage import reading_stores
from docindex_dagster.stores.generation import SCHEMA_VERSION, read_generation
from docindex_dagster.stores.parts import VECTOR
from docindex_dagster.stores.reader import Reader

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

VectorType = Literal["float16", "float32"]
_ROWS = 4096  # per batch
# Yields the rows of a source with the given columns; the tables may have more columns, in any order.
_Read = Callable[[str, Sequence[str]], Iterator[pa.Table]]


@dataclass(frozen=True, eq=False)
class PublishedTable:
    """A lazily read table. Its rows are grouped by source; for the order within a source, see `Tables`.

    Attributes:
        schema: the `pyarrow.Schema` of all columns.
        sources: the keys of the sources in the table.
    """

    schema: pa.Schema
    sources: tuple[str, ...]
    _read: _Read = field(repr=False)

    def to_batches(self, columns: str | Sequence[str] | None = None) -> pa.RecordBatchReader:
        """Return the rows in batches, for tables that do not fit into memory; each batch is read when needed.

        Args:
            columns: names in the desired order; None for all.

        Returns:
            A `pyarrow.RecordBatchReader`; each batch has at most 4,096 rows.

        Raises:
            QueryError: a column does not exist.
            StoreError: the generation was removed (also while reading batches), or a store is damaged.

        Example:
            >>> for batch in index.tables().chunks.to_batches(["path", "text"]):
            ...     work(batch)
        """
        names = self._names(columns)
        schema = pa.schema([self.schema.field(name) for name in names])
        found = (
            batch
            for key in self.sources
            for rows in self._read(key, names)
            for batch in rows.select(names).cast(schema).to_batches(_ROWS)
        )
        return pa.RecordBatchReader.from_batches(schema, found)

    def to_arrow(self, columns: str | Sequence[str] | None = None) -> pa.Table:
        """Return all rows in memory: with all columns, a chunk takes about 3 KiB, so select the columns you need.

        Args:
            columns: see `to_batches`.

        Returns:
            A `pyarrow.Table` with the schema of the columns.

        Raises:
            QueryError: see `to_batches`.
            StoreError: see `to_batches`.
        """
        return self.to_batches(columns).read_all()

    def to_pandas(self, columns: str | Sequence[str] | None = None) -> "pd.DataFrame":
        """Return all rows in memory as a pandas DataFrame; requires pandas, which docindex does not install by default.

        Args:
            columns: see `to_batches`.

        Returns:
            A `pandas.DataFrame`, indexed from 0.

        Raises:
            ModuleNotFoundError: pandas is not installed; the message says how to install it.
            QueryError: see `to_batches`.
            StoreError: see `to_batches`.
        """
        try:
            import pandas as pd  # noqa: F401 pyarrow uses it
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(missing_extra_message("to_pandas", "pandas"), name="pandas") from error
        return self.to_arrow(columns).to_pandas(split_blocks=True, self_destruct=True)

    def _names(self, columns: str | Sequence[str] | None) -> list[str]:
        names = list(self.schema.names if columns is None else [columns] if isinstance(columns, str) else columns)
        unknown = [name for name in names if name not in self.schema.names]
        if unknown:
            raise QueryError(f"column {unknown[0]!r} not found. Columns: {', '.join(self.schema.names)}")
        if not names or len(set(names)) < len(names):
            raise QueryError("expected at least one column, without duplicates")
        return names


@dataclass(frozen=True, eq=False)
class Tables:
    """The tables of a published generation, for some sources.

    All belong to the same generation, even if others are published while you read: row `i` of `chunks`, of `embeddings`
    and of `vectors()` is the same chunk. A generation is removed some time after later ones are published, and
    immediately by `docindex prune`. Reading then raises `StoreError`; call `tables()` again.

    Attributes:
        sources: the keys of the sources, sorted.
    """

    _reader: Reader = field(repr=False)
    sources: tuple[str, ...]

    @property
    def generation(self) -> int:
        """The number of the generation."""
        return self._reader.generation.number

    @property
    def model(self) -> str:
        """The name of the model of the vectors."""
        return self._reader.generation.model

    @cached_property
    def chunks(self) -> PublishedTable:
        """One row per chunk, sorted by path and position in the file; commits are chunks too. See `embeddings`."""
        return self._table(CHUNKS, self._chunks)

    @cached_property
    def embeddings(self) -> PublishedTable:
        """One row per chunk, in the order of `chunks`: its id, and its vector, a list of `d` float16 values.

        Raises:
            StoreError: the generation was removed, or a store is damaged.
        """
        with self._reading():
            dimension = lance_table.dimension(self._reader.table)
        return self._table(embeddings_schema(dimension), self._embeddings)

    @cached_property
    def nodes(self) -> PublishedTable:
        """One row per node of the graph of each source.

        References between sources are resolved when the graph is opened: `Graph.to_networkx` returns it as one graph.
        """
        return self._table(NODES, partial(self._graph, "nodes"))

    @cached_property
    def edges(self) -> PublishedTable:
        """One row per edge of the graph of each source, from `subject` to `object`, as named in the column `node`."""
        return self._table(TRIPLES, partial(self._graph, "triples"))

    @cached_property
    def commits(self) -> PublishedTable:
        """One row per searchable commit of each git source, from newest to oldest."""
        return self._table(COMMITS, self._commits)

    def vectors(self, dtype: VectorType = "float16") -> "NDArray[np.float16 | np.float32]":
        """Return the vectors of all chunks as one array, in the order of `chunks`.

        Args:
            dtype: float16, as stored, or float32, which is faster to compute with and takes twice the memory.

        Returns:
            Array of shape (n, d) and this dtype: n chunks, d values per vector. Rows have unit length to float16
            precision, so that a dot product is a cosine. A value takes 2 or 4 bytes.

        Raises:
            QueryError: the dtype is invalid.
            StoreError: see `PublishedTable.to_batches`.

        Example:
            >>> vectors = index.tables(sources="docs").vectors("float32")
            >>> cosines = vectors @ vectors[0]  # of all chunks with the first: shape (n,)
        """
        if dtype not in get_args(VectorType):
            raise QueryError(f"invalid dtype {dtype!r}: expected {' or '.join(get_args(VectorType))}")
        with self._reading():
            rows = self._reader.table.count_rows(lance_table.sql_in("source", self.sources)) if self.sources else 0
        found = np.empty((rows, self.embeddings.schema.field(VECTOR).type.list_size), dtype)
        start = 0
        for batch in self.embeddings.to_batches(VECTOR):
            values = batch[VECTOR].flatten().to_numpy(zero_copy_only=False)
            found[start : start + batch.num_rows] = values.reshape(-1, found.shape[1])
            start += batch.num_rows
        return found

    def _table(self, schema: pa.Schema, read: _Read) -> PublishedTable:
        def reading(key: str, columns: Sequence[str]) -> Iterator[pa.Table]:
            with self._reading():
                yield from read(key, columns)

        return PublishedTable(schema, self.sources, reading)

    def _chunks(self, key: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        return lance_table.in_order(self._reader.table, key, columns, _ROWS)

    def _embeddings(self, key: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        held = [name for name in columns if name != "model"] or ["chunk_id"]
        for rows in lance_table.in_order(self._reader.table, key, held, _ROWS):
            yield rows.append_column("model", pa.repeat(self.model, rows.num_rows))

    def _graph(self, half: Literal["nodes", "triples"], key: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        files = self._reader.generation.sources[key].graph
        return graph_files.batches(self._reader.graphs, getattr(files, half), columns, _ROWS) if files else iter(())

    def _commits(self, key: str, columns: Sequence[str]) -> Iterator[pa.Table]:  # noqa: ARG002 reads all columns
        """Yield the published rows: the table may be from a run that has not published yet."""
        published = lance_table.values(self._reader.table, key, "commit", COMMIT)
        rows = read_commits(self._reader.layout, key)
        yield rows.filter(pc.is_in(rows["commit"], published))

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Distinguish a generation that was removed from one that is damaged."""
        try:
            with reading_stores():
                yield
        except DamagedStoreError as error:
            if read_generation(self._reader.layout) == self._reader.generation:
                raise
            raise StoreError(
                f"generation {self.generation} was removed after another was published. Call tables() again"
            ) from error


def open_tables(reader: Reader, sources: Sequence[str]) -> Tables:
    """Return the tables of sources of a generation.

    Raises:
        StoreError: another version of docindex wrote the generation.
    """
    if reader.generation.schema_version != SCHEMA_VERSION:
        raise StoreError(
            "another version of docindex built the index. You can search it; to read its tables, run `docindex index` "
            "first"
        )
    return Tables(reader, tuple(sorted(sources)))


def read_commits(layout: Layout, key: str) -> pa.Table:
    """Return the commits that the last run of a source found; empty if its table is missing or from another version."""
    found = tables.read(layout.table("commits", key))
    if found is None or found.schema != COMMITS:
        return COMMITS.empty_table()
    return found.replace_schema_metadata(None)
