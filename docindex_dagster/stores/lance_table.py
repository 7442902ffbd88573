"""The LanceDB table: all columns of the chunks, and their vectors. Row files are copies of it."""

import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from docindex_dagster.core.confinement import check_path
from docindex_dagster.core.errors import StoreError
from docindex_dagster.core.files import stamp, sync
from docindex_dagster.core.hashing import digest
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.schemas import CHUNKS, embeddings_schema
from docindex_dagster.stores.damage import reading_stores
from docindex_dagster.stores.difference import Difference, difference
from docindex_dagster.stores.generation import SCHEMA_VERSION
from docindex_dagster.stores.parts import VECTOR, Chosen

if TYPE_CHECKING:
    from lancedb.db import DBConnection
    from lancedb.table import LanceTable, Table

_NAMESPACE_CLIENT = "lance_namespace_urllib3_client"  # slow to import: pydantic compiles hundreds of its functions
_ROW_ID = "_rowid"
_SUFFIX = ".lance"  # of a table's folder
_ROWS_PER_BATCH = 4096  # when reading the full table
_HASH_SEED = 20_240_607  # arbitrary: hashes are compared only within a process
_HASHED_ROWS = 4096
_LAST_VERSION = (1 << 64) - 1
_TEMPORARY = ".tmp*"  # LanceDB renames a file once it is complete
_MAX_NAME, _HASH_CHARS, _VERSION_CHARS = 100, 12, 8  # of a table
# Keep a replaced table for this long, for readers that have opened it, but only the one replaced last.
_GRACE = timedelta(minutes=15)
_REPLACED = "replaced"  # marker file in a replaced table; its modification time is the time of the replacement
_VERSIONS = "_versions"


def table_name(model: str) -> str:
    """Return a table name that is unique per model and schema version.

    If the name of a model does not fit into that of a table, a hash is appended.
    """
    plain = "".join(char if char.isascii() and char.isalnum() else "-" for char in model.lower())[:_MAX_NAME]
    name = plain if plain == model else f"{plain}-{digest(model.encode())[:_HASH_CHARS]}"
    return f"chunks-{name}-{SCHEMA_VERSION[:_VERSION_CHARS]}"


def open_for_writing(layout: Layout, name: str, dimension: int, pinned: int | None) -> "LanceTable":
    """Open a table at its published version.

    Reverts what a killed writer left behind: versions after `pinned`, or the full table if it is None. Raises
    ValueError, OSError or RuntimeError if the table is damaged.
    """
    layout.lance.mkdir(parents=True, exist_ok=True)
    database = _connect(layout)
    if pinned is not None:
        table = _cast(database.open_table(name))
        if table.version != pinned:
            table.checkout(pinned)
            table.restore()
        return table
    schema = pa.schema([*CHUNKS, embeddings_schema(dimension).field(VECTOR)])
    table = _cast(database.create_table(name, schema=schema, mode="overwrite"))
    table.set_unenforced_primary_key("chunk_id")
    _index_sources(table)
    return table


def open_for_reading(layout: Layout, name: str, version: int) -> "LanceTable":
    """Open the table at the version that a generation pins.

    Raises:
        DamagedStoreError: the table or this version of it is missing or damaged.
    """
    with reading_stores():
        table = _cast(_connect(layout).open_table(name))
        table.checkout(version)
    return table


def has_version(layout: Layout, name: str, version: int) -> bool:
    """Return whether the table has the manifest of a version; loads no library."""
    file = _manifest(_folder(layout, name), version)
    return file.is_file() and file.stat().st_size > 0


def _folder(layout: Layout, name: str) -> Path:
    return layout.lance / f"{name}{_SUFFIX}"


def _manifest(folder: Path, version: int) -> Path:
    """Return the manifest path of a version. Lance counts down, so that the newest version is listed first."""
    return folder / _VERSIONS / f"{_LAST_VERSION - version:020}.manifest"


