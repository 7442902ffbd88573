"""Folded messages of a domain: a file next to the stores, which the generation names by its revision.

The file also records how far the log was folded. So publishing a generation switches atomically which messages are
folded and which are read from the log.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from docindex_dagster.core.errors import StoreError
from docindex_dagster.core.files import atomic_write, sync_new
from docindex_dagster.core.hashing import digest
from docindex_dagster.core.layout import Layout
from docindex_dagster.memory.message import Anchor, Message, Offsets, StoredMessage
from docindex_dagster.stores.damage import damaged
from docindex_dagster.stores.generation import Generation, read_generation

_OFFSETS = b"docindex.offsets"
_ANCHOR = pa.struct([(name, pa.string()) for name in ("source", "path", "name", "chunk_hash")])
# Sorted by time, then by id.
MESSAGES = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("session", pa.string(), nullable=False),
        pa.field("role", pa.string(), nullable=False),
        pa.field("tool", pa.string(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("at", pa.int64(), nullable=False),
        pa.field("anchors", pa.list_(_ANCHOR), nullable=False),
        pa.field("repeats", pa.int32(), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True)
class Folded:
    """Contents of a generation: its messages by time, and the state of the log that they include."""

    messages: tuple[StoredMessage, ...] = ()
    offsets: Offsets = field(default_factory=Offsets)
    generation: Generation | None = None


def read_folded(home: Layout, key: str) -> Folded:
    """Return the contents of the published generation of a domain; empty if nothing was folded.

    Raises:
        StoreError: The generation cannot be read.
        DamagedStoreError: The file of its messages is missing or damaged.
    """
    generation = read_generation(home)
    file = _file_of(home, key, generation)
    if file is None:
        return Folded(generation=generation)
    try:
        table = pq.read_table(file, schema=MESSAGES, memory_map=False)
        return Folded(tuple(map(_as_written, table.to_pylist())), _offsets(file), generation)
    except (OSError, KeyError, ValueError) as error:  # including errors from pyarrow
        raise damaged(f"cannot read {file.name}, the messages of {key}: {error}") from error


def offsets_of(home: Layout, key: str, *, previous: bool = False) -> Offsets | None:
    """Return how far the log was folded into a generation; None if that is missing or unreadable."""
    with suppress(StoreError, OSError, KeyError, ValueError):
        if file := _file_of(home, key, read_generation(home, previous=previous)):
            return _offsets(file)
    return None


def oldest_of(home: Layout, key: str) -> int | None:
    """Return the time of the first folded message; None if there is none, or it cannot be read."""
    with suppress(StoreError, OSError, ValueError):
        if file := _file_of(home, key, read_generation(home)):
            oldest: int | None = pc.min(pq.read_table(file, columns=["at"])["at"]).as_py()
            return oldest
    return None


def write_folded(home: Layout, messages: Sequence[StoredMessage], offsets: Offsets) -> str:
    """Write and sync the file of a generation to be published; return its name, which is the revision.

    Raises:
        FullDiskError: The disk is full.
    """
    rows = [{**asdict(each.message), "repeats": each.repeats} for each in messages]
    metadata = {_OFFSETS: orjson.dumps(offsets.ends, option=orjson.OPT_SORT_KEYS)}
    table = pa.Table.from_pylist(rows, MESSAGES.with_metadata(metadata))
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    content = sink.getvalue()
    name = digest(content)
    file = _file(home, name)
    if not file.exists():
        with atomic_write(file) as temporary:
            temporary.write_bytes(content)
        sync_new([file], home.home.parent)
    return name


def remove_unused(home: Layout, key: str) -> None:
    """Remove the files that neither the published nor the previous generation names."""
    used = [_file_of(home, key, read_generation(home, previous=previous)) for previous in (False, True)]
    for file in home.entries(home.messages):
        if file not in used:
            file.unlink(missing_ok=True)


def _file_of(home: Layout, key: str, generation: Generation | None) -> Path | None:
    """Return the file of the messages that a generation names."""
    source = generation.sources.get(key) if generation else None
    return _file(home, source.revision or "") if source else None


def _offsets(file: Path) -> Offsets:
    return Offsets(orjson.loads((pq.read_metadata(file).metadata or {})[_OFFSETS]))


def _file(home: Layout, name: str) -> Path:
    return home.messages / f"{name}.parquet"


def _as_written(row: dict[str, Any]) -> StoredMessage:
    repeats, anchors = row.pop("repeats"), tuple(Anchor(**anchor) for anchor in row.pop("anchors"))
    return StoredMessage(Message(**row, anchors=anchors), repeats)
