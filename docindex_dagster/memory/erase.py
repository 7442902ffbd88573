"""Erasing: of what was forgotten, no file of the home of its domain holds anything.

It is the end of a fold, which has published what stays. A file says that it was begun, so that the next fold ends an
erasure that was stopped anywhere. Blocks of a disk that files had before, and back-ups, are out of reach.
"""

import re
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from docindex_dagster.core.errors import StoreError
from docindex_dagster.core.files import replacing, sync
from docindex_dagster.core.hashing import digest
from docindex_dagster.core.layout import Layout
from docindex_dagster.memory.folded import remove_unused
from docindex_dagster.memory.log import Log
from docindex_dagster.memory.message import Message
from docindex_dagster.memory.position import Offsets
from docindex_dagster.memory.results import Receipt
from docindex_dagster.stores import erasure
from docindex_dagster.stores.generation import read_generation

_ID = re.compile(rb"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")
_PIECE = 8 << 20  # bytes that are looked at together
_LONGEST = 34  # bytes of an id with what bounds it


def is_unfinished(home: Layout) -> bool:
    """Whether an erasure was begun and not ended."""
    return home.erasure.exists()


def begin(home: Layout, gone: Collection[str], there: Collection[str]) -> None:
    """Say on the disk that messages with these ids are to be erased, besides those of an erasure that was stopped.

    But for those that are there: what was forgotten may have been written again.
    """
    with replacing(home.erasure) as temporary:
        temporary.write_bytes(orjson.dumps(sorted({*gone, *_begun(home)}.difference(there))))


def finish(home: Layout, domain: str, log: Log, folded: Offsets) -> Receipt:
    """Erase all that is not in the published generation. The caller holds the locks of the domain.

    Args:
        home: of the domain.
        domain: its key.
        log: its log.
        folded: how far it was folded; what came later stays.

    Raises:
        StoreError: something of them is left.
        FullDiskError: there is no space for a second copy of the stores.
    """
    erasure.erase(home)
    remove_unused(home, domain)
    log.rewrite(lambda entry: not folded.covers(entry.position))
    written_again = {entry.record.id for entry in log.read().entries if isinstance(entry.record, Message)}
    gone = set(_begun(home)) - written_again
    files, size, left = scan(home, gone)
    if left:
        raise StoreError(f"{left[0]} still holds messages that were forgotten; the next fold tries again")
    generation = read_generation(home)
    receipt = Receipt(
        domain,
        tuple(sorted(digest(each.encode()) for each in gone)),
        generation.number if generation else None,
        files,
        size,
        datetime.now(UTC).isoformat(timespec="seconds"),
    )
    with home.receipts.open("ab") as file:
        file.write(orjson.dumps(receipt, option=orjson.OPT_APPEND_NEWLINE))
    sync([home.receipts])
    home.erasure.unlink()
    return receipt


def scan(home: Layout, ids: Collection[str]) -> tuple[int, int, list[Path]]:
    """How many files there are below a home, their bytes, and which of them hold the id of a message.

    All bytes are looked at, and the values of Parquet files, which are compressed.
    """
    wanted = {each.encode() for each in ids}
    files = [path for path in sorted(home.home.rglob("*")) if path.is_file() and path != home.erasure]
    left = [path for path in files if any(not wanted.isdisjoint(_ID.findall(piece)) for piece in _pieces(path))]
    return len(files), sum(path.stat().st_size for path in files), left


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        end = b""
        while piece := file.read(_PIECE):
            yield end + piece
            end = piece[-_LONGEST:]
    if path.suffix == ".parquet":
        for batch in pq.ParquetFile(path).iter_batches():
            yield from map(_as_bytes, batch.columns)


def _as_bytes(column: pa.Array) -> bytes:
    return "\n".join(map(str, column.to_pylist())).encode("utf-8", "replace")


def _begun(home: Layout) -> list[str]:
    """The ids that an erasure which was stopped was to erase."""
    try:
        found: Any = orjson.loads(home.erasure.read_bytes())
    except (OSError, ValueError):
        return []
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []
