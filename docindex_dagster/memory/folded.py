"""The messages of a domain that were folded: a file beside the stores, which the generation names by its revision.

It also says how far the log was folded. So which messages are folded, and which are read from the log, changes with the
one step that publishes a generation.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from docindex_dagster.core.errors import StoreError
from docindex_dagster.core.files import replacing, sync_new
from docindex_dagster.core.hashing import digest
from docindex_dagster.core.layout import Layout
from docindex_dagster.memory.contents import Written
from docindex_dagster.memory.message import Anchor, Message, Offsets
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


def read_folded(home: Layout, key: str, *, previous: bool = False) -> Folded:
    """What the published generation of a domain holds, or the one before it; nothing where nothing was folded.

    Raises:
        StoreError: it cannot be read.
        DamagedStoreError: the file of its messages is missing or damaged.
    """
    generation = read_generation(home, previous=previous)
    source = generation.sources.get(key) if generation else None
    if generation is None or source is None:
        return Folded(generation=generation)
    file = _file(home, source.revision or "")
    try:
        table = pq.read_table(file, schema=MESSAGES, memory_map=False)
        offsets = Offsets(orjson.loads((pq.read_schema(file).metadata or {})[_OFFSETS]))
    except (OSError, KeyError, ValueError) as error:  # of pyarrow, too
        raise damaged(f"{file.name}, the messages of {key}, cannot be read: {error}") from error
    return Folded(tuple(map(_as_written, table.to_pylist())), offsets, generation)


def offsets_of(home: Layout, key: str, *, previous: bool = False) -> Offsets | None:
    """How far the log was folded into a generation; None where there is no such generation, or it cannot be read."""
    try:
        generation = read_generation(home, previous=previous)
        source = generation.sources.get(key) if generation else None
        if source is None:
            return None
        metadata = pq.read_schema(_file(home, source.revision or "")).metadata or {}
        return Offsets(orjson.loads(metadata[_OFFSETS]))
    except (StoreError, OSError, KeyError, ValueError):
        return None


def oldest_of(home: Layout, key: str) -> int | None:
    """When the first of the folded messages was written; None where there is none, or that cannot be read."""
    try:
        generation = read_generation(home)
        source = generation.sources.get(key) if generation else None
        if source is None:
            return None
        metadata = pq.read_metadata(_file(home, source.revision or ""))
        column = metadata.schema.names.index("at")
        groups = [metadata.row_group(number).column(column).statistics for number in range(metadata.num_row_groups)]
        return min((group.min for group in groups if group is not None and group.has_min_max), default=None)
    except (StoreError, OSError, ValueError):
        return None


def write_folded(home: Layout, messages: Sequence[Written], offsets: Offsets) -> str:
    """Write the file of a generation that is to be published, synced; returns its name, which is the revision.

    Raises:
        FullDiskError: there is no space for it.
    """
    rows = [_as_row(each) for each in messages]
    columns = [pa.array([row[field.name] for row in rows], field.type) for field in MESSAGES]
    about = {_OFFSETS: orjson.dumps(offsets.ends, option=orjson.OPT_SORT_KEYS)}
    table = pa.Table.from_arrays(columns, schema=MESSAGES).replace_schema_metadata(about)
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
    used = set()
    for previous in (False, True):
        generation = read_generation(home, previous=previous)
        if generation is not None and key in generation.sources:
            used.add(_file(home, generation.sources[key].revision or ""))
    for file in home.entries(home.messages):
        if file not in used:
            file.unlink(missing_ok=True)


def _file(home: Layout, name: str) -> Path:
    return home.messages / f"{name}.parquet"


def _as_row(written: Written) -> dict[str, Any]:
    message = written.message
    anchors = [asdict(anchor) for anchor in message.anchors]
    row = {name: getattr(message, name) for name in ("id", "session", "role", "tool", "text", "at")}
    return {**row, "anchors": anchors, "repeats": written.repeats}


def _as_written(row: dict[str, Any]) -> Written:
    repeats, anchors = row.pop("repeats"), tuple(Anchor(**anchor) for anchor in row.pop("anchors"))
    return Written(Message(**row, anchors=anchors), repeats)
