"""Edits of JSON, TOML and rules files that agents read.

Edits of TOML and rules files keep other entries, comments and layout. JSON is rewritten with the file's indentation. A
JSON file with comments is rejected, with a message that says what to add by hand. Each edited JSON or TOML text is
parsed again and compared with the intended data.
"""

import json
import math
import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NoReturn

from docindex_dagster.cli.agents.catalogue import Format

_WHITE = " \t\r\n"
_BLANK = _WHITE + "\ufeff"
_INDENTED = re.compile(r"\n([ \t]+)\S")
# An unterminated string or comment matches to the end of the text, so that its end is searched for only once.
_STRING = r'"(?:[^"\\]|\\.?)*+(?:"|\Z)'
_COMMENT = re.compile(rf"{_STRING}|//[^\r\n]*|/\*.*?\*/|(/\*.*)", re.DOTALL)
_TRAILING_COMMA = re.compile(rf"{_STRING}|,(?=[ \t\r\n]*[\]}}])", re.DOTALL)
_VISIBLE = re.compile(r"[^\r\n]")
_DEFAULT = "docindex"  # default name of the server
# Cursor always applies a rule with this front matter.
_FRONT_MATTER = "---\ndescription: Searching this project with docindex\nalwaysApply: true\n---\n\n"
_TEXT = """\
## Finding things in this project

The tools of the MCP server `{name}` search an index of this project's code, documentation and commits. If they are
available, use them before you read files one by one:

- `search` finds the passages that answer a question or define a name; its modes `literal` and `regex` list every match
- `context` returns the best passages for a task, within a token budget
- `graph` shows who calls a symbol, what it calls, and what a change to it affects; `find_similar` finds similar code
- `show` prints a passage in full, `log` its commits, `status` how fresh the index is

Results name files and lines. Open those before you edit them.
"""


class TextError(ValueError):
    """A text is invalid in its format, or cannot be edited in its current form."""


def parsed(text: str | None, form: Format) -> dict[str, Any]:
    """Parse a text; None and a blank text are an empty object.

    Raises:
        TextError: The text is invalid, or not an object. The message names the line.
    """
    text = (text or "").removeprefix("\ufeff")
    if not text.strip(_BLANK):
        return {}
    if form == "json" and _plain(text) != text:
        raise TextError("comments and trailing commas are not supported by this agent")
    try:
        data = tomllib.loads(text) if form == "toml" else _JSON.decode(_plain(text))
    except RecursionError as error:
        raise TextError("the file is nested too deeply") from error
    except ValueError as error:
        raise TextError(str(error)) from error
    if not isinstance(data, dict):
        raise TextError("line 1: not an object")
    return data


def with_entry(text: str | None, form: Format, group: str, name: str, data: Mapping[str, Any] | None) -> str | None:
    """Return a text in which an entry of a group is set, or removed if `data` is None; None if nothing is left.

    A missing group is added, and an empty one removed.

    Raises:
        TextError: The text is invalid, or cannot be edited.
    """
    before, text = parsed(text, form), text or ""
    entries = {key: value for key, value in before.get(group, {}).items() if key != name or data is not None}
    entries |= {} if data is None else {name: data}
    wanted = {key: value for key, value in before.items() if key != group or entries}
    wanted |= {group: entries} if entries else {}
    edited = _toml(text, group, name, data) if form == "toml" else _json(text, wanted)
    with suppress(TextError):
        if is_utf8(edited) and {group: {}, **parsed(edited, form)} == {group: {}, **wanted}:
            return edited if edited.strip(_BLANK) else None
    raise TextError("the file has a form that cannot be edited")


def _toml(text: str, group: str, name: str, data: Mapping[str, Any] | None) -> str:
    rest = _without_tables(text, group, name)
    if data is None:
        return rest
    import tomlkit

    newline, rest = _newline(text), rest.rstrip(_WHITE)
    block = tomlkit.dumps({group: {name: data}}).replace("\n", newline)
    return f"{rest}{newline}{newline}{block}" if rest else block


def _json(text: str, data: Mapping[str, Any]) -> str:
    bare = text.removeprefix("\ufeff")
    if _plain(bare) != bare:
        raise TextError("the file has comments or trailing commas, which an edit would lose")
    if not data:
        return ""
    unit, end = _INDENTED.search(bare), bare[len(bare.rstrip(_WHITE)) :] if bare.strip(_WHITE) else "\n"
    mark = text[: len(text) - len(bare)]
    return mark + _dumped(data, unit[1] if unit else "  ").replace("\n", _newline(text)) + end


