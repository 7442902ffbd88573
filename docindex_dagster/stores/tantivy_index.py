"""The Tantivy index: BM25 over text, symbols, headings and paths, and the stored row of every chunk.

Each generation has its own folder. A new generation starts as a clone made of hard links, since segments are immutable.
"""

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from docindex_dagster.chunking.embedding_text import readable
from docindex_dagster.core.events import Report, ignore
from docindex_dagster.core.files import remove_tree
from docindex_dagster.core.schemas import CHUNKS, NO_LANGUAGE
from docindex_dagster.stores.analysis import stemmer, terms
from docindex_dagster.stores.difference import Difference, difference

if TYPE_CHECKING:
    from tantivy import DocAddress, Index, IndexWriter, Query, Schema, Searcher

# Fields matched exactly, for filters; each is also a column of the chunks.
EXACT_FIELDS = ("chunk_id", "source", "path", "language", "human_language", "source_type", "symbol_kind")
# A field that earlier versions lack; only searches that filter by it need it.
_FILTER_ONLY = "human_language"
# Fields of terms, for ranking; fields of stems contain prose rather than names.
STEM_FIELDS = ("body", "headings")
TERM_FIELDS = (*STEM_FIELDS, "symbols", "path_terms")
# (chunk_id, row_hash) as numbers, since only numbers can be read as columns.
_ID_FIELDS = ("id_high", "id_low")
_HASH_FIELDS = ("hash_high", "hash_low")
_KEY_FIELDS = (*_ID_FIELDS, *_HASH_FIELDS)
_ROW = "row"
_STEMS = "stems"
_EXACT = {"stored": False, "tokenizer_name": "raw", "index_option": "basic"}
_STEMMED = {"stored": False, "tokenizer_name": _STEMS, "index_option": "freq"}
_SPLIT = {"stored": False, "tokenizer_name": "whitespace", "index_option": "freq"}
FIELDS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    *((name, "text", _EXACT) for name in EXACT_FIELDS),
    *((name, "text", _STEMMED if name in STEM_FIELDS else _SPLIT) for name in TERM_FIELDS),
    *((name, "unsigned", {"stored": False, "indexed": False, "fast": True}) for name in _KEY_FIELDS),
    (_ROW, "bytes", {"stored": True, "indexed": False, "fast": False}),
)
"""Name, kind and options of each field."""
_META = "meta.json"
_MANAGED = ".managed.json"
_MUTABLE = (_META, _MANAGED)
_LOCK = ".lock"
_READ_AND_WRITE = 0o666
_NULLS: dict[str, Any] = dict.fromkeys(CHUNKS.names)
_HEAP_BYTES = 64 << 20
_HEX_DIGITS = 32
# Up to this many values are looked up separately; a term set query scans the full dictionary of the field.
_MAX_SEPARATE = 512


def schema() -> "Schema":
    """Return the schema."""
    import tantivy

    builder = tantivy.SchemaBuilder()
    for name, kind, options in FIELDS:
        getattr(builder, f"add_{kind}_field")(name, **options)
    return builder.build()


def create(folder: Path) -> "Index":
    """Create an empty index."""
    import tantivy

    folder.mkdir(parents=True)
    return _with_stems(tantivy.Index(schema(), path=str(folder), reuse=False))


def clone(published: Path, folder: Path) -> "Index":
    """Create a copy of a published index that shares its segments."""
    folder.mkdir(parents=True)
    for file in published.iterdir():
        if file.suffix == _LOCK:
            continue
        if file.name in _MUTABLE:
            shutil.copyfile(file, folder / file.name)
        else:
            os.link(file, folder / file.name)
    return open_index(folder)


def open_index(folder: Path) -> "Index":
    """Open an existing index for writing; raises ValueError if there is none, or it names files in other folders."""
    import tantivy

    managed = folder / _MANAGED  # Tantivy deletes the unused ones of these files, wherever they are
    if managed.exists() and any(Path(str(name)).name != name for name in json.loads(managed.read_bytes())):
        raise ValueError(f"{managed} names files in other folders")
    return _with_stems(tantivy.Index.open(str(folder)))


