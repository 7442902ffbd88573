"""The LanceDB table: all columns of the chunks and their vectors. Row files are copies of it."""

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

_CLIENT_OF_CATALOGUES = "lance_namespace_urllib3_client"  # pydantic compiles each of its hundreds of functions
_ROW_ID = "_rowid"
_SUFFIX = ".lance"  # of the folder of a table
_ROWS_A_BATCH = 4096  # when all are copied
_HASH_SEED = 20_240_607  # any number will do: hashes are compared within one process
_HASHED_ROWS = 4096
_LAST_VERSION = (1 << 64) - 1
_UNNAMED = ".tmp*"  # LanceDB gives a file its name once it is whole
_LONGEST_NAME, _HASH_CHARS, _VERSION_CHARS = 100, 12, 8  # of a table
# A table that maintenance replaced stays so long for readers that opened it, and no longer than the next one does.
_GRACE = timedelta(minutes=15)
_REPLACED = "replaced"  # a file in such a table, as old as that is
_VERSIONS = "_versions"


def table_name(model: str) -> str:
    """Two models, and two versions of the schema, never share a table.

    Where not all of a model's name can stand in that of a table, a hash follows.
    """
    plain = "".join(char if char.isascii() and char.isalnum() else "-" for char in model.lower())[:_LONGEST_NAME]
    name = plain if plain == model else f"{plain}-{digest(model.encode())[:_HASH_CHARS]}"
    return f"chunks-{name}-{SCHEMA_VERSION[:_VERSION_CHARS]}"


def open_for_writing(layout: Layout, name: str, dimension: int, pinned: int | None) -> "LanceTable":
    """A table at its published version.

    What a writer that died left behind is undone: versions after `pinned` are reverted, and with None, the table is
    made anew. Raises ValueError, OSError or RuntimeError where the table is damaged.
    """
    layout.lance.mkdir(parents=True, exist_ok=True)
    database = _connect(layout)
    if pinned is not None:
        table = _opened(database.open_table(name))
        if table.version != pinned:
            table.checkout(pinned)
            table.restore()
        return table
    schema = pa.schema([*CHUNKS, embeddings_schema(dimension).field(VECTOR)])
    table = _opened(database.create_table(name, schema=schema, mode="overwrite"))
    table.set_unenforced_primary_key("chunk_id")
    _index_sources(table)
    return table


def open_for_reading(layout: Layout, name: str, version: int) -> "LanceTable":
    """The table as a generation pinned it.

    Raises:
        DamagedStoreError: the table or this version of it is missing or damaged.
    """
    with reading_stores():
        table = _opened(_connect(layout).open_table(name))
        table.checkout(version)
    return table


def has_version(layout: Layout, name: str, version: int) -> bool:
    """Whether the table has the file that names the data of a version; asking loads no library."""
    file = _manifest(_folder(layout, name), version)
    return file.is_file() and file.stat().st_size > 0


def _folder(layout: Layout, name: str) -> Path:
    return layout.lance / f"{name}{_SUFFIX}"


def _manifest(folder: Path, version: int) -> Path:
    """The manifest of a version in the folder of a table. Lance counts down, so that the newest is listed first."""
    return folder / _VERSIONS / f"{_LAST_VERSION - version:020}.manifest"


def load_library() -> ModuleType:
    """Import LanceDB, which takes about a second the first time, and two without `defer`."""
    # Its warnings on standard error are about what is normal here, such as chunks with equal vectors.
    os.environ.setdefault("LANCEDB_LOG", "error")
    defer(_CLIENT_OF_CATALOGUES)
    import lancedb

    return lancedb


def _connect(layout: Layout) -> "DBConnection":
    return cast("DBConnection", load_library().connect(layout.lance))


def _opened(table: "Table") -> "LanceTable":
    """The table as what it is: only those of the hosted service are of another class."""
    return cast("LanceTable", table)


def held(table: "LanceTable", sources: Iterable[str]) -> pa.Table:
    """What the table holds of some sources, to be compared with `expected`."""
    rows = table.search().where(among("source", sources)).select(["chunk_id", "row_hash", VECTOR])
    return _comparable(rows.limit(None).to_arrow())


