"""What a text that a user typed may name: a file, lines of it, a chunk, a symbol or a commit.

Every command, tool and endpoint reads references here, so that each accepts what the others print.
"""

import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

_LONGEST = 4096  # characters; the longest path that Linux opens
_MOST_MARKS = 8  # of one kind, at which a text is split
_CHUNK_ID = re.compile(r"[0-9a-f]{32}")
_COMMIT = re.compile(r"(?:commit\s+)?(?P<hash>[0-9a-f]{7,64})", re.IGNORECASE)
_CHUNK = re.compile(r"(?P<path>.+)::(?P<index>\d{1,9})", re.DOTALL)
_AFTER_SOURCE = re.compile(r"\s+|::|!|:\s*|/")
# `:LINE`, `:LINE:COLUMN`, `:FIRST-LAST`, and `:LINE,LINE`, of which the first counts. What GitHub writes: `#L10`,
# `#L10-L20`, `#L10C5-L20C7`, `?plain=1#L10`.
_LINES = (
    r"(?:\?plain=1)?(?::L?|#L)(?P<first>\d{1,9})(?:C\d{1,9})?"
    r"(?:-L?(?P<last>\d{1,9})(?:C\d{1,9})?|:\d{1,9}|(?:,\d{1,9}){1,20})?:?"
)
_PLACES = tuple(re.compile(rf"(?P<path>{any_path}){_LINES}", re.DOTALL) for any_path in (".+?", ".+"))
_ARGUMENTS = re.compile(r"\(.*\)\Z", re.DOTALL)
_OVERLOAD = re.compile(r"~\d+\Z")
_SEPARATOR = re.compile(r"::|->|[#\\]")
_SYMBOL = re.compile(r"[^\W\d][\w$.~!?]*")


@dataclass(frozen=True, slots=True)
class Reference:
    """One way to read a text that a user typed.

    Attributes:
        path: a file: as it was typed, or as its source names it. Empty where no file is named.
        source: the key of the source that the text names.
        lines: the first and the last line, from 1 and inclusive; in the order in which they were typed.
        chunk: the position of a chunk in its file, from 0.
        symbol: a qualified name, or the titles above a section, joined by " > "; in the file, else anywhere.
        id: a chunk's id, or how a commit's hash begins.
    """

    path: str = ""
    source: str | None = None
    lines: tuple[int, int] | None = None
    chunk: int | None = None
    symbol: str = ""
    id: str = ""


def parse(text: str, sources: Collection[str] = ()) -> tuple[Reference, ...]:
    """Return all ways to read a text, the most literal first.

    Args:
        text: what the user typed.
        sources: the keys that may stand before a path, as `SOURCE PATH`, `SOURCE::PATH::INDEX` or `SOURCE!PATH`.
    """
    return tuple(dict.fromkeys(replace(one, path=_normal(one.path)) for one in _readings(text, sources)))


def without_arguments(symbol: str) -> str:
    """Return a symbol without the arguments of a call: `Cart.add` of `Cart.add(x, y)`."""
    return _ARGUMENTS.sub("", symbol)


def _normal(path: str) -> str:
    """Return a path without dots and slashes that mean nothing."""
    return posixpath.normpath(path) if path else ""


def _readings(text: str, sources: Collection[str]) -> Iterator[Reference]:
    yield Reference(text)
    if len(text) > _LONGEST:
        return
    for written in dict.fromkeys((text.strip(), text.strip().replace("\\", "/"))):  # a name may hold backslashes
        yield from _read(written, None)
        for source, rest in _owned(written, sources):
            yield from _read(rest, source)


def _owned(text: str, sources: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield each source whose key or unique name a text begins with, and what follows."""
    count = Counter(key.partition("/")[2] for key in sources)
    named = {name: key for key in sources if count[name := key.partition("/")[2]] == 1}
    for name, key in ({key: key for key in sources} | named).items():
        mark = _AFTER_SOURCE.match(text, len(name)) if text.startswith(name) else None
        if mark and (rest := text[mark.end() :]):
            yield key, rest


def _read(text: str, source: str | None) -> Iterator[Reference]:
    if _CHUNK_ID.fullmatch(text):
        yield Reference(source=source, id=text)
    if source and (chunk := _CHUNK.fullmatch(text)):
        yield Reference(chunk["path"], source, chunk=int(chunk["index"]))
    yield Reference(text, source)
    for pattern in _PLACES:
        if place := pattern.fullmatch(text):
            yield Reference(place["path"], source, (int(place["first"]), int(place["last"] or place["first"])))
    for path, symbol in _split(text, "::"):
        yield Reference(path, source, symbol=_OVERLOAD.sub("", without_arguments(symbol)))
    for path, titles in _split(text, "#"):
        yield Reference(path, source, symbol=titles)
    if commit := _COMMIT.fullmatch(text):
        yield Reference(source=source, id=commit["hash"].lower())
    symbol = _OVERLOAD.sub("", _SEPARATOR.sub(".", without_arguments(text)))
    if _SYMBOL.fullmatch(symbol):
        yield Reference(source=source, symbol=symbol)


def _split(text: str, mark: str) -> Iterator[tuple[str, str]]:
    """Yield what is before and after a mark, for the first few places where it occurs."""
    at = text.find(mark, 1)
    for _ in range(_MOST_MARKS):
        if at < 0 or at + len(mark) == len(text):
            return
        yield text[:at], text[at + len(mark) :]
        at = text.find(mark, at + 1)
