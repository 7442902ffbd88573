"""Vectors of texts that a repository had before and may have again: after a branch switch nothing is embedded twice.

Looked up are the source's own table, then the vectors that it or another branch lost, then the other branches' tables.
A repository, with all its branches, has a folder of part files for what was lost. A part is written once, and parts are
joined when they become many; runs of several branches may do so at once. Only as much is kept as is worth it: the
oldest vectors go first.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster import tables
from docindex_dagster.embedding.build import COLUMNS, EmbeddingResult, build_embeddings
from docindex_dagster.embedding.protocol import Embedder
from docindex_dagster.keys import base_key
from docindex_dagster.layout import Layout, file_name

# Beyond so many rows, or three times the rows of the source, the oldest are forgotten.
_MOST_ROWS = 5000
_MOST_TIMES = 3
_MOST_PARTS = 8


def embed(
    layout: Layout, key: str, chunks: pa.Table, previous: pa.Table | None, embedder: Embedder, *, full: bool = False
) -> EmbeddingResult:
    """Give every chunk of the source `key` its vector, and keep the vectors that it needs no more.

    With `full`, nothing is taken over, and what was kept is forgotten. Other arguments and errors are those of
    `build_embeddings`.
    """
    lost = LostVectors(layout, key)
    if full:
        lost.forget()
        return build_embeddings(chunks, None, embedder, key)
    result = build_embeddings(chunks, previous, embedder, key, lost.tables())
    lost.add(result.lost, chunks.num_rows)
    return result


@dataclass(frozen=True, slots=True)
class LostVectors:
    """The vectors that the source `key` can take over from elsewhere, and the place for those that it loses."""

    layout: Layout
    key: str

    @property
    def _folder(self) -> Path:
        return self.layout.lost_vectors(self.key)

    def tables(self) -> Iterator[pa.Table]:
        """Tables with the `COLUMNS`, each read when it is asked for: what was lost last, then the other branches'."""
        for part in reversed(self._parts()):
            yield from _columns(tables.read(part))
        base = file_name(base_key(self.key))
        own = self.layout.table("embeddings", self.key)
        for path in self.layout.tables("embeddings"):
            if path != own and (path.stem == base or path.stem.startswith(f"{base}@")):
                yield from _columns(tables.read(path))

    def add(self, rows: pa.Table, source_rows: int) -> None:
        """Keep rows with the `COLUMNS`; `source_rows` is the present size of the source."""
        if not rows.num_rows:
            return
        parts = self._parts()
        self._write(_number(parts[-1]) + 1 if parts else 1, rows)
        if len(parts) >= _MOST_PARTS:
            self._join(max(_MOST_ROWS, _MOST_TIMES * source_rows))

    def forget(self) -> None:
        """Remove what was kept, for all branches."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _parts(self) -> list[Path]:
        """The oldest first."""
        return sorted(self._folder.glob("[0-9]*.parquet"))

    def _write(self, number: int, rows: pa.Table) -> None:
        # Another branch's run may choose the same number now.
        tables.write(self._folder / f"{number:08d}.{uuid4().hex}.parquet", rows.replace_schema_metadata(None))

    def _join(self, most: int) -> None:
        """Make one part of all; of a text that was lost again its last row stays, and `most` rows altogether.

        What goes is what was seen here, and only once its rows lie elsewhere: parts that others add meanwhile stay.
        """
        parts = self._parts()
        rows = [table for part in reversed(parts) for table in _columns(tables.read(part))]
        if rows:
            # Vectors of another dimension are of a model that is not in use any more.
            newest_first = pa.concat_tables(table for table in rows if table.schema.equals(rows[0].schema))
            keys = _keys(newest_first)
            self._write(_number(parts[-1]), newest_first.take(pc.index_in(pc.unique(keys), keys)).slice(0, most))
        for part in parts:
            part.unlink(missing_ok=True)


def _number(part: Path) -> int:
    return int(part.name.partition(".")[0])


def _columns(table: pa.Table | None) -> Iterator[pa.Table]:
    """The table, if it can be read and has the columns."""
    if table is not None and set(COLUMNS) <= set(table.column_names):
        yield table.select(list(COLUMNS)).replace_schema_metadata(None)


def _keys(rows: pa.Table) -> pa.ChunkedArray:
    return pc.binary_join_element_wise(rows["model"], rows["embed_text_hash"], ":")
