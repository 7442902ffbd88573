"""JSON, with comments and trailing commas if need be, read with the place of each member, so that it can be edited.

It is our own: Python's json gives no places, tree-sitter's grammar knows no trailing commas and takes what is not JSON,
and the packages that keep comments take all of JSON5, or need Node.js or a later Python, or are hardly used.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

_SPACE = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\.)*+"')
_COLON = re.compile(":")
_WORD = re.compile(r"[-+.\w]+")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_DEEPEST = 200  # levels of nesting; settings have fewer than ten
_SHOWN = 20  # characters of what is wrong


class TextError(ValueError):
    """A text is not what its format allows, or has a form in which it cannot be edited."""


@dataclass(frozen=True, slots=True)
class Member:
    """A key of an object and its value, with the positions where it begins, and the space in front of it."""

    key: str
    space: int
    start: int
    value: "Value"
    is_below_comment: bool  # which ends with the line: the space has to begin with its end


@dataclass(frozen=True, slots=True)
class Value:
    """A value, from the position `start` up to `end`. Only objects have what stands below."""

    start: int
    end: int
    data: Any
    members: tuple[Member, ...] | None = None
    commas: tuple[int, ...] = ()  # their positions; one more than there are between members is a trailing one
    last_comment: int = 0  # the end of the last comment behind the last value; 0: there is none

    def member(self, key: str) -> Member | None:
        """The member of an object with a key.

        Raises:
            TextError: this is no object, or has the key twice.
        """
        if self.members is None:
            raise TextError(f"{json.dumps(self.data)[:_SHOWN]} stands where an object should")
        found = [member for member in self.members if member.key == key]
        if len(found) > 1:
            raise TextError(f"it has the key {key!r} twice")
        return found[0] if found else None


def parse(text: str, *, has_comments: bool) -> Value:
    """The value that a text holds.

    Args:
        text: JSON; a byte order mark may stand before it.
        has_comments: whether comments and trailing commas are allowed.

    Raises:
        TextError: it is not JSON; the message says in which line.
    """
    reader = _Reader(text, has_comments=has_comments)
    reader.skip()
    value = reader.value(0)
    reader.skip()
    if reader.at < len(text):
        raise reader.error("there is more behind the end")
    return value


def is_blank(text: str) -> bool:
    """Whether a text holds nothing yet."""
    return not text.removeprefix("\ufeff").strip(" \t\r\n")


class _Reader:
    def __init__(self, text: str, *, has_comments: bool) -> None:
        self.text = text
        self.at = 1 if text.startswith("\ufeff") else 0
        self.has_comments = has_comments
        self.line_comment_ends = 0

    def error(self, problem: str) -> TextError:
        line = self.text.count("\n", 0, self.at) + 1
        return TextError(f"line {line}: {problem}")

    def skip(self) -> int:
        """Go to what is neither space nor comment; returns where the last comment ended, 0 if there was none."""
        last = 0
        while True:
            self.at += len(self._match(_SPACE))
            if (comment := _COMMENT.match(self.text, self.at)) is None:
                return last
            if not self.has_comments:
                raise self.error("there is a comment, which the agent would not read")
            last = self.at = comment.end()
            if comment[0].startswith("//"):
                self.line_comment_ends = last

    def value(self, depth: int) -> Value:
        if depth > _DEEPEST:
            raise self.error("it is nested too deeply")
        start = self.at
        match self.text[start : start + 1]:
            case "{":
                return self._object(depth)
            case "[":
                data: Any = self._array(depth)
            case '"':
                data = self._string()
            case _:
                data = self._word()
        return Value(start, self.at, data)

    def _object(self, depth: int) -> Value:
        start, members, commas, last = self.at, list[Member](), list[int](), 0
        self.at += 1
        while True:
            space = self.at
            last = self.skip() or last
            if self._ends("}", is_behind_comma=len(commas) == len(members) > 0):
                data = {member.key: member.value.data for member in members}
                return Value(start, self.at, data, tuple(members), tuple(commas), last)
            if len(commas) < len(members):
                raise self.error("a comma or a bracket is missing")
            is_below = last > space and self.line_comment_ends == last
            space, start_of_key, key = max(space, last), self.at, self._string()
            self.skip()
            self._match(_COLON, move=True)
            self.skip()
            members.append(Member(key, space, start_of_key, self.value(depth + 1), is_below))
            last = self.skip()
            if self.text.startswith(",", self.at):
                commas.append(self.at)
                self.at += 1

    def _array(self, depth: int) -> list[Any]:
        items, is_behind_comma = list[Any](), True
        self.at += 1
        while True:
            self.skip()
            if self._ends("]", is_behind_comma=is_behind_comma and bool(items)):
                return items
            if not is_behind_comma:
                raise self.error("a comma or a bracket is missing")
            items.append(self.value(depth + 1).data)
            self.skip()
            is_behind_comma = self.text.startswith(",", self.at)
            self.at += is_behind_comma

    def _ends(self, bracket: str, *, is_behind_comma: bool) -> bool:
        if not self.text.startswith(bracket, self.at):
            return False
        if is_behind_comma and not self.has_comments:
            raise self.error("there is a trailing comma, which the agent would not read")
        self.at += 1
        return True

    def _string(self) -> str:
        return str(self._loaded(self._match(_STRING, move=True)))

    def _word(self) -> Any:
        return self._loaded(self._match(_WORD, move=True))

    def _loaded(self, text: str) -> Any:
        try:
            return json.loads(text, parse_constant=self._refuse)
        except ValueError as error:
            raise self.error(f"{text[:_SHOWN]!r} is no JSON") from error

    def _refuse(self, constant: str) -> Any:
        raise ValueError(constant)

    def _match(self, pattern: re.Pattern[str], *, move: bool = False) -> str:
        found = pattern.match(self.text, self.at)
        if found is None:
            shown = self.text[self.at : self.at + _SHOWN]
            raise self.error(f"{shown!r} is not what should stand there" if shown else "it ends too early")
        if move:
            self.at = found.end()
        return found[0]
