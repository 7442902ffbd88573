"""Setting and removing members of a JSON text: nothing else in it changes, neither comments nor layout.

What was set can be removed again to the byte, since the text shows how it was set: in an object that was empty, a
member stands directly behind the bracket; an object that was made for a member begins with a line break.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from docindex_dagster.agents.json_text import Value, is_blank, parse

_INDENTED = re.compile(r"\n([ \t]+)\S")
_LINE_BREAK = ("\n", "\r\n")


def set_member(text: str | None, path: Sequence[str], data: Any, *, has_comments: bool) -> str:
    """A text in which the member at a path has a value.

    Args:
        text: of the file; None where there is none.
        path: the keys that lead to the member; objects that are not there are made.
        data: its value, of JSON.
        has_comments: whether the format of the file allows comments.

    Raises:
        TextError: the text is no JSON, or has something else than objects on the path.
    """
    if text is None or is_blank(text):
        whole = _dumped(_wrapped(path, data), "", "  ", "\n")
        return whole + "\n" if text is None else text + whole
    value, depth = parse(text, has_comments=has_comments), 0
    while (member := value.member(path[depth])) is not None:
        value, depth = member.value, depth + 1
        if depth == len(path):
            if value.data == data:
                return text
            return text[: value.start] + _dumped(data, *_layout(text, member.start)) + text[value.end :]
    return _inserted(text, value, path[depth], _wrapped(path[depth + 1 :], data))


def remove_member(text: str, path: Sequence[str], *, has_comments: bool) -> str | None:
    """A text without the member at a path, and without the objects that were made for it.

    Returns:
        None where the whole file was made for it.

    Raises:
        TextError: the text is no JSON, or has something else than objects on the path.
    """
    if is_blank(text):
        return text
    values = [parse(text, has_comments=has_comments)]
    for key in path:
        if (member := values[-1].member(key)) is None:
            return text
        values.append(member.value)
    depth = len(path) - 1
    while depth >= 0 and _was_made(text, values[depth]):
        depth -= 1
    if depth < 0:
        around = text[: values[0].start], text[values[0].end :]
        return None if around == ("", "\n") else "".join(around)
    return _without(text, values[depth], path[depth])


def _was_made(text: str, value: Value) -> bool:
    """Whether an object was made for its only member: that begins a line, and nothing else is there."""
    if value.members is None or len(value.members) != 1 or value.commas:
        return False
    [member] = value.members
    before, behind = text[value.start + 1 : member.start], text[member.value.end : value.end - 1]
    return before.startswith(_LINE_BREAK) and not before.strip() and not behind.strip()


def _inserted(text: str, value: Value, key: str, data: Any) -> str:
    """The text with a further member at the end of an object."""
    if not value.members:
        at = value.start + 1
        return f"{text[:at]}{json.dumps(key)}: {_dumped(data, *_layout(text, value.start))}{text[at:]}"
    last = value.members[-1]
    has_trailing = len(value.commas) == len(value.members)
    at = max(last.value.end, value.last_comment, value.commas[-1] + 1 if has_trailing else 0)
    indent, unit, newline = _layout(text, last.start)
    space = text[last.space : last.start] or " "
    if value.last_comment:  # it may last to the end of the line, and spaces there would be part of it
        space = space.lstrip(" \t") if "\n" in space else newline + indent
    member = f"{space}{json.dumps(key)}: {_dumped(data, indent, unit, newline)}"
    if has_trailing:
        return f"{text[:at]}{member},{text[at:]}"
    return f"{text[: last.value.end]},{text[last.value.end : at]}{member}{text[at:]}"


def _without(text: str, value: Value, key: str) -> str:
    """The text without a member of an object, the space in front of it, and the comma that is not needed any more."""
    members = value.members or ()
    at = next(position for position, member in enumerate(members) if member.key == key)
    member, before, behind = members[at], text[: members[at].space], text[members[at].value.end :]
    if at < len(value.commas):
        comma = value.commas[at] - member.value.end
        behind = behind[:comma] + behind[comma + 1 :]
    elif at > 0:
        comma = value.commas[at - 1]
        before = before[:comma] + before[comma + 1 :]
    if member.is_below_comment and not behind.startswith(_LINE_BREAK):
        before += text[member.space : member.start]  # else what is behind would become part of the comment
    return before + behind


def _wrapped(path: Sequence[str], data: Any) -> Any:
    for key in reversed(path):
        data = {key: data}
    return data


def _layout(text: str, position: int) -> tuple[str, str, str]:
    """The indent of a line, how much further one level is, and how lines end."""
    line = text[text.rfind("\n", 0, position) + 1 : position]
    indent = line[: len(line) - len(line.lstrip(" \t"))]
    first = _INDENTED.search(text)
    return indent, first[1] if first else "  ", "\r\n" if "\r\n" in text else "\n"


def _dumped(data: Any, indent: str, unit: str, newline: str) -> str:
    """JSON with a line for each member; lists stand in one."""
    if not isinstance(data, dict) or not data:
        return json.dumps(data, ensure_ascii=False)
    inner = indent + unit
    lines = (f"{inner}{json.dumps(key)}: {_dumped(value, inner, unit, newline)}" for key, value in data.items())
    return f"{{{newline}{f',{newline}'.join(lines)}{newline}{indent}}}"