def open_published(folder: Path) -> "Index":
    """Open an index that is no longer written, without creating a file in its folder or waiting for a lock.

    Tantivy locks the folder that it opens, which requires write permission and may conflict with others. So it gets a
    temporary folder of symlinks, which is removed once the files are mapped.
    """
    files = [file.absolute() for file in folder.iterdir() if file.suffix != _LOCK]
    with ExitStack() as stack:
        try:
            links = stack.enter_context(_temporary_folder())
            for file in files:
                (links / file.name).symlink_to(file)
        except OSError:  # no space or no permission for temporary files
            return open_index(folder)
        try:
            return open_index(links)
        except ValueError as error:
            raise ValueError(str(error).replace(str(links), str(folder))) from error


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    folder = Path(mkdtemp(prefix="docindex-"))
    try:
        yield folder
    finally:
        remove_tree(folder)  # a Tantivy thread may create the lock again in the meantime


def _with_stems(index: "Index") -> "Index":
    """Register the tokenizer that the fields use."""
    index.register_tokenizer(_STEMS, stemmer())
    return index


def missing_fields(folder: Path, index: "Index") -> list[str]:
    """Return the fields, and the non-nullable columns, that a search needs but an index of another schema lacks."""
    import tantivy

    held = {field["name"] for field in json.loads((folder / _META).read_bytes())["schema"]}
    fields = [name for name, _, _ in FIELDS if name not in held and name != _FILTER_ONLY]
    if fields:
        return fields
    searcher = index.searcher()
    first = searcher.search(tantivy.Query.all_query(), limit=1, count=False).hits
    row = stored_row(searcher, first[0][1]) if first else dict.fromkeys(CHUNKS.names, "")
    return [field.name for field in CHUNKS if not field.nullable and row[field.name] is None]


def held(searcher: "Searcher", index_schema: "Schema", sources: Iterable[str]) -> pa.Table:
    """Return the (chunk_id, row_hash) of the rows of sources."""
    import tantivy

    query = tantivy.Query.term_set_query(index_schema, "source", list(sources))
    return _held(searcher, query)


def held_of(searcher: "Searcher", index_schema: "Schema", chunk_ids: Sequence[str]) -> pa.Table:
    """Return the (chunk_id, row_hash) of chunks from any source."""
    return _held(searcher, any_of(index_schema, "chunk_id", chunk_ids))


def number(searcher: "Searcher", index_schema: "Schema", source: str) -> int:
    """Return the number of rows of a source."""
    import tantivy

    found: Any = searcher.search(tantivy.Query.term_query(index_schema, "source", source), limit=1)
    return int(found.count)  # missing in its type stubs


def _held(searcher: "Searcher", query: "Query") -> pa.Table:
    hits = searcher.search(query, limit=max(1, searcher.num_docs), count=False).hits
    addresses = [address for _, address in hits]
    ids, hashes = (_read_hashes(searcher, addresses, fields) for fields in (_ID_FIELDS, _HASH_FIELDS))
    return pa.table({"chunk_id": pa.array(ids, pa.string()), "row_hash": pa.array(hashes, pa.string())})


def chunk_ids(searcher: "Searcher", addresses: "list[DocAddress]") -> list[str]:
    """Return the ids of hits without reading their rows."""
    return _read_hashes(searcher, addresses, _ID_FIELDS)


def matching(searcher: "Searcher", index_schema: "Schema", field: str, value: str, limit: int) -> list[dict[str, Any]]:
    """Return up to `limit` rows with this value in an exact field, in the order of their chunks."""
    import tantivy

    query = tantivy.Query.term_query(index_schema, field, value)
    hits = searcher.search(query, limit=limit, count=False).hits
    found = (stored_row(searcher, address) for _, address in hits)
    return sorted(found, key=lambda row: (row["source"], row["path"], row["chunk_index"]))


def reconcile(index: "Index", sources: Iterable[str], chunks: pa.Table, on_written: Report = ignore) -> Difference:
    """Make the index hold exactly these chunks of sources, in one commit; write nothing if it already does.

    `on_written` is called for each chunk, before the commit.
    """
    change = difference(held(index.searcher(), index.schema, sources), chunks)
    if change.is_empty:
        return change
    rows_to_write = chunks.filter(change.is_new)
    deletes = pa.concat_arrays([change.deletes, change.replaced])
    _with_writer(index, lambda writer: _apply(writer, rows_to_write, deletes, on_written))
    return change


def fill(index: "Index", tables: Iterable[pa.Table]) -> None:
    """Write chunks into an empty index, in one commit."""

    def add(writer: "IndexWriter") -> None:
        for table in tables:
            _apply(writer, table, pa.array([], pa.string()))

    _with_writer(index, add)


def share(folder: Path) -> None:
    """Grant read access to everyone who may read the folder: Tantivy restricts some files to its user."""
    for name in _MUTABLE:
        (folder / name).chmod(folder.stat().st_mode & _READ_AND_WRITE)


