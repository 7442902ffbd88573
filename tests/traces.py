"""Search for traces of a text: in every byte of a folder, in compressed data, and in rows marked as deleted."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import tantivy

from docindex_dagster.stores.lance_table import load_library


def traces(home: Path, *words: str) -> set[str]:
    """Return the files, stores and versions below a home whose name or content includes one of the words."""
    sought = [word.encode() for word in words]
    return {place for place, content in contents(home) if any(word in content for word in sought)}


def hiding_places(home: Path) -> list[Path]:
    """Return store files with invisible rows: deleted, or of another version."""
    found = list(home.glob("stores/lance/*/_deletions/*"))
    for folder in home.glob("stores/lance/*.lance"):
        manifests = sorted(folder.glob("_versions/*.manifest"))
        data = [file for file in folder.glob("data/*") if file.name.encode() not in manifests[0].read_bytes()]
        found += [*manifests[1:], *data]
    for folder in home.glob("stores/tantivy/*"):
        segments = json.loads((folder / "meta.json").read_bytes())["segments"]
        whole = {segment["segment_id"].replace("-", "") for segment in segments if segment["deletes"] is None}
        found += [file for file in folder.iterdir() if file.suffix not in {".json", ".lock"} and file.stem not in whole]
    return found


def contents(home: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the files, stores and versions below a home, with their bytes and their values as text."""
    for file in sorted(path for path in home.rglob("*") if path.is_file()):
        name = str(file.relative_to(home))
        yield name, file.read_bytes() + name.encode()
        if file.suffix == ".parquet":
            yield name, _as_bytes(pq.ParquetFile(file).read())
        elif file.suffix == ".arrow":
            yield name, _as_bytes(pa.ipc.open_file(file).read_all())
    for folder in home.glob("stores/lance/*.lance"):
        yield from _versions(folder)
    for folder in home.glob("stores/tantivy/*"):
        yield str(folder.relative_to(home)), _stored_rows(folder)


def _as_bytes(table: pa.Table) -> bytes:
    return repr([table.schema.metadata, table.to_pylist()]).encode()


def _versions(folder: Path) -> Iterator[tuple[str, bytes]]:
    table: Any = load_library().connect(folder.parent).open_table(folder.stem)
    for item in table.list_versions():
        table.checkout(item["version"])
        yield f"version {item['version']}", _as_bytes(table.search().limit(None).to_arrow())


def _stored_rows(folder: Path) -> bytes:
    searcher = tantivy.Index.open(str(folder)).searcher()
    hits = searcher.search(tantivy.Query.all_query(), limit=max(1, searcher.num_docs)).hits
    return b"".join(bytes(searcher.doc(address)["row"][0]) for _, address in hits)