def load_library() -> ModuleType:
    """Import LanceDB, which takes about one second the first time, and two without `defer`."""
    # Its warnings on standard error concern normal conditions here, such as chunks with equal vectors.
    os.environ.setdefault("LANCEDB_LOG", "error")
    defer(_NAMESPACE_CLIENT)
    import lancedb

    return lancedb


def _connect(layout: Layout) -> "DBConnection":
    return cast("DBConnection", load_library().connect(layout.lance))


def _cast(table: "Table") -> "LanceTable":
    """Cast a table to its class: only tables of the hosted service have another."""
    return cast("LanceTable", table)


def held(table: "LanceTable", sources: Iterable[str]) -> pa.Table:
    """Return the rows of sources in the table, for comparison with `expected`."""
    rows = table.search().where(sql_in("source", sources)).select(["chunk_id", "row_hash", VECTOR])
    return _comparable(rows.limit(None).to_arrow())


def held_of(table: "LanceTable", chunk_ids: Collection[str]) -> pa.Table:
    """Return the rows of chunks in the table, from any source, for comparison with `expected`."""
    condition = sql_in("chunk_id", chunk_ids) if chunk_ids else "FALSE"
    rows = table.search().where(condition).select(["chunk_id", "row_hash", VECTOR])
    return _comparable(rows.limit(None).to_arrow())


def number(table: "LanceTable", source: str) -> int:
    """Return the number of rows of a source."""
    return table.count_rows(_equals("source", source))


def without_vectors(rows: pa.Table) -> pa.Table:
    """Return rows with the plain row_hash, for comparison with stores without vectors."""
    hashes = pc.list_element(pc.split_pattern(rows["row_hash"], ":"), 0)
    return pa.table({"chunk_id": rows["chunk_id"], "row_hash": hashes})


def with_vector_hashes(rows: pa.Table) -> pa.Table:
    """Return rows with a hash of the vector instead of the row_hash, for comparison with `part_vector_hashes`."""
    hashes = pc.list_element(pc.split_pattern(rows["row_hash"], ":"), 1)
    return pa.table({"chunk_id": rows["chunk_id"], "row_hash": hashes})


def part_vector_hashes(rows: Chosen) -> pa.Table:
    """Return the rows of row files, for comparison with `with_vector_hashes`."""
    columns = (
        (part.ids.take(pa.array(at)), pa.array(_vector_hashes(part.stored[at])).cast(pa.string())) for part, at in rows
    )
    ids, hashes = ([pa.array([], pa.string()), *each] for each in zip(*columns, strict=True)) if rows else ([], [])
    return pa.table({"chunk_id": pa.chunked_array(ids, pa.string()), "row_hash": pa.chunked_array(hashes, pa.string())})


def expected(chunks: pa.Table, embeddings: pa.Table) -> pa.Table:
    """Return the expected rows of the table: chunk_id, and a row_hash that also covers the vector."""
    return _comparable(_rows(chunks, embeddings))


def reconcile(
    table: "LanceTable", sources: Iterable[str], chunks: pa.Table, embeddings: pa.Table, target: pa.Table
) -> Difference:
    """Make the table hold exactly these chunks of sources, in one commit; write nothing if it already does.

    `target` is the result of `expected` for them.
    """
    change = difference(held(table, sources), target)
    if change.is_empty:
        return change
    merge = table.merge_insert("chunk_id").when_matched_update_all().when_not_matched_insert_all()
    if change.removed:
        # Filter by ids, not by source: everything that matches and is missing from the input is deleted.
        merge = merge.when_not_matched_by_source_delete(sql_in("chunk_id", change.deletes.to_pylist()))
    merge.execute(_rows(chunks.filter(change.is_new), embeddings.filter(change.is_new)))
    return change


def _rows(chunks: pa.Table, embeddings: pa.Table) -> pa.Table:
    return chunks.replace_schema_metadata(None).append_column(embeddings.schema.field(VECTOR), embeddings[VECTOR])


