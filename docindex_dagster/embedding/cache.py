"""Vectors that lie beside the `embeddings` tables, in part files, so that no text is embedded twice by one model.

The *spill* holds what a run has embedded: each batch is a part, until the table that holds it is published. The *cache*
holds what a table holds no more: the text is gone, or the model was in use before. A repository has a cache for each
model, since a text may come back on any branch, and a model by an edit of the settings. Its parts are written once and
joined when they become many; runs of several branches may do so concurrently. The oldest vectors of a model are evicted
first.
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
from docindex_dagster.embedding.build import COLUMNS, EmbeddingResult, build_embeddings, matrix, usable
from docindex_dagster.embedding.protocol import Embedder

# Of a model. Beyond so many rows, or three times those of the repository's tables, the oldest are forgotten.
_MOST_ROWS = 5000
_MOST_TIMES = 3
_MOST_PARTS = 8


def elsewhere(layout: Layout, key: str, model: str) -> Iterator[pa.Table]:
    """Tables with the `COLUMNS` in which the vectors of the source `key` may lie, each read when it is asked for.

    First the spill of earlier runs, then the cache, the newest part first, then what other branches have.
    """
    yield from VectorSpill(layout, key).tables(model)
    yield from VectorCache(layout, key).tables(model)
    others = [branch for branch in _branches(layout, key) if branch != file_name(key)]
    for name in others:
        yield from _read(_table(layout, name))
    for name in others:
        yield from _of_model(_spilled(layout.spilled_vectors("").with_name(name)), model)


def settle(layout: Layout, key: str, embeddings: pa.Table) -> None:
    """Empty the spill of a source whose `embeddings` are written; what these lack goes to the cache."""
    spill = VectorSpill(layout, key)
    for rows in spill.parts():
        if (unused := left_out(rows, embeddings)).num_rows:
            VectorCache(layout, key).add(_usable(unused))
    spill.forget()


def remove(layout: Layout, key: str) -> None:
    """Remove the spill of a source; the cache of its repository stays while it has other branches."""
    VectorSpill(layout, key).forget()
    if not set(_branches(layout, key)) - {file_name(key)}:
        shutil.rmtree(layout.cached_vectors(key), ignore_errors=True)


def left_out(rows: pa.Table, table: pa.Table) -> pa.Table:
    """Those rows whose text and model a table does not have."""
    return rows.filter(pc.invert(pc.is_in(_keys(rows), _keys(table).combine_chunks())))


@dataclass(frozen=True, slots=True)
class VectorSpill:
    """What runs of the source `key` embedded and did not publish yet, of any model."""

    layout: Layout
    key: str

    def parts(self) -> Iterator[pa.Table]:
        """The batches, in no order."""
        return _spilled(self._folder)

    def tables(self, model: str) -> Iterator[pa.Table]:
        """What there is of a model, as one table: it may be thousands of batches."""
        return _of_model(self.parts(), model)

    def add(self, rows: pa.Table) -> None:
        """Keep rows with the `COLUMNS`; several threads may do so at once."""
        tables.write_part(self._folder, rows)

    def forget(self) -> None:
        """Remove all of it."""
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _folder(self) -> Path:
        return self.layout.spilled_vectors(self.key)


@dataclass(frozen=True, slots=True)
class VectorCache:
    """Vectors that no table of the repository of the source `key` holds any more, and that it may need again."""

    layout: Layout
    key: str

    def tables(self, model: str) -> Iterator[pa.Table]:
        """Tables with the `COLUMNS`, each read when it is asked for; the newest part comes first."""
        for part in reversed(_parts(self._folder(model))):
            yield from _read(part)

    def add(self, *tables_of_rows: pa.Table) -> None:
        """Keep rows with the `COLUMNS`, of any model."""
        for rows in tables_of_rows:
            for model in pc.unique(rows["model"]).to_pylist():
                self._add(model, _once(rows.filter(pc.equal(rows["model"], model))))

    def forget(self, model: str) -> None:
        """Remove what is cached of a model, for all branches."""
        shutil.rmtree(self._folder(model), ignore_errors=True)

    def _folder(self, model: str) -> Path:
        return self.layout.cached_vectors(self.key, model)

    def _add(self, model: str, rows: pa.Table) -> None:
        parts = _parts(self._folder(model))
        self._write(model, _number(parts[-1]) + 1 if parts else 1, rows)
        if len(parts) >= _MOST_PARTS:
            present = sum(tables.row_count(_table(self.layout, name)) for name in _branches(self.layout, self.key))
            self._join(model, max(_MOST_ROWS, _MOST_TIMES * present))

    def _write(self, model: str, number: int, rows: pa.Table) -> None:
        # Another branch's run may choose the same number now.
        path = self._folder(model) / f"{number:08d}.{uuid4().hex}.parquet"
        tables.write(path, rows.replace_schema_metadata(None))

    def _join(self, model: str, most: int) -> None:
        """Make one part of all; of a text that was cached twice its last row stays, and `most` rows altogether.

        What goes is what was seen here, and only once its rows lie elsewhere: parts that others add meanwhile stay.
        """
        parts = _parts(self._folder(model))
        rows = [table for part in reversed(parts) for table in _read(part)]
        if rows:
            newest_first = pa.concat_tables(table for table in rows if table.schema.equals(rows[0].schema))
            self._write(model, _number(parts[-1]), _once(newest_first).slice(0, most))
        for part in parts:
            part.unlink(missing_ok=True)


def _branches(layout: Layout, key: str) -> list[str]:
    """The file names of the sources of a repository that have vectors."""
    base = file_name(base_key(key))
    names = {path.stem for path in layout.tables("embeddings")}
    names |= {folder.name for folder in layout.spilled_vectors(key).parent.glob("*")}
    return sorted(name for name in names if name == base or name.startswith(f"{base}@"))


def _table(layout: Layout, name: str) -> Path:
    return layout.table("embeddings", "").with_name(f"{name}.parquet")


def _parts(folder: Path) -> list[Path]:
    """The oldest first."""
    return sorted(folder.glob("[0-9]*.parquet"))


def _number(part: Path) -> int:
    return int(part.name.partition(".")[0])


def _read(part: Path) -> Iterator[pa.Table]:
    """The columns of a table, if it can be read and has them."""
    yield from _columns(tables.read(part))


def _spilled(folder: Path) -> Iterator[pa.Table]:
    for part in folder.glob("[!.]*.arrow"):
        yield from _columns(tables.read_part(part))


def _columns(table: pa.Table | None) -> Iterator[pa.Table]:
    if table is not None and set(COLUMNS) <= set(table.column_names):
        yield table.select(list(COLUMNS)).replace_schema_metadata(None)


def _of_model(parts: Iterable[pa.Table], model: str) -> Iterator[pa.Table]:
    found = [_usable(rows) for part in parts if (rows := part.filter(pc.equal(part["model"], model))).num_rows]
    if found:
        yield pa.concat_tables(rows for rows in found if rows.schema.equals(found[0].schema))


def _usable(rows: pa.Table) -> pa.Table:
    """The rows whose vectors a power cut has left whole: the spill is not synced."""
    return rows.filter(pa.array(usable(matrix(rows["vector"]))))


def _once(rows: pa.Table) -> pa.Table:
    """The first row of each text of a model."""
    keys = _keys(rows)
    return rows.take(pc.index_in(pc.unique(keys), keys))


def _keys(rows: pa.Table) -> pa.ChunkedArray:
    return pc.binary_join_element_wise(rows["model"], rows["embed_text_hash"], ":")


def embed(
    layout: Layout, key: str, chunks: pa.Table, previous: pa.Table | None, embedder: Embedder, *, full: bool = False
) -> EmbeddingResult:
    """Give every chunk of the source `key` its vector, and cache the vectors that it needs no more.

    Each batch is spilled to disk, and kept even if the run dies; the caller that publishes the table calls
    `settle`. With `full`, nothing is reused, and what was cached of this model is removed. Other arguments and
    errors are those of `build_embeddings`.
    """
    cached, spill = VectorCache(layout, key), VectorSpill(layout, key)
    former = tables.read(layout.table("embeddings", key)) if full else previous
    former = former.select(list(COLUMNS)) if former is not None and set(COLUMNS) <= set(former.column_names) else None
    if full:
        former = None if former is None else former.filter(pc.not_equal(former["model"], embedder.name))
        settle(layout, key, embeddings_schema(embedder.dimension).empty_table())
        cached.forget(embedder.name)
    tables_elsewhere = () if full else elsewhere(layout, key, embedder.name)
    result = build_embeddings(chunks, None if full else previous, embedder, key, tables_elsewhere, keep=spill.add)
    if former is not None:
        cached.add(left_out(former, result.table))
    return result
