"""Summaries that were paid for: a file a source, to which each is appended as it arrives, so that no kill loses one.

The run that holds the lock of a source writes its file; those of other branches of the repository read it, too. A line
is a JSON list of a key and the summary, or null where the question was asked in vain. Lines that are no such thing,
such as the torn one of a run that was killed, are passed over.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from docindex_dagster.core.files import replacing
from docindex_dagster.core.layout import Layout

# Beyond so many lines, or three times as many as the source needs now, the oldest are forgotten.
_MOST_LINES = 5000
_MOST_TIMES = 3


@dataclass(frozen=True, slots=True)
class Found:
    """The summaries by key, and the keys that were asked about in vain."""

    summaries: dict[str, str] = field(default_factory=dict)
    in_vain: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class SummaryCache:
    """The summaries of the source `key`."""

    layout: Layout
    key: str

    def find(self, wanted: Collection[str]) -> Found:
        """What is known of the keys: from its own file, and where that lacks some, from other branches' files."""
        found = Found()
        for file in reversed(self.layout.summaries_of_repository(self.key)):
            missing = wanted - found.summaries.keys()
            if not missing:
                break
            for key, summary in _lines(file):
                if key in missing and summary is not None:
                    found.summaries[key] = summary
                elif key in missing:
                    found.in_vain.add(key)
        return found

    @contextmanager
    def adding(self) -> Iterator[Callable[[str, str | None], None]]:
        """Yield what writes a line at once."""
        own = self.layout.summaries(self.key)
        own.parent.mkdir(parents=True, exist_ok=True)
        with own.open("ab", buffering=0) as file:
            if file.tell():
                file.write(b"\n")  # the last line may be torn

            def add(key: str, summary: str | None) -> None:
                file.write(orjson.dumps([key, summary]) + b"\n")

            yield add

    def tidy(self, needed: Collection[str]) -> None:
        """Forget the oldest where there are very many; what is needed stays."""
        own = self.layout.summaries(self.key)
        most = max(_MOST_LINES, _MOST_TIMES * len(needed))
        known: dict[str, str | None] = {}
        count = 0
        for key, summary in _lines(own):
            before = known.pop(key, None)
            known[key] = summary or before  # the newest last
            count += 1
        if count <= 2 * most:
            return
        kept = {*list(known)[-most:], *needed}
        with replacing(own) as temporary:
            lines = (orjson.dumps([key, summary]) + b"\n" for key, summary in known.items() if key in kept)
            temporary.write_bytes(b"".join(lines))


def _lines(file: Path) -> Iterator[tuple[str, str | None]]:
    try:
        with file.open("rb") as lines:
            for line in lines:
                match _parsed(line):
                    case [str(key), str() | None as summary]:
                        yield key, summary
    except FileNotFoundError:
        return


def _parsed(line: bytes) -> object:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
