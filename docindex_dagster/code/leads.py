"""Which comments and decorators belong to which definition: those directly above it.

Grammars put them in different places (beside the definition, around it, in the block before it), so they are found by
position. Each look-up takes constant time, since a hostile file may hold a hundred thousand of them on one line.
"""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from docindex_dagster.code.captures import Captures

if TYPE_CHECKING:
    from tree_sitter import Node

_INDENT_LIMIT = 1000  # bytes
_TO_CODE = re.compile(rb"[ \t\f\r]*(?:\n(?P<indent>[ \t\f\r]*))?")  # on the same line or the next
_TERMINATOR = re.compile(rb"[ \t]*;")
_BLANKS = re.compile(rb"[ \t]*")


@dataclass(frozen=True, slots=True)
class Leads:
    """The comments and decorators of a file, by the place that they stand at."""

    above: "dict[int, Node]"  # by the byte of what follows on the same line or the next
    trailing: "dict[int, Node]"  # comments behind code on its line, by their start

    def before(self, start: int) -> "list[Node]":
        """Those directly above what starts at a byte, in file order."""
        found: list[Node] = []
        while node := self.above.get(start):
            found.append(node)
            start = node.start_byte
        return found[::-1]

    def end_of_line(self, source: bytes, end: int) -> int:
        """Where a definition that ends at a byte ends together with its semicolon and the comment behind it."""
        terminator = _TERMINATOR.match(source, end)
        if terminator:
            end = terminator.end()
        blanks = _BLANKS.match(source, end)
        comment = self.trailing.get(blanks.end() if blanks else end)
        return comment.end_byte if comment else end


def find_leads(captures: Captures, source: bytes) -> Leads:
    """Place the comments and decorators of a file."""
    comments: list[Node] = []
    trailing: dict[int, Node] = {}
    for node in captures.comments:
        if _begins_line(source, node.start_byte):
            comments.append(node)
        else:
            trailing[node.start_byte] = node
    above = {start: node for node in [*captures.decorators, *comments] if (start := _code_below(source, node))}
    return Leads(above, trailing)


def _begins_line(source: bytes, start: int) -> bool:
    before = source[max(0, start - _INDENT_LIMIT) : start]
    return not before[before.rfind(b"\n") + 1 :].strip() and (b"\n" in before or start <= _INDENT_LIMIT)


def _code_below(source: bytes, node: "Node") -> int | None:
    """Where the code starts that a node stands above. What is indented deeper belongs to a block that ends with it."""
    end = node.end_byte
    if source[end - 1 : end] == b"\n":  # some grammars count the line end to the comment
        end -= 1
    match = _TO_CODE.match(source, end)
    if match is None or (match["indent"] is not None and node.start_point.column > len(match["indent"])):
        return None
    return match.end()
