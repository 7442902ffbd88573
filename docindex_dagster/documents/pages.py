"""The lines of pages, with what says whether they are headings."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a page: the size of its letters and how high it stands, both in points."""

    text: str
    size: float
    height: float
    level: int = 0  # of a heading: 1 and deeper


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a document; one without text has no lines."""

    lines: tuple[Line, ...]