def held_of(table: "LanceTable", chunk_ids: Collection[str]) -> pa.Table:
    """The same of some chunks, wherever they are from."""
    condition = among("chunk_id", chunk_ids) if chunk_ids else "FALSE"
    rows = table.search().where(condition).select(["chunk_id", "row_hash", VECTOR])
    return _comparable(rows.limit(None).to_arrow())


def number(table: "LanceTable", source: str) -> int:
    """How many rows the table holds of a source."""
    return table.count_rows(_equals("source", source))


def without_vectors(rows: pa.Table) -> pa.Table:
    """What the table holds, with the plain row_hash, to be compared with what holds no vectors."""
    hashes = pc.list_element(pc.split_pattern(rows["row_hash"], ":"), 0)
    return pa.table({"chunk_id": rows["chunk_id"], "row_hash": hashes})


def vectors_alone(rows: pa.Table) -> pa.Table:
    """What the table holds, with a hash of the vector in place of the row_hash, to be compared with `part_alone`."""
    hashes = pc.list_element(pc.split_pattern(rows["row_hash"], ":"), 1)
    return pa.table({"chunk_id": rows["chunk_id"], "row_hash": hashes})


def part_alone(rows: Chosen) -> pa.Table:
    """What files of rows hold, to be compared with `vectors_alone`."""
    columns = (
        (part.ids.take(pa.array(at)), pa.array(_vector_hashes(part.stored[at])).cast(pa.string())) for part, at in rows
    )
    ids, hashes = ([pa.array([], pa.string()), *each] for each in zip(*columns, strict=True)) if rows else ([], [])
    return pa.table({"chunk_id": pa.chunked_array(ids, pa.string()), "row_hash": pa.chunked_array(hashes, pa.string())})


def expected(chunks: pa.Table, embeddings: pa.Table) -> pa.Table:
    """What the table should hold: chunk_id, and a row_hash that covers the vector as well."""
    return _comparable(_rows(chunks, embeddings))


def reconcile(
    table: "LanceTable", sources: Iterable[str], chunks: pa.Table, embeddings: pa.Table, target: pa.Table
) -> Difference:
    """Make the table hold exactly these chunks of some sources, in one commit; write nothing when it does.

    `target` is what `expected` says of them.
    """
    change = difference(held(table, sources), target)
    if change.is_empty:
        return change
    merge = table.merge_insert("chunk_id").when_matched_update_all().when_not_matched_insert_all()
    if change.removed:
        # Ids, not the source: everything that is not in the input and meets this filter is deleted.
        merge = merge.when_not_matched_by_source_delete(among("chunk_id", change.deletes.to_pylist()))
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
    """Hash each row of vectors, shape (n, d), to 64 bits: multilinear hashing of its values' bits, modulo 2^64.

    The hashes have shape (n,).

    D. Lemire and O. Kaser, "Strongly universal string hashing is fast", 2014. It guards against damage, not attackers.
    """
    bits = np.ascontiguousarray(vectors).view(np.uint16)
    keys = np.random.default_rng(_HASH_SEED).integers(1 << 64, size=bits.shape[1], dtype=np.uint64)
    hashes = np.empty(len(bits), np.uint64)
    for start in range(0, len(bits), _HASHED_ROWS):  # the products take four times the memory of the vectors
        block = bits[start : start + _HASHED_ROWS].astype(np.uint64)
        hashes[start : start + len(block)] = (block * keys).sum(axis=1, dtype=np.uint64)
    return hashes


def rewrite(layout: Layout, table: "LanceTable", sources: Collection[str]) -> "LanceTable":
    """Make a version of the table that holds the rows of some sources, and shares no file with those before it."""
    held = table.search().limit(None).to_batches(_ROWS_A_BATCH)
    keys = pa.array(sources, pa.string())
    kept = (batch.filter(pc.is_in(batch["source"], keys)) for batch in held)
    rows = pa.RecordBatchReader.from_batches(held.schema, kept)
    new = _opened(_connect(layout).create_table(table.name, data=rows, mode="overwrite"))
    _index_sources(new)
    return new


