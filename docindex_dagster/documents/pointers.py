"""Pointers as a table keeps them: a line each, with tabs between the line of the file, kind, titles above, and name."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_BREAKS = re.compile(r"[\t\n\r]+")


class PlacedPointer(NamedTuple):
    """A link or an anchor of a document, in the section with these titles."""

    line: int
    kind: str  # as `model.Pointer` has it
    titles: str
    name: str


def write_pointers(pointers: Iterable[PlacedPointer]) -> str | None:
    """The text of some pointers; None for none."""
    return "\n".join([_line(*pointer) for pointer in pointers]) or None


def read_pointers(text: str | None) -> Iterator[PlacedPointer]:
    """The pointers of a text."""
    for line in text.split("\n") if text else ():
        number, kind, titles, name = line.split("\t")
        yield PlacedPointer(int(number), kind, titles, name)


def _line(line: int, *fields: str) -> str:
    return "\t".join([str(line), *(_BREAKS.sub(" ", field) for field in fields)])