def remove(index: "Index", source: str) -> None:
    """Delete every row of a source."""
    _with_writer(index, lambda writer: writer.delete_documents_by_term("source", source))


def any_of(index_schema: "Schema", field: str, values: Sequence[str]) -> "Query":
    """Return a query for chunks whose field has one of these values."""
    from tantivy import Occur, Query

    if len(values) > _MAX_SEPARATE:
        return Query.term_set_query(index_schema, field, list(values))
    return Query.boolean_query([(Occur.Should, Query.term_query(index_schema, field, value)) for value in values])


def rows(searcher: "Searcher", index_schema: "Schema", chunk_ids: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the stored rows of chunks by id, without ids missing from the index."""
    ids = list(chunk_ids)
    if not ids:
        return {}
    query = any_of(index_schema, "chunk_id", ids)
    hits = searcher.search(query, limit=len(ids), count=False).hits
    rows_found = (stored_row(searcher, address) for _, address in hits)
    return {row["chunk_id"]: row for row in rows_found}


def stored_row(searcher: "Searcher", address: Any) -> dict[str, Any]:
    """Return the row of a hit."""
    row: dict[str, Any] = orjson.loads(bytes(searcher.doc(address)[_ROW][0]))
    return row if row.keys() >= _NULLS.keys() else _NULLS | row  # earlier versions had fewer columns


def _with_writer(index: "Index", change: Any) -> None:
    """Apply `change` to a writer and commit; roll back on failure.

    As a context manager, the writer would commit in either case.
    """
    writer: IndexWriter = index.writer(heap_size=_HEAP_BYTES, num_threads=1)
    try:
        change(writer)
        writer.commit()
    except BaseException:
        writer.rollback()
        raise
    finally:
        writer.wait_merging_threads()
    index.reload()


def _apply(
    writer: "IndexWriter",
    chunks: pa.Table,
    deletes: pa.Array,
    on_written: Report = ignore,
) -> None:
    import tantivy

    for chunk_id in deletes.to_pylist():
        writer.delete_documents_by_term("chunk_id", chunk_id)
    keys = np.concatenate([_numbers(chunks["chunk_id"]), _numbers(chunks["row_hash"])], axis=1)
    for batch_start, batch in _batches(chunks):
        for offset, row in enumerate(batch.to_pylist()):
            document = tantivy.Document(**{name: row[name] for name in EXACT_FIELDS if row[name] is not None})
            if row["language"] is None:
                document.add_text("language", NO_LANGUAGE)
            for name, text in _term_texts(row).items():
                document.add_text(name, text)
            for name, number in zip(_KEY_FIELDS, keys[batch_start + offset].tolist(), strict=True):
                document.add_unsigned(name, number)
            document.add_bytes(_ROW, orjson.dumps(row))
            writer.add_document(document)
            on_written(batch_start + offset + 1, chunks.num_rows)


def _batches(table: pa.Table) -> Iterable[tuple[int, pa.RecordBatch]]:
    start = 0
    for batch in table.to_batches(max_chunksize=1000):
        yield start, batch
        start += batch.num_rows


def _term_texts(row: dict[str, Any]) -> dict[str, str]:
    """Return the terms of each ranked field, separated by spaces."""
    symbols = [row["qualified_name"] or "", *(symbol["name"] for symbol in row["symbols"] or ())]
    text = readable(row)
    texts = {
        "body": f"{row['summary']}\n{text}" if row["summary"] else text,
        "symbols": " ".join(symbols),
        "headings": " ".join(row["heading_path"] or ()),
        "path_terms": row["path"],
    }
    return {name: " ".join(terms(text)) for name, text in texts.items()}


def _numbers(hashes: pa.ChunkedArray) -> NDArray[np.uint64]:
    """Convert 128-bit hexadecimal hashes to 64-bit numbers: shape (n, 2)."""
    data = bytes.fromhex("".join(hashes.to_pylist()))
    return np.frombuffer(data, dtype=">u8").reshape(-1, 2).astype(np.uint64)


def _read_hashes(searcher: "Searcher", addresses: "list[DocAddress]", fields: tuple[str, str]) -> list[str]:
    """Invert `_numbers` for hashes read from the index."""
    if not addresses:
        return []
    columns = [searcher.fast_field_values(name, addresses) for name in fields]
    data = np.array(columns, dtype=np.uint64).T.astype(">u8").tobytes().hex()
    return [data[start : start + _HEX_DIGITS] for start in range(0, len(data), _HEX_DIGITS)]