def linked(layout: Layout, name: str, version: int, aside: Path, new_name: str) -> "LanceTable":
    """A table in a database of its own that holds a version of a published one, and shares its files by links.

    Lance changes no file but the one that says which version is the newest. What goes away meanwhile is of no use, or
    the table cannot be opened. Raises ValueError, OSError or RuntimeError in that case.
    """
    folder, new = _folder(layout, name), aside / f"{new_name}{_SUFFIX}"
    named = _manifest(folder, version)
    for file in folder.rglob("*"):
        is_of_it = file.parent.name != _VERSIONS or file == named
        if is_of_it and file.is_file() and not file.match(_UNNAMED):
            place = new / file.relative_to(folder)
            place.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):
                os.link(file, place)
    (new / _REPLACED).unlink(missing_ok=True)  # a rollback may have come back to it
    return _opened(load_library().connect(aside).open_table(new_name))


def put_in_place(layout: Layout, table: "LanceTable", aside: Path, replaced: str) -> None:
    """Let a table that was made aside be one of the database, and another one be what it replaced.

    The caller holds the publication lock.
    """
    mark, new = _folder(layout, replaced) / _REPLACED, f"{table.name}{_SUFFIX}"
    mark.touch()
    (aside / new).rename(layout.lance / new)
    sync([mark, mark.parent, layout.lance])


def numbers(table: "LanceTable") -> dict[str, int]:
    """How many rows it holds of each source."""
    found: Counter[str] = Counter()
    for batch in table.search().select(["source"]).limit(None).to_batches(_ROWS_A_BATCH):
        counts = pc.value_counts(batch["source"])
        found.update(dict(zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True)))
    return dict(found)


def rows_of(table: "LanceTable", sources: Iterable[str]) -> tuple[pa.Table, pa.Table]:
    """All that the table holds of some sources: the chunks, and their vectors."""
    rows = table.search().where(among("source", sources)).limit(None).to_arrow()
    return rows.select(CHUNKS.names), rows.select([VECTOR])


def chunks(table: "LanceTable") -> Iterator[pa.Table]:
    """The rows of the table as chunks, without their vectors."""
    for batch in table.search().select(CHUNKS.names).limit(None).to_batches(_ROWS_A_BATCH):
        yield pa.Table.from_batches([batch])


def other_rows(layout: Layout, published: "LanceTable", columns: Sequence[str]) -> Iterator[pa.Table]:
    """Yield some columns of the rows that other versions and tables hold and the published one does not, each once.

    A version that cannot be read any more yields none.
    """
    known = _row_hashes(published)["row_hash"].combine_chunks()
    database = _connect(layout)
    for folder in sorted(layout.lance.glob(f"*{_SUFFIX}")):
        with suppress(StoreError), reading_stores():
            table = _opened(database.open_table(folder.name.removesuffix(_SUFFIX)))
            for version in table.list_versions():
                with suppress(StoreError), reading_stores():
                    table.checkout(version["version"])
                    rows = _row_hashes(table)
                    rows = rows.filter(pc.invert(pc.is_in(rows["row_hash"], known)))
                    known = pa.concat_arrays([known, *rows["row_hash"].chunks])
                    for start in range(0, rows.num_rows, _ROWS_A_BATCH):
                        ids = rows[_ROW_ID][start : start + _ROWS_A_BATCH].to_pylist()
                        named = [name for name in columns if name in table.schema.names]
                        yield table.take_row_ids(ids).select(named).to_arrow()


def _row_hashes(table: "LanceTable") -> pa.Table:
    """Return the row_hash of each row, and its id in the table."""
    return table.search().select(["row_hash"]).with_row_id(with_row_id=True).limit(None).to_arrow()


def texts(table: "LanceTable", source: str) -> Iterator[pa.RecordBatch]:
    """The ids and texts that the table holds of a source."""
    rows = table.search().where(_equals("source", source)).select(["chunk_id", "text"]).limit(None)
    return iter(rows.to_batches(_ROWS_A_BATCH))


def drop_other_versions(table: "LanceTable") -> None:
    """Remove all versions but the newest, whoever still reads them, and what dead writers left."""
    table.optimize(cleanup_older_than=timedelta(milliseconds=1), delete_unverified=True)


def remove_unnamed(layout: Layout) -> None:
    """Remove the files that killed writers left before they had a name: LanceDB removes none of them.

    The caller holds the publication lock, so nobody else writes one.
    """
    check_path(layout.home, layout.lance)
    for file in layout.lance.rglob(_UNNAMED):
        file.unlink(missing_ok=True)