def _without_tables(text: str, group: str, name: str) -> str:
    """Remove the table of an entry and its subtables. Keep comments and blank lines above the next table."""
    keys = (rf"""(?:{re.escape(key)}|"{re.escape(key)}"|'{re.escape(key)}')""" for key in (group, name))
    header = re.compile(r"\[[ \t]*" + r"[ \t]*\.[ \t]*".join(keys) + r"[ \t]*[\].]")
    kept: list[str] = []
    above: list[str] = []  # blank lines and comments; they belong to the next table unless this one continues
    is_inside = False
    for line in text.split("\n"):
        bare = line.strip()
        if bare.startswith("["):
            kept += above
            above, is_inside = [], header.match(bare) is not None
            if is_inside and kept and not kept[-1].strip():
                kept.pop()
        if not is_inside:
            kept.append(line)
        else:
            above = [*above, line] if not bare or bare.startswith("#") else []
    return "\n".join(kept + above)


def _plain(text: str) -> str:
    """Return JSON with comments and trailing commas replaced by spaces."""

    def blank(found: re.Match[str]) -> str:
        return found[0] if found[0].startswith('"') or found.lastindex else _VISIBLE.sub(" ", found[0])

    return _TRAILING_COMMA.sub(blank, _COMMENT.sub(blank, text))


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _dumped(data: Any, unit: str, indent: str = "") -> str:
    """Format JSON with one line per member, except for lists of plain values."""
    inner, is_list = indent + unit, isinstance(data, list)
    is_plain = is_list and not any(isinstance(value, dict | list) for value in data)
    if is_plain or not data or not isinstance(data, dict | list):
        return json.dumps(data, ensure_ascii=False)
    values = (("", value) for value in data) if is_list else ((f"{json.dumps(key)}: ", data[key]) for key in data)
    lines = ",\n".join(f"{inner}{key}{_dumped(value, unit, inner)}" for key, value in values)
    return f"[\n{lines}\n{indent}]" if is_list else f"{{\n{lines}\n{indent}}}"


def is_utf8(text: str) -> bool:
    """Return whether a text can be encoded: it has no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _number(text: str) -> float:
    return float(text) if math.isfinite(float(text)) else _refuse(text)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("duplicate key")
    return found


_JSON = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_number)


def instruction(name: str) -> str:
    """Return the instruction for agents about a server."""
    begin, end = _marks(name)
    return f"{begin}\n{_TEXT.format(name=name)}{end}"


def has_rules(text: str | None, name: str) -> bool:
    """Return whether a text has the block of a server."""
    return text is not None and _marks(name)[0] in text


def with_rules(text: str | None, name: str, *, has_front_matter: bool) -> str:
    """Return a text with the block, which replaces an existing one or is added at the end.

    Args:
        text: the text of the file; None if it does not exist.
        name: the name of the server.
        has_front_matter: whether a new file gets a front matter.

    Raises:
        TextError: The block has lost one of its markers, or there are several.
    """
    block, found = instruction(name), _block(text, name)
    if text is None:
        return (_FRONT_MATTER if has_front_matter else "") + block + "\n"
    newline = _newline(text if found is None else found[0])
    block = block.replace("\n", newline)
    if found is not None:
        return text[: found.start()] + block + text[found.end() :]
    if not text:
        return block
    return text + newline + block + newline if text.endswith("\n") else text + newline * 2 + block


def without_rules(text: str, name: str) -> str | None:
    """Return a text without the block; None if the file was created for it.

    Raises:
        TextError: As for `with_rules`.
    """
    found = _block(text, name)
    if found is None:
        return text
    before, behind = text[: found.start()], text[found.end() :]
    if behind in {"\n", "\r\n"} and before in {"", _FRONT_MATTER}:
        return None
    newline = _newline(found[0])
    if not behind:
        return before.removesuffix(newline * 2)
    if not behind.startswith(newline):
        return before + behind
    above = before.removesuffix(newline)
    return (above if above.endswith("\n") else before) + behind.removeprefix(newline)


def _marks(name: str) -> tuple[str, str]:
    """Return the lines that delimit the block of a server. Each server has its own block."""
    label = _DEFAULT if name == _DEFAULT else f"{_DEFAULT} ({name})"
    return f"<!-- {label}: begin -->", f"<!-- {label}: end -->"


def _block(text: str | None, name: str) -> re.Match[str] | None:
    """Find the block of a server in a text.

    Raises:
        TextError: The block has lost one of its markers, or there are several.
    """
    begin, end = _marks(name)
    found = re.search(f"{re.escape(begin)}.*?{re.escape(end)}", text or "", re.DOTALL)
    marks = (text or "").count(begin), (text or "").count(end)
    if marks != ((1, 1) if found else (0, 0)):
        raise TextError(f"expected {begin} and {end} exactly once each; fix this by hand")
    return found