def _comparable(rows: pa.Table) -> pa.Table:
    vectors = rows[VECTOR].combine_chunks()
    values = vectors.flatten().to_numpy(zero_copy_only=False).reshape(-1, vectors.type.list_size)
    hashes = pa.array(_vector_hashes(values)).cast(pa.string())
    combined = pc.binary_join_element_wise(rows["row_hash"], hashes, ":")
    return pa.table({"chunk_id": rows["chunk_id"], "row_hash": combined})


def _vector_hashes(vectors: NDArray[np.float16]) -> NDArray[np.uint64]:
    """Hash each row of vectors, shape (n, d), to 64 bits, with multilinear hashing modulo 2^64 of the values' bits.

    Returns hashes of shape (n,).

    D. Lemire and O. Kaser, "Strongly universal string hashing is fast", 2014. Detects damage, but not tampering.
    """
    bits = np.ascontiguousarray(vectors).view(np.uint16)
    keys = np.random.default_rng(_HASH_SEED).integers(1 << 64, size=bits.shape[1], dtype=np.uint64)
    hashes = np.empty(len(bits), np.uint64)
    for start in range(0, len(bits), _HASHED_ROWS):  # the products take four times the memory of the vectors
        block = bits[start : start + _HASHED_ROWS].astype(np.uint64)
        hashes[start : start + len(block)] = (block * keys).sum(axis=1, dtype=np.uint64)
    return hashes


def rewrite(layout: Layout, table: "LanceTable", sources: Collection[str]) -> "LanceTable":
    """Write a version of the table with only the rows of these sources that shares no files with earlier versions."""
    held = table.search().limit(None).to_batches(_ROWS_PER_BATCH)
    keys = pa.array(sources, pa.string())
    kept = (batch.filter(pc.is_in(batch["source"], keys)) for batch in held)
    rows = pa.RecordBatchReader.from_batches(held.schema, kept)
    new = _cast(_connect(layout).create_table(table.name, data=rows, mode="overwrite"))
    _index_sources(new)
    return new


def link_version(layout: Layout, name: str, version: int, aside: Path, new_name: str) -> "LanceTable":
    """Link a version of a published table into a separate database, sharing its files.

    Lance changes no file except the one that names the newest version. Files that disappear meanwhile are either unused
    or make opening the table fail with ValueError, OSError or RuntimeError.
    """
    folder, new = _folder(layout, name), aside / f"{new_name}{_SUFFIX}"
    named = _manifest(folder, version)
    for file in folder.rglob("*"):
        is_of_it = file.parent.name != _VERSIONS or file == named
        if is_of_it and file.is_file() and not file.match(_TEMPORARY):
            target = new / file.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):
                os.link(file, target)
    (new / _REPLACED).unlink(missing_ok=True)  # left if a rollback restored the table
    return _cast(load_library().connect(aside).open_table(new_name))


def move_into_place(layout: Layout, table: "LanceTable", aside: Path, replaced: str) -> None:
    """Move a table from a separate database into the published one, and mark the table that it replaces.

    The caller must hold the publication lock.
    """
    mark, new = _folder(layout, replaced) / _REPLACED, f"{table.name}{_SUFFIX}"
    mark.touch()
    (aside / new).rename(layout.lance / new)
    sync([mark, mark.parent, layout.lance])


def numbers(table: "LanceTable") -> dict[str, int]:
    """Return the number of rows per source."""
    found: Counter[str] = Counter()
    for batch in table.search().select(["source"]).limit(None).to_batches(_ROWS_PER_BATCH):
        counts = pc.value_counts(batch["source"])
        found.update(dict(zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True)))
    return dict(found)