def in_order(table: "LanceTable", source: str, columns: Sequence[str], rows: int) -> Iterator[pa.Table]:
    """The rows of a source by path and chunk_index, so many at once; of the others, only the places are held."""
    place = ["path", "chunk_index"]
    asked = table.search().where(_equals("source", source)).select(place).with_row_id(with_row_id=True)
    found = asked.limit(None).to_arrow()
    ids = found.sort_by([(name, "ascending") for name in place])[_ROW_ID].combine_chunks()
    for start in range(0, len(ids), rows):
        wanted = ids[start : start + rows]
        taken = table.take_row_ids(wanted.to_pylist()).select(list(columns)).with_row_id().to_arrow()
        yield taken.take(pc.index_in(wanted, taken[_ROW_ID].combine_chunks())).drop_columns([_ROW_ID])


def values(table: "LanceTable", source: str, column: str, source_type: str) -> pa.Array:
    """What stands in a column of the rows of a source that are of a type."""
    condition = f"{_equals('source', source)} AND {_equals('source_type', source_type)}"
    return table.search().where(condition).select([column]).limit(None).to_arrow()[column].combine_chunks()


def dimension(table: "LanceTable") -> int:
    """How many values a vector of the table has."""
    size: int = table.schema.field(VECTOR).type.list_size
    return size


def remove(table: "LanceTable", source: str) -> None:
    """Delete every row of a source."""
    table.delete(_equals("source", source))


def _index_sources(table: "LanceTable") -> None:
    """Make the index of the column by which rows are asked for."""
    from lancedb.index import Bitmap

    table.create_index("source", config=Bitmap())


def drop_versions_before(table: "LanceTable", version: int) -> None:
    """Compact, and remove all older versions than `version` and what dead writers left, whoever still reads them."""
    # Time stamps are compared, and those of the file system may be coarse.
    table.optimize(cleanup_older_than=_age(table, version) + timedelta(seconds=1), delete_unverified=True)


def _age(table: "LanceTable", version: int) -> timedelta:
    """How long ago a version was made; nothing for one that is not there any more."""
    made: list[datetime] = [item["timestamp"] for item in table.list_versions() if item["version"] == version]
    if not made:
        return timedelta()
    return max(timedelta(), datetime.now(made[0].tzinfo) - made[0])


def remove_unused(layout: Layout, used: set[str], *, spare_last: bool = True) -> None:
    """Delete the tables of which no generation is left, but for one that was replaced a moment ago, if `spare_last`."""
    folders = [folder for folder in layout.entries(layout.lance) if folder.suffix == _SUFFIX]
    spared = _replaced_last(folders) if spare_last else None
    for folder in folders:
        if folder.name.removesuffix(_SUFFIX) not in used and folder != spared:
            shutil.rmtree(folder, ignore_errors=True)


def _replaced_last(folders: Iterable[Path]) -> Path | None:
    """The table that another one took the place of last, if that was a moment ago and readers may still use it."""
    at = {folder: (folder / _REPLACED).stat().st_mtime for folder in folders if (folder / _REPLACED).is_file()}
    last = max(at, key=lambda folder: at[folder], default=None)
    return last if last is not None and time.time() - at[last] < _GRACE.total_seconds() else None


def files(layout: Layout) -> dict[Path, tuple[int, ...] | None]:
    """Every file of the database, with what changes when it is replaced."""
    found: dict[Path, tuple[int, ...] | None] = {}
    for folder, _, names in os.walk(layout.lance):
        place = Path(folder)
        found |= {place / name: stamp(place / name) for name in names}
    return found


def written_since(layout: Layout, before: Mapping[Path, tuple[int, ...] | None]) -> set[Path]:
    """The files of the database that are not as `files` found them: LanceDB syncs none."""
    return {path for path, now in files(layout).items() if before.get(path) != now}


def quoted(value: str) -> str:
    """A string as an SQL literal."""
    return "'" + value.replace("'", "''") + "'"


def _equals(column: str, value: str) -> str:
    return f"{column} = {quoted(value)}"


def among(column: str, values: Iterable[str]) -> str:
    """A condition: one of some values stands in a column."""
    return f"{column} IN ({', '.join(map(quoted, values))})"


def defer(package: str) -> None:
    """Let a package's modules be imported while its own `__init__` waits until something of it is asked for.

    One that is imported already, or missing, is left alone. `importlib.util.LazyLoader` would not do: it runs the
    package for the first of its modules.

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

    vars(module)["__getattr__"] = load  # as PEP 562 has it
    sys.modules[package] = module
