"""Parsing of references: text from a user that names a file, lines, a chunk, a symbol or a commit.

Every command, tool and endpoint parses references here, so each accepts what the others print.
"""

import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

_MAX_CHARS = 4096  # the longest path that Linux opens
_MAX_SPLITS = 8  # per separator
_CHUNK_ID = re.compile(r"[0-9a-f]{32}")
_COMMIT = re.compile(r"(?:commit\s+)?(?P<hash>[0-9a-f]{7,64})", re.IGNORECASE)
_CHUNK = re.compile(r"(?P<path>.+)::(?P<index>\d{1,9})", re.DOTALL)
_AFTER_SOURCE = re.compile(r"\s+|::|!|:\s*|/")
# `:LINE`, `:LINE:COLUMN`, `:FIRST-LAST`, and `:LINE,LINE`, where the first counts. GitHub's forms: `#L10`,
# `#L10-L20`, `#L10C5-L20C7`, `?plain=1#L10`.
_LINES = (
    r"(?:\?plain=1)?(?::L?|#L)(?P<first>\d{1,9})(?:C\d{1,9})?"
    r"(?:-L?(?P<last>\d{1,9})(?:C\d{1,9})?|:\d{1,9}|(?:,\d{1,9}){1,20})?:?"
)
_LOCATIONS = tuple(re.compile(rf"(?P<path>{any_path}){_LINES}", re.DOTALL) for any_path in (".+?", ".+"))
_ARGUMENTS = re.compile(r"\(.*\)\Z", re.DOTALL)
_OVERLOAD = re.compile(r"~\d+\Z")
_SEPARATOR = re.compile(r"::|->|[#\\]")
_SYMBOL = re.compile(r"[^\W\d][\w$.~!?]*")


@dataclass(frozen=True, slots=True)
class Reference:
    """One interpretation of a text that a user typed.

    Attributes:
        path: A file, as typed or as its source names it. Empty if the text names no file.
        source: The key of the source that the text names.
        lines: The first and last line, 1-based and inclusive, in the order typed.
        chunk: The position of a chunk in its file, 0-based.
        symbol: A qualified name, or a section's heading path joined by " > "; in the file if there is one, else
            anywhere.
        id: A chunk ID, or a prefix of a commit hash.
    """

    path: str = ""
    source: str | None = None
    lines: tuple[int, int] | None = None
    chunk: int | None = None
    symbol: str = ""
    id: str = ""


def parse(text: str, sources: Collection[str] = ()) -> tuple[Reference, ...]:
    """Return all interpretations of a text, the most literal first.

    Args:
        text: The text that the user typed.
        sources: The source keys that may precede a path, as in `SOURCE PATH`, `SOURCE::PATH::INDEX` or `SOURCE!PATH`.
    """
    return tuple(
        dict.fromkeys(replace(reference, path=_normal(reference.path)) for reference in _interpretations(text, sources))
    )


def without_arguments(symbol: str) -> str:
    """Return a symbol without call arguments: `Cart.add` for `Cart.add(x, y)`."""
    return _ARGUMENTS.sub("", symbol)


def _normal(path: str) -> str:
    """Return a path without redundant dots and slashes."""
    return posixpath.normpath(path) if path else ""


def _interpretations(text: str, sources: Collection[str]) -> Iterator[Reference]:
    yield Reference(text)
    if len(text) > _MAX_CHARS:
        return
    for variant in dict.fromkeys((text.strip(), text.strip().replace("\\", "/"))):  # names may contain backslashes
        yield from _interpret(variant, None)
        for source, rest in _split_source(variant, sources):
            yield from _interpret(rest, source)


def _split_source(text: str, sources: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield each source whose key or unique name the text starts with, and the rest of the text."""
    count = Counter(key.partition("/")[2] for key in sources)
    unique = {name: key for key in sources if count[name := key.partition("/")[2]] == 1}
    for name, key in ({key: key for key in sources} | unique).items():
        separator = _AFTER_SOURCE.match(text, len(name)) if text.startswith(name) else None
        if separator and (rest := text[separator.end() :]):
            yield key, rest


def _interpret(text: str, source: str | None) -> Iterator[Reference]:
    if _CHUNK_ID.fullmatch(text):
        yield Reference(source=source, id=text)
    if source and (chunk := _CHUNK.fullmatch(text)):
        yield Reference(chunk["path"], source, chunk=int(chunk["index"]))
    yield Reference(text, source)
    for pattern in _LOCATIONS:
        if match := pattern.fullmatch(text):
            yield Reference(match["path"], source, (int(match["first"]), int(match["last"] or match["first"])))
    for path, symbol in _split(text, "::"):
        yield Reference(path, source, symbol=_OVERLOAD.sub("", without_arguments(symbol)))
    for path, titles in _split(text, "#"):
        yield Reference(path, source, symbol=titles)
    if commit := _COMMIT.fullmatch(text):
        yield Reference(source=source, id=commit["hash"].lower())
    symbol = _OVERLOAD.sub("", _SEPARATOR.sub(".", without_arguments(text)))
    if _SYMBOL.fullmatch(symbol):
        yield Reference(source=source, symbol=symbol)


def _split(text: str, separator: str) -> Iterator[tuple[str, str]]:
    """Yield the text before and after a separator, for each of its first few occurrences."""
    at = text.find(separator, 1)
    for _ in range(_MAX_SPLITS):
        if at < 0 or at + len(separator) == len(text):
            return
        yield text[:at], text[at + len(separator) :]
        at = text.find(separator, at + 1)
