"""Pointers as a table keeps them: a line each, with tabs between the line of the file, kind, titles above, and name.

The pages of a document are anchors, by which viewers and links reach them: `manual.pdf#page=12`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from docindex_dagster.documents.convert import is_converted

_PAGE = "page="
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


def page_anchor(page: int) -> str:
    """The anchor of a page, from 1."""
    return f"{_PAGE}{page}"


def page_at(row: Mapping[str, Any], line: int) -> int | None:
    """The page on which a line of a chunk is; None where the document has no pages."""
    found = read_pointers(row["pointers"]) if is_converted(row["language"]) else ()
    named = (one.name.removeprefix(_PAGE) for one in found if one.line <= line and one.name.startswith(_PAGE))
    return max((int(page) for page in named if page.isdecimal()), default=None)


def page_range(row: Mapping[str, Any]) -> str:
    """The pages on which a chunk is, in words; nothing where the document has no pages."""
    first, last = page_at(row, row["start_line"]), page_at(row, row["end_line"])
    return "" if first is None else f"page {first}" if first == last else f"pages {first} to {last}"


def _line(line: int, *fields: str) -> str:
    return "\t".join([str(line), *(_BREAKS.sub(" ", field) for field in fields)])
