"""On-disk vectors alongside the `embeddings` tables, so that no model embeds the same text twice.

The *spill* holds what a run has embedded: one part file per batch, until the table with these vectors is published. The
*cache* holds vectors that a table dropped because the text was removed or the model changed. A repository has one cache
per model, since a text may return on any branch, and a model when the settings change back. Parts are immutable and are
merged once there are many; runs for several branches may add and merge concurrently. The oldest vectors of a model are
evicted first.
"""

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.core import tables
from docindex_dagster.core.layout import Layout, base_key, file_name
from docindex_dagster.core.schemas import embeddings_schema
from docindex_dagster.embedding.build import COLUMNS, EmbeddingResult, build_embeddings, is_valid_vector, matrix
from docindex_dagster.embedding.protocol import Embedder

# Per model: evict the oldest rows beyond 5,000 or three times the rows in the repository's tables, whichever is more.
_MIN_LIMIT_ROWS = 5000
_LIMIT_FACTOR = 3
_MAX_PARTS = 8


def reusable_tables(layout: Layout, key: str, model: str) -> Iterator[pa.Table]:
    """Yield tables with the `COLUMNS` that may hold vectors for the source `key`, each read lazily.

    Order: the spill of earlier runs, the cache (newest part first), the tables of other branches, their spills.
    """
    yield from VectorSpill(layout, key).tables(model)
    yield from VectorCache(layout, key).tables(model)
    others = [branch for branch in _branches(layout, key) if branch != file_name(key)]
    for name in others:
        yield from _read(_table(layout, name))
    for name in others:
        yield from _of_model(_spilled(layout.spilled_vectors("").with_name(name)), model)


def clear_spill(layout: Layout, key: str, embeddings: pa.Table) -> None:
    """Clear the spill of a source whose `embeddings` are written; cache the vectors that the table lacks."""
    spill = VectorSpill(layout, key)
    for rows in spill.parts():
        if (unused := rows_not_in(rows, embeddings)).num_rows:
            VectorCache(layout, key).add(_usable(unused))
    spill.forget()


def remove(layout: Layout, key: str) -> None:
    """Remove the spill of a source, and the cache of its repository unless other branches have vectors."""
    VectorSpill(layout, key).forget()
    if not set(_branches(layout, key)) - {file_name(key)}:
        shutil.rmtree(layout.cached_vectors(key), ignore_errors=True)


def rows_not_in(rows: pa.Table, table: pa.Table) -> pa.Table:
    """Return the rows whose text and model are not in the table."""
    return rows.filter(pc.invert(pc.is_in(_keys(rows), _keys(table).combine_chunks())))


@dataclass(frozen=True, slots=True)
class VectorSpill:
    """Vectors, from any model, that runs of the source `key` embedded but have not published yet."""

    layout: Layout
    key: str

    def parts(self) -> Iterator[pa.Table]:
        """Yield the batches in no particular order."""
        return _spilled(self._folder)

    def tables(self, model: str) -> Iterator[pa.Table]:
        """Yield the vectors of a model as one table: there may be thousands of batches."""
        return _of_model(self.parts(), model)

    def add(self, rows: pa.Table) -> None:
        """Keep rows with the `COLUMNS`; safe to call from several threads."""
        tables.write_part(self._folder, rows)

    def forget(self) -> None:
        """Remove the spill."""
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _folder(self) -> Path:
        return self.layout.spilled_vectors(self.key)


@dataclass(frozen=True, slots=True)
class VectorCache:
    """Vectors that no table of the repository holds any more but that it may need again."""

    layout: Layout
    key: str

    def tables(self, model: str) -> Iterator[pa.Table]:
        """Yield tables with the `COLUMNS`, newest part first, each read lazily."""
        for part in reversed(_parts(self._folder(model))):
            yield from _read(part)

    def add(self, *tables_of_rows: pa.Table) -> None:
        """Keep rows with the `COLUMNS`, from any model."""
        for rows in tables_of_rows:
            for model in pc.unique(rows["model"]).to_pylist():
                self._add(model, _deduplicate(rows.filter(pc.equal(rows["model"], model))))

    def forget(self, model: str) -> None:
        """Remove the cached vectors of a model for all branches."""
        shutil.rmtree(self._folder(model), ignore_errors=True)

    def _folder(self, model: str) -> Path:
        return self.layout.cached_vectors(self.key, model)

    def _add(self, model: str, rows: pa.Table) -> None:
        parts = _parts(self._folder(model))
        self._write(model, _number(parts[-1]) + 1 if parts else 1, rows)
        if len(parts) >= _MAX_PARTS:
            present = sum(tables.row_count(_table(self.layout, name)) for name in _branches(self.layout, self.key))
            self._merge(model, max(_MIN_LIMIT_ROWS, _LIMIT_FACTOR * present))

    def _write(self, model: str, number: int, rows: pa.Table) -> None:
        # A concurrent run of another branch may choose the same number.
        path = self._folder(model) / f"{number:08d}.{uuid4().hex}.parquet"
        tables.write(path, rows.replace_schema_metadata(None))

    def _merge(self, model: str, limit: int) -> None:
        """Merge all parts into one: the newest row of each text, at most `most` rows.

        Deletes only the parts listed here, after their rows are written: parts added concurrently stay.
        """
        parts = _parts(self._folder(model))
        rows = [table for part in reversed(parts) for table in _read(part)]
        if rows:
            newest_first = pa.concat_tables(table for table in rows if table.schema.equals(rows[0].schema))
            self._write(model, _number(parts[-1]), _deduplicate(newest_first).slice(0, limit))
        for part in parts:
            part.unlink(missing_ok=True)


