"""Setting and removing tables of a TOML text: nothing else in it changes, neither comments nor layout.

A new table stands at the end, and is removed to the byte. One that is there already, or that stands in an inline table,
is edited by tomlkit. Whatever was edited is parsed again, and has to hold what it should.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from docindex_dagster.agents.json_text import TextError

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

_HEADER = re.compile(r"[ \t]*\[")
_BARE = re.compile(r"[A-Za-z0-9_-]+")


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
    wanted = deepcopy(before)
    inner = wanted
    for key in path[:-1]:
        inner = inner.setdefault(key, {})
        if not isinstance(inner, dict):
            raise TextError(f"{key} is no table")
    if inner.get(path[-1]) == data:
        return text or ""
    is_new = path[-1] not in inner
    inner[path[-1]] = dict(data)
    ways = ([_appended] if is_new else []) + [_set_by_tomlkit]
    for way in ways:
        new = way(text, path, data)
        if new is not None and _holds(new, wanted):
            return new
    raise TextError(f"{'.'.join(path)} is written in a form that cannot be edited")


def remove_table(text: str, path: Sequence[str]) -> str | None:
    """A text without the table at a path; None where the whole file was made for it.

    Raises:
        TextError: the text is no TOML, or cannot be edited.
    """
    before = parsed(text)
    if not _has(before, path):
        return text
    wanted = _removed(before, path)
    for new in (*_cuts(text, path), _removed_by_tomlkit(text, path)):
        if new is not None and _is_without(new, wanted, path):
            return None if not new and text.endswith("\n") else new
    raise TextError(f"{'.'.join(path)} is written in a form that cannot be edited")


def _removed(before: Mapping[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """What is left without a table, and without tables that held nothing else."""
    key, *others = path
    after = dict(before)
    if others and isinstance(after.get(key), dict):
        after[key] = _removed(after[key], others)
    if not others or after.get(key) == {}:
        after.pop(key, None)
    return after


def _is_without(text: str, wanted: Mapping[str, Any], path: Sequence[str]) -> bool:
    """Whether a text holds what is wanted, apart from empty tables around the one that was removed."""
    try:
        found = parsed(text)
    except TextError:
        return False
    return not _has(found, path) and _removed(found, path) == wanted


def _has(data: Any, path: Sequence[str]) -> bool:
    for key in path:
        if not isinstance(data, Mapping) or key not in data:
            return False
        data = data[key]
    return True


def _holds(text: str, wanted: Mapping[str, Any]) -> bool:
    try:
        return parsed(text) == wanted
    except TextError:
        return False


def _appended(text: str | None, path: Sequence[str], data: Mapping[str, Any]) -> str:
    """The text with the table at its end. Where the last line has no end, the table's has none."""
    newline = "\r\n" if "\r\n" in (text or "") else "\n"
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
    """The text without the lines of a table: of the last that looks like it, then of all, and of those in it."""
    name = r"[ \t]*\.[ \t]*".join(rf"""(?:{re.escape(key)}|"{re.escape(key)}"|'{re.escape(key)}')""" for key in path)
    header = re.compile(rf"[ \t]*\[[ \t]*{name}[ \t]*[].]")
    lines = text.splitlines(keepends=True)
    found = [at for at, line in enumerate(lines) if header.match(line)]
    for headers in ([*found[-1:]], found):
        yield _without(lines, headers)


def _without(lines: Sequence[str], headers: Sequence[int]) -> str:
    """Lines without those of some tables. Comments and blank lines behind a table belong to what comes next."""
    left: list[str] = []
    at = 0
    while at < len(lines):
        if at not in headers:
            left.append(lines[at])
            at += 1
            continue
        end = at + 1
        end += sum(1 for _ in takewhile(lambda line: _HEADER.match(line) is None, lines[end:]))
        while end > at + 1 and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
            end -= 1
        if left and not left[-1].strip():
            left.pop()
        if left and not lines[end - 1].endswith("\n"):
            left[-1] = left[-1].rstrip("\r\n")
        at = end
    return "".join(left)


def _set_by_tomlkit(text: str | None, path: Sequence[str], data: Mapping[str, Any]) -> str | None:
    import tomlkit

    document = _document(text or "")
    if document is None:
        return None
    inner: Any = document
    for key in path[:-1]:
        inner = inner.setdefault(key, tomlkit.table(is_super_table=True))
    if path[-1] not in inner:
        inner[path[-1]] = {}
    _fill(inner[path[-1]], data)
    return tomlkit.dumps(document)


def _fill(table: Any, data: Mapping[str, Any]) -> None:
    """Give a table what it shall hold, touching nothing that is right already."""
    for key in [key for key in table if key not in data]:
        del table[key]
    for key, value in data.items():
        if isinstance(value, Mapping) and isinstance(table.get(key), dict):
            _fill(table[key], value)
        elif key not in table or table[key] != value:
            table[key] = _item(value)


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
    return tomlkit.dumps(document)


def _document(text: str) -> "TOMLDocument | None":
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        return tomlkit.parse(text)
    except TOMLKitError:
        return None
