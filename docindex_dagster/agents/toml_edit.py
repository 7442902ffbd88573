"""Setting and removing tables of a TOML text: nothing else in it changes, neither comments nor layout.

A new table stands at the end, and is removed to the byte. An old table is removed first. Where tables have no headers,
because they are inline tables or written key by key, tomlkit edits the whole text. Each edited text is parsed again and
must hold what it should.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from docindex_dagster.agents import nested
from docindex_dagster.agents.json_text import TextError

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

_HEADER = re.compile(r"[ \t]*\[")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_LONE_LINE_BREAK = re.compile(r"(?<!\r)\n")


def parsed(text: str) -> dict[str, Any]:
    """What a text holds.

    Raises:
        TextError: it is not TOML; the message says where.
    """
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise TextError(str(error)) from error


def set_table(text: str | None, path: Sequence[str], data: Mapping[str, Any]) -> str:
    """A text in which the table at a path holds what it should.

    Args:
        text: of the file; None where there is none.
        path: the keys that lead to the table.
        data: what it shall hold, and nothing else.

    Raises:
        TextError: the text is no TOML, or cannot be edited.
    """
    before = parsed(text or "")
    try:
        wanted = nested.with_value(before, path, dict(data))
    except TypeError as error:
        raise TextError(str(error)) from error
    if before == wanted:
        return text or ""
    rest = None if text is None else remove_table(text, path)
    for new in (_appended(rest, path, data), _added_by_tomlkit(rest or "", path, data)):
        if new is not None and _holds(new, wanted):
            return new
    raise TextError(f"{'.'.join(path)} is written in a form that cannot be edited")


def remove_table(text: str, path: Sequence[str]) -> str | None:
    """A text without the table at a path; None where the whole file was made for it.

    Raises:
        TextError: the text is no TOML, or cannot be edited.
    """
    before = parsed(text)
    if not nested.has(before, path):
        return text
    for new in (*_cuts(text, path), _removed_by_tomlkit(text, path)):
        if new is not None and _is_without(new, before, path):
            return None if not new and text.endswith("\n") else new
    raise TextError(f"{'.'.join(path)} is written in a form that cannot be edited")


def _is_without(text: str, before: Mapping[str, Any], path: Sequence[str]) -> bool:
    """Whether a text holds what was there before, without a table."""
    try:
        return nested.is_only_without(parsed(text), before, path)
    except TextError:
        return False


def _holds(text: str, wanted: Mapping[str, Any]) -> bool:
    try:
        return parsed(text) == wanted
    except TextError:
        return False


def _appended(text: str | None, path: Sequence[str], data: Mapping[str, Any]) -> str:
    """The text with the table at its end. Where the last line has no end, the table's has none."""
    newline = _line_end(text or "")
    block = newline.join(_lines(path, data))
    if text is None:
        return block + newline
    if not text:
        return block
    is_ended = text.endswith("\n")
    return text + newline + block + newline if is_ended else text + newline * 2 + block


def _lines(path: Sequence[str], data: Mapping[str, Any]) -> list[str]:
    """The lines of a table; tables in it are inline ones."""
    return [f"[{'.'.join(map(_key, path))}]", *(f"{_key(key)} = {_value(value)}" for key, value in data.items())]


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _value(key)


def _value(value: Any) -> str:
    import tomlkit

    if isinstance(value, Mapping):
        pairs = ", ".join(f"{_key(key)} = {_value(inner)}" for key, inner in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    return str(tomlkit.item(value).as_string())


def _cuts(text: str, path: Sequence[str]) -> Iterator[str]:
    """The text without the lines of a table and of those in it: of each header that looks like its own, then of all."""
    lines = text.splitlines(keepends=True)
    own, inner = _headers(lines, path, "]"), _headers(lines, path, "[.]")
    for headers in (*([at, *inner] for at in own), [*own, *inner]):
        yield _without(lines, headers)


def _headers(lines: Sequence[str], path: Sequence[str], end: str = "]") -> list[int]:
    """The lines that look like the header of a table, or whatever has another end; the last one first."""
    name = r"[ \t]*\.[ \t]*".join(rf"""(?:{re.escape(key)}|"{re.escape(key)}"|'{re.escape(key)}')""" for key in path)
    header = re.compile(rf"[ \t]*\[[ \t]*{name}[ \t]*{end}")
    return [at for at, line in reversed([*enumerate(lines)]) if header.match(line)]


def _end(lines: Sequence[str], at: int) -> int:
    """Where the table whose header is a line ends. Comments and blank lines behind it belong to what comes next."""
    end = at + 1
    end += sum(1 for _ in takewhile(lambda line: _HEADER.match(line) is None, lines[end:]))
    while end > at + 1 and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    return end


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _without(lines: Sequence[str], headers: Sequence[int]) -> str:
    """Lines without those of some tables."""
    left: list[str] = []
    at = 0
    while at < len(lines):
        if at not in headers:
            left.append(lines[at])
            at += 1
            continue
        end = _end(lines, at)
        if left and not left[-1].strip():
            left.pop()
        if left and not lines[end - 1].endswith("\n"):
            left[-1] = left[-1].rstrip("\r\n")
        at = end
    return "".join(left)


def _added_by_tomlkit(text: str, path: Sequence[str], data: Mapping[str, Any]) -> str | None:
    """Add a table to groups that are inline tables or written key by key."""
    import tomlkit

    document = _document(text)
    if document is None:
        return None
    inner: Any = document
    for key in path[:-1]:
        inner = inner.setdefault(key, tomlkit.table(is_super_table=True))
    inner[path[-1]] = {key: _item(value) for key, value in data.items()}
    return _as_it_was(tomlkit.dumps(document), text)


def _item(value: Any) -> Any:
    """A value as it stands in a table: a table in it is an inline one."""
    import tomlkit

    if not isinstance(value, Mapping):
        return value
    inline = tomlkit.inline_table()
    inline.update(value)
    return inline


def _removed_by_tomlkit(text: str, path: Sequence[str]) -> str | None:
    import tomlkit

    document = _document(text)
    if document is None:
        return None
    inner: Any = document
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return _as_it_was(tomlkit.dumps(document), text)


def _as_it_was(new: str, old: str) -> str | None:
    """What tomlkit wrote, with the line ends of the old text; None where it took comments, which may be of others."""
    comments = [[line for line in text.splitlines() if line.lstrip().startswith("#")] for text in (new, old)]
    return _LONE_LINE_BREAK.sub(_line_end(old), new) if comments[0] == comments[1] else None


def _document(text: str) -> "TOMLDocument | None":
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        return tomlkit.parse(text)
    except TOMLKitError:
        return None
