"""The messages of a domain as JSON, one a line."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace

import orjson

from docindex_dagster.core.errors import LogError
from docindex_dagster.memory.log import NOTHING, Log
from docindex_dagster.memory.message import Message, Record
from docindex_dagster.memory.position import Offsets
from docindex_dagster.memory.transcript import Transcript, Written


def lines(written: Iterable[Written]) -> Iterator[bytes]:
    """A line for each message, with how often it came again."""
    for each in written:
        yield orjson.dumps({"message": each.message, "repeats": each.repeats}, option=orjson.OPT_APPEND_NEWLINE)


def messages(log: Log, folded: Offsets = NOTHING) -> Iterator[Written]:
    """The messages of a log that are not folded, by time, then by id, with one segment in memory at most.

    Raises:
        LogError: a later version of docindex wrote it, the folder is a symbolic link, or a file was damaged meanwhile.
    """
    last: tuple[int, str] | None = None
    while True:
        with suppress(FileNotFoundError):  # a rewrite came between: go on with what it retained
            for each in _without_texts(log, folded):
                place = each.message.at, each.message.id
                if last is None or place > last:
                    yield replace(each, message=_message(log.entry(each.position).record))
                    last = place
            return


def _without_texts(log: Log, folded: Offsets) -> list[Written]:
    transcript = Transcript()
    for part in log.parts(folded):
        transcript.add(replace(entry, record=_without_text(entry.record)) for entry in part.entries)
    return transcript.messages()


def _without_text(record: Record) -> Record:
    return replace(record, text="", anchors=()) if isinstance(record, Message) else record


def _message(record: Record) -> Message:
    if not isinstance(record, Message):
        raise LogError("a message was overwritten by another record")
    return record