def rows_of(table: "LanceTable", sources: Iterable[str]) -> tuple[pa.Table, pa.Table]:
    """Return all rows of sources: the chunks, and their vectors."""
    rows = table.search().where(sql_in("source", sources)).limit(None).to_arrow()
    return rows.select(CHUNKS.names), rows.select([VECTOR])


def chunks(table: "LanceTable") -> Iterator[pa.Table]:
    """Yield the rows of the table as chunks, without vectors."""
    for batch in table.search().select(CHUNKS.names).limit(None).to_batches(_ROWS_PER_BATCH):
        yield pa.Table.from_batches([batch])


def other_rows(layout: Layout, published: "LanceTable", columns: Sequence[str]) -> Iterator[pa.Table]:
    """Yield columns of all rows that only other versions and tables hold, each row once.

    Skips unreadable versions.
    """
    known = _row_hashes(published)["row_hash"].combine_chunks()
    database = _connect(layout)
    for folder in sorted(layout.lance.glob(f"*{_SUFFIX}")):
        with suppress(StoreError), reading_stores():
            table = _cast(database.open_table(folder.name.removesuffix(_SUFFIX)))
            for version in table.list_versions():
                with suppress(StoreError), reading_stores():
                    table.checkout(version["version"])
                    rows = _row_hashes(table)
                    rows = rows.filter(pc.invert(pc.is_in(rows["row_hash"], known)))
                    known = pa.concat_arrays([known, *rows["row_hash"].chunks])
                    for start in range(0, rows.num_rows, _ROWS_PER_BATCH):
                        ids = rows[_ROW_ID][start : start + _ROWS_PER_BATCH].to_pylist()
                        named = [name for name in columns if name in table.schema.names]
                        yield table.take_row_ids(ids).select(named).to_arrow()


def _row_hashes(table: "LanceTable") -> pa.Table:
    """Return the row_hash and the row id of each row."""
    return table.search().select(["row_hash"]).with_row_id(with_row_id=True).limit(None).to_arrow()


def texts(table: "LanceTable", source: str) -> Iterator[pa.RecordBatch]:
    """Yield the ids and texts of a source."""
    rows = table.search().where(_equals("source", source)).select(["chunk_id", "text"]).limit(None)
    return iter(rows.to_batches(_ROWS_PER_BATCH))


def drop_other_versions(table: "LanceTable") -> None:
    """Remove all versions except the newest, even if they are being read, and leftovers of killed writers."""
    table.optimize(cleanup_older_than=timedelta(milliseconds=1), delete_unverified=True)


def remove_unnamed(layout: Layout) -> None:
    """Remove the unfinished files of killed writers, which LanceDB never removes.

    The caller must hold the publication lock, so that no other process is writing.
    """
    check_path(layout.home, layout.lance)
    for file in layout.lance.rglob(_TEMPORARY):
        file.unlink(missing_ok=True)


def in_order(table: "LanceTable", source: str, columns: Sequence[str], rows: int) -> Iterator[pa.Table]:
    """Yield the rows of a source in batches, sorted by path and chunk_index; keeps only the sort keys in memory."""
    sort_columns = ["path", "chunk_index"]
    query = table.search().where(_equals("source", source)).select(sort_columns).with_row_id(with_row_id=True)
    keyed = query.limit(None).to_arrow()
    ids = keyed.sort_by([(name, "ascending") for name in sort_columns])[_ROW_ID].combine_chunks()
    for start in range(0, len(ids), rows):
        batch_ids = ids[start : start + rows]
        rows_taken = table.take_row_ids(batch_ids.to_pylist()).select(list(columns)).with_row_id().to_arrow()
        yield rows_taken.take(pc.index_in(batch_ids, rows_taken[_ROW_ID].combine_chunks())).drop_columns([_ROW_ID])


def values(table: "LanceTable", source: str, column: str, source_type: str) -> pa.Array:
    """Return a column of the rows of a source with this source_type."""
    condition = f"{_equals('source', source)} AND {_equals('source_type', source_type)}"
    return table.search().where(condition).select([column]).limit(None).to_arrow()[column].combine_chunks()


