"""The messages of a domain as JSON, one a line."""

from collections.abc import Iterable, Iterator

import orjson

from docindex_dagster.memory.transcript import Written


def lines(written: Iterable[Written]) -> Iterator[bytes]:
    """A line for each message, with how often it came again."""
    for each in written:
        yield orjson.dumps({"message": each.message, "repeats": each.repeats}, option=orjson.OPT_APPEND_NEWLINE)