def _branches(layout: Layout, key: str) -> list[str]:
    """Return the file names of the sources of a repository that have vectors."""
    base = file_name(base_key(key))
    names = {path.stem for path in layout.tables("embeddings")}
    names |= {folder.name for folder in layout.spilled_vectors(key).parent.glob("*")}
    return sorted(name for name in names if name == base or name.startswith(f"{base}@"))


def _table(layout: Layout, name: str) -> Path:
    return layout.table("embeddings", "").with_name(f"{name}.parquet")


def _parts(folder: Path) -> list[Path]:
    """Return the parts, oldest first."""
    return sorted(folder.glob("[0-9]*.parquet"))


def _number(part: Path) -> int:
    return int(part.name.partition(".")[0])


def _read(part: Path) -> Iterator[pa.Table]:
    """Yield the `COLUMNS` of a table if it is readable and has them."""
    yield from _project(tables.read(part))


def _spilled(folder: Path) -> Iterator[pa.Table]:
    for part in folder.glob("[!.]*.arrow"):
        yield from _project(tables.read_part(part))


def _project(table: pa.Table | None) -> Iterator[pa.Table]:
    if table is not None and set(COLUMNS) <= set(table.column_names):
        yield table.select(list(COLUMNS)).replace_schema_metadata(None)


def _of_model(parts: Iterable[pa.Table], model: str) -> Iterator[pa.Table]:
    matching = [_usable(rows) for part in parts if (rows := part.filter(pc.equal(part["model"], model))).num_rows]
    if matching:
        yield pa.concat_tables(rows for rows in matching if rows.schema.equals(matching[0].schema))


def _usable(rows: pa.Table) -> pa.Table:
    """Return the rows with valid vectors: the spill is not synced, so a power failure can corrupt it."""
    return rows.filter(pa.array(is_valid_vector(matrix(rows["vector"]))))


def _deduplicate(rows: pa.Table) -> pa.Table:
    """Return the first row of each text of a model."""
    keys = _keys(rows)
    return rows.take(pc.index_in(pc.unique(keys), keys))


def _keys(rows: pa.Table) -> pa.ChunkedArray:
    return pc.binary_join_element_wise(rows["model"], rows["embed_text_hash"], ":")


def embed(
    layout: Layout, key: str, chunks: pa.Table, previous: pa.Table | None, embedder: Embedder, *, full: bool = False
) -> EmbeddingResult:
    """Assign a vector to every chunk of the source `key`, and cache the vectors it no longer needs.

    Each batch is spilled to disk and survives a crash of the run; the caller that publishes the table then calls
    `settle`. With `full`, nothing is reused and the cached vectors of this model are removed. Other arguments and
    errors are those of `build_embeddings`.
    """
    cached, spill = VectorCache(layout, key), VectorSpill(layout, key)
    former = tables.read(layout.table("embeddings", key)) if full else previous
    former = former.select(list(COLUMNS)) if former is not None and set(COLUMNS) <= set(former.column_names) else None
    if full:
        former = None if former is None else former.filter(pc.not_equal(former["model"], embedder.name))
        clear_spill(layout, key, embeddings_schema(embedder.dimension).empty_table())
        cached.forget(embedder.name)
    tables_elsewhere = () if full else reusable_tables(layout, key, embedder.name)
    result = build_embeddings(chunks, None if full else previous, embedder, key, tables_elsewhere, keep=spill.add)
    if former is not None:
        cached.add(rows_not_in(former, result.table))
    return result
