"""The messages of a domain that were folded: a file beside the stores, which the generation names by its revision.

It also says how far the log was folded. So which messages are folded, and which are read from the log, changes with the
one step that publishes a generation.
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
from docindex_dagster.core.files import replacing, sync_new
from docindex_dagster.core.hashing import digest
from docindex_dagster.core.layout import Layout
from docindex_dagster.memory.message import Anchor, Message, Offsets, Written
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
    """What a generation holds of a domain: its messages by time, and the state of the log that they are all of."""

    messages: tuple[Written, ...] = ()
    offsets: Offsets = field(default_factory=Offsets)
    generation: Generation | None = None


def read_folded(home: Layout, key: str) -> Folded:
    """What the published generation of a domain holds; nothing where nothing was folded.

    Raises:
        StoreError: it cannot be read.
        DamagedStoreError: the file of its messages is missing or damaged.
    """
    generation = read_generation(home)
    file = _file_of(home, key, generation)
    if file is None:
        return Folded(generation=generation)
    try:
        table = pq.read_table(file, schema=MESSAGES, memory_map=False)
        return Folded(tuple(map(_as_written, table.to_pylist())), _offsets(file), generation)
    except (OSError, KeyError, ValueError) as error:  # of pyarrow, too
        raise damaged(f"{file.name}, the messages of {key}, cannot be read: {error}") from error


def offsets_of(home: Layout, key: str, *, previous: bool = False) -> Offsets | None:
    """How far the log was folded into a generation; None where there is no such generation, or it cannot be read."""
    with suppress(StoreError, OSError, KeyError, ValueError):
        if file := _file_of(home, key, read_generation(home, previous=previous)):
            return _offsets(file)
    return None


def oldest_of(home: Layout, key: str) -> int | None:
    """When the first of the folded messages was written; None where there is none, or that cannot be read."""
    with suppress(StoreError, OSError, ValueError):
        if file := _file_of(home, key, read_generation(home)):
            oldest: int | None = pc.min(pq.read_table(file, columns=["at"])["at"]).as_py()
            return oldest
    return None


def write_folded(home: Layout, messages: Sequence[Written], offsets: Offsets) -> str:
    """Write the file of a generation that is to be published, synced; returns its name, which is the revision.

    Raises:
        FullDiskError: there is no space for it.
    """
    rows = [{**asdict(each.message), "repeats": each.repeats} for each in messages]
    about = {_OFFSETS: orjson.dumps(offsets.ends, option=orjson.OPT_SORT_KEYS)}
    table = pa.Table.from_pylist(rows, MESSAGES.with_metadata(about))
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    content = sink.getvalue()
    name = digest(content)
    file = _file(home, name)
    if not file.exists():
        with replacing(file) as temporary:
            temporary.write_bytes(content)
        sync_new([file], home.home.parent)
    return name


def remove_unused(home: Layout, key: str) -> None:
    """Remove the files that neither the published generation nor the one before it names."""
    used = [_file_of(home, key, read_generation(home, previous=previous)) for previous in (False, True)]
    for file in home.entries(home.messages):
        if file not in used:
            file.unlink(missing_ok=True)


def _file_of(home: Layout, key: str, generation: Generation | None) -> Path | None:
    """The file of the messages that a generation names."""
    source = generation.sources.get(key) if generation else None
    return _file(home, source.revision or "") if source else None


def _offsets(file: Path) -> Offsets:
    return Offsets(orjson.loads((pq.read_metadata(file).metadata or {})[_OFFSETS]))


def _file(home: Layout, name: str) -> Path:
    return home.messages / f"{name}.parquet"


def _as_written(row: dict[str, Any]) -> Written:
    repeats, anchors = row.pop("repeats"), tuple(Anchor(**anchor) for anchor in row.pop("anchors"))
    return Written(Message(**row, anchors=anchors), repeats)
