"""Edits of JSON, JSON with comments and TOML that leave other entries, comments and layout as they are.

Python's json tells where a value ends but takes no comments, so these are replaced by as many spaces first. Whoever
edits a text parses the result and compares it with what was intended.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, Self

from docindex_dagster.agents.catalogue import Format

_WHITE = " \t\r\n"
_BLANK = _WHITE + "\ufeff"
_SPACE = re.compile(r"[ \t\r\n]*")
_INDENTED = re.compile(r"\n([ \t]+)\S")
_END_OF_LINE = re.compile(r"[ \t]*\r?\n")
# What has no end reaches to that of the text, so that the end is searched for once.
_STRING = r'"(?:[^"\\]|\\.?)*+(?:"|\Z)'
_COMMENT = re.compile(rf"{_STRING}|//[^\r\n]*|/\*.*?\*/|(/\*.*)", re.DOTALL)
_TRAILING_COMMA = re.compile(rf"{_STRING}|,(?=[ \t\r\n]*[\]}}])", re.DOTALL)
_VISIBLE = re.compile(r"[^\r\n]")


class TextError(ValueError):
    """A text is not what its format allows, or has a form in which it cannot be edited."""


def parsed(text: str | None, form: Format) -> dict[str, Any]:
    """Return what a text holds; nothing for None and for a blank text.

    Raises:
        TextError: it is invalid, or no object; the message names the line.
    """
    if text is None or not text.strip(_BLANK):
        return {}
    try:
        if form == "toml":
            return tomllib.loads(text.removeprefix("\ufeff"))
        data = _JSON.decode(_Json.read(text, form).plain)
    except RecursionError as error:
        raise TextError("it is nested too deeply") from error
    except ValueError as error:
        raise TextError(str(error)) from error
    if not isinstance(data, dict):
        raise TextError("line 1: not an object")
    return data


def with_entry(text: str | None, form: Format, group: str, name: str, data: Mapping[str, Any]) -> str:
    """Return a valid text in which an entry of a group holds some data. A missing group is added.

    Raises:
        TextError: a key is there twice.
    """
    text = text or ""
    if form == "toml":
        import tomlkit

        newline, rest = _newline(text), _without_tables(text, group, name).rstrip(_WHITE)
        block = tomlkit.dumps({group: {name: data}}).replace("\n", newline)
        return f"{rest}{newline}{newline}{block}" if rest else block
    if not text.strip(_BLANK):
        return _dumped({group: {name: data}}, "", "  ", "\n") + "\n"
    return _Json.read(text, form).with_member(group, name, data)


def without_entry(text: str, form: Format, group: str, name: str) -> str | None:
    """Return a valid text without an entry of a group; None where nothing else is left.

    Raises:
        TextError: a key is there twice.
    """
    if form == "toml":
        rest = _without_tables(text, group, name)
        return rest if rest.strip(_BLANK) else None
    return _Json.read(text, form).without_member(group, name)


def _without_tables(text: str, group: str, name: str) -> str:
    """Remove the table of an entry and those in it. Comments and blank lines above the next table stay."""
    keys = (rf"""(?:{re.escape(key)}|"{re.escape(key)}"|'{re.escape(key)}')""" for key in (group, name))
    header = re.compile(r"\[[ \t]*" + r"[ \t]*\.[ \t]*".join(keys) + r"[ \t]*[\].]")
    kept: list[str] = []
    above: list[str] = []  # of the next table, unless more of this one follows
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


@dataclass(frozen=True, slots=True)
class _Member:
    """A key of an object and its value, with the positions of both."""

    key: str
    start: int
    value: int
    end: int


@dataclass(frozen=True, slots=True)
class _Json:
    """A text of JSON, and the same with spaces in place of comments, and then of trailing commas."""

    text: str
    bare: str
    plain: str

    @classmethod
    def read(cls, text: str, form: Format) -> Self:
        """Find the comments and trailing commas of a text.

        Raises:
            TextError: there are some, and the format allows none.
        """

        def blank(found: re.Match[str]) -> str:
            if found[0].startswith('"') or found.lastindex:
                return found[0]
            if form == "json":
                line = text.count("\n", 0, found.start()) + 1
                what = "trailing comma" if found[0] == "," else "comment"
                raise TextError(f"line {line}: there is a {what}, which the agent would not read")
            return _VISIBLE.sub(" ", found[0])

        bare = _COMMENT.sub(blank, " " + text[1:] if text.startswith("\ufeff") else text)
        return cls(text, bare, _TRAILING_COMMA.sub(blank, bare))

    def with_member(self, group: str, name: str, data: Mapping[str, Any]) -> str:
        """Return the text with a member of a member of the outermost object."""
        root = _skip(self.plain, 0)
        outer = self._member(root, group)
        if outer is None:
            return self._inserted(root, group, {name: data})
        inner = self._member(outer.value, name)
        if inner is None:
            return self._inserted(outer.value, name, data)
        return self.text[: inner.value] + _dumped(data, *self._layout(inner.start)) + self.text[inner.end :]

    def without_member(self, group: str, name: str) -> str | None:
        """Return the text without such a member, nor its object if that has no other; None if nothing is left."""
        root = _skip(self.plain, 0)
        outer = self._member(root, group)
        inner = outer and self._member(outer.value, name)
        for at, member in ((outer.value, inner), (root, outer)) if outer else ():
            if member is None:
                return self.text
            others = self.text[at + 1 : member.start] + self.text[member.end : self._end(at) - 1]
            if others.strip(_WHITE + ","):
                return self._cut(at, member)
        before, behind = self.text[:root], self.text[self._end(root) :]
        return f"{before}{{}}{behind}" if (before + behind).strip(_BLANK) else None

    def _end(self, at: int) -> int:
        """Return where the value that begins at a position ends."""
        return _JSON.raw_decode(self.plain, at)[1]

    def _members(self, at: int) -> list[_Member]:
        """List the members of the object that begins at a position."""
        members: list[_Member] = []
        at = _skip(self.plain, at + 1)
        while self.plain[at] != "}":
            key, end = _JSON.raw_decode(self.plain, at)
            value = _skip(self.plain, _skip(self.plain, end) + 1)
            members.append(_Member(key, at, value, self._end(value)))
            at = _skip(self.plain, members[-1].end)
            if self.plain[at] == ",":
                at = _skip(self.plain, at + 1)
        return members

    def _member(self, at: int, key: str) -> _Member | None:
        found = [member for member in self._members(at) if member.key == key]
        if len(found) > 1:
            raise TextError(f"it has the key {key!r} twice")
        return found[0] if found else None

    def _inserted(self, at: int, key: str, data: Mapping[str, Any]) -> str:
        """Return the text with a further member at the end of an object, on a line of its own if others are."""
        members, close = self._members(at), self._end(at) - 1
        end = members[-1].end if members else at + 1
        comma = self.bare.find(",", end, close) if members else -1
        place = max(end, comma + 1, len(self.text[: self.text.rfind("\n", 0, close) + 1].rstrip("\r\n")))
        outer, unit, newline = self._layout(members[0].start if members else at)
        indent = outer if members else outer + unit
        has_lines = not members or "\n" in self.text[at : members[-1].start] + self.text[end:close]
        member = f"{json.dumps(key)}: {_dumped(data, indent, unit, newline)}"
        before = self.text[:end] + ("," if members and comma < 0 else "") + self.text[end:place]
        behind = ("," if comma >= 0 else "") + self.text[place:]
        if not members and "\n" not in self.text[place:close]:
            behind = newline + outer + behind
        return before + (newline + indent if has_lines else " ") + member + behind

    def _cut(self, at: int, member: _Member) -> str:
        """Return the text without a member of an object, a comma beside it, and its line if nothing else is there."""
        before, behind = self.text[: member.start], self.text[member.end :]
        comma = _skip(self.bare, member.end)
        if self.bare[comma] == ",":
            behind = self.text[member.end : comma] + self.text[comma + 1 :]
        elif (comma := self.bare.rfind(",", at, member.start)) >= 0:
            before = self.text[:comma] + self.text[comma + 1 : member.start]
        before = before.rstrip(" \t")
        if _END_OF_LINE.match(behind):
            before = before.removesuffix("\n").removesuffix("\r")
        return before + behind

    def _layout(self, position: int) -> tuple[str, str, str]:
        """Return the indent of a line, how much further one level is, and how lines end."""
        line = self.text[self.text.rfind("\n", 0, position) + 1 : position]
        unit = _INDENTED.search(self.text)
        return line[: len(line) - len(line.lstrip(" \t"))], unit[1] if unit else "  ", _newline(self.text)


def _skip(text: str, at: int) -> int:
    """Return where white space ends."""
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _dumped(data: Any, indent: str, unit: str, newline: str) -> str:
    """Return JSON with a line for each member; lists are on one line."""
    if not isinstance(data, dict) or not data:
        return json.dumps(data, ensure_ascii=False)
    inner = indent + unit
    lines = (f"{inner}{json.dumps(key)}: {_dumped(value, inner, unit, newline)}" for key, value in data.items())
    return f"{{{newline}{f',{newline}'.join(lines)}{newline}{indent}}}"


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_JSON = json.JSONDecoder(parse_constant=_refuse)