def dimension(table: "LanceTable") -> int:
    """Return the dimension of the table's vectors."""
    size: int = table.schema.field(VECTOR).type.list_size
    return size


def remove(table: "LanceTable", source: str) -> None:
    """Delete every row of a source."""
    table.delete(_equals("source", source))


def _index_sources(table: "LanceTable") -> None:
    """Create the index on the source column, which queries filter by."""
    from lancedb.index import Bitmap

    table.create_index("source", config=Bitmap())


def drop_versions_before(table: "LanceTable", version: int) -> None:
    """Compact, and remove all versions older than `version`, even if they are being read, and leftovers of writers."""
    # Versions are compared by timestamp, and file system timestamps may be coarse.
    table.optimize(cleanup_older_than=_age(table, version) + timedelta(seconds=1), delete_unverified=True)


def _age(table: "LanceTable", version: int) -> timedelta:
    """Return the age of a version; zero if it no longer exists."""
    created: list[datetime] = [item["timestamp"] for item in table.list_versions() if item["version"] == version]
    if not created:
        return timedelta()
    return max(timedelta(), datetime.now(created[0].tzinfo) - created[0])


def remove_unused(layout: Layout, used: set[str], *, spare_last: bool = True) -> None:
    """Delete tables that no generation uses, except one that was just replaced if `spare_last`."""
    folders = [folder for folder in layout.entries(layout.lance) if folder.suffix == _SUFFIX]
    spared = _replaced_last(folders) if spare_last else None
    for folder in folders:
        if folder.name.removesuffix(_SUFFIX) not in used and folder != spared:
            shutil.rmtree(folder, ignore_errors=True)


def _replaced_last(folders: Iterable[Path]) -> Path | None:
    """Return the table replaced last if that was recent, so that readers may still use it."""
    at = {folder: (folder / _REPLACED).stat().st_mtime for folder in folders if (folder / _REPLACED).is_file()}
    last = max(at, key=lambda folder: at[folder], default=None)
    return last if last is not None and time.time() - at[last] < _GRACE.total_seconds() else None


def files(layout: Layout) -> dict[Path, tuple[int, ...] | None]:
    """Return every file of the database with its stamp, to detect changes."""
    found: dict[Path, tuple[int, ...] | None] = {}
    for folder, _, names in os.walk(layout.lance):
        parent = Path(folder)
        found |= {parent / name: stamp(parent / name) for name in names}
    return found


def written_since(layout: Layout, before: Mapping[Path, tuple[int, ...] | None]) -> set[Path]:
    """Return the files of the database that changed since `files`: LanceDB does not sync any."""
    return {path for path, now in files(layout).items() if before.get(path) != now}


def sql_quote(value: str) -> str:
    """Quote a string as an SQL literal."""
    return "'" + value.replace("'", "''") + "'"


def _equals(column: str, value: str) -> str:
    return f"{column} = {sql_quote(value)}"


def sql_in(column: str, values: Iterable[str]) -> str:
    """Return a condition: the column has one of these values."""
    return f"{column} IN ({', '.join(map(sql_quote, values))})"


def defer(package: str) -> None:
    """Defer running a package's `__init__` until an attribute of it is used; its submodules can be imported before.

    Does nothing if the package is already imported, or missing. `importlib.util.LazyLoader` would not help: it runs
    the package on the first import of a submodule.

    Args:
        package: its name, without dots.
    """
    spec = find_spec(package) if package not in sys.modules else None
    if spec is None or spec.loader is None:
        return
    loader, module = spec.loader, module_from_spec(spec)

    def load(name: str) -> Any:
        del vars(module)["__getattr__"]
        loader.exec_module(module)
        return getattr(module, name)

    vars(module)["__getattr__"] = load  # see PEP 562
    sys.modules[package] = module
