"""Texts that files were converted to: headings of number signs, and paragraphs between blank lines."""

import re
from collections.abc import Iterator

from docindex_dagster.documents.model import MAX_TITLE, Document
from docindex_dagster.documents.outline import build_sections
from docindex_dagster.documents.spans import Mark, tile

_HEADING = re.compile(r"(#{1,6}) (.*)")


def load_converted(text: str) -> Document:
    """Read a text as `convert` makes it. Its blocks are spans of the text."""
    sections = build_sections(tile(text, [*_marks(text)]))
    return Document(title=next((part.section for part in sections if part.section), None), sections=sections)


def _marks(text: str) -> Iterator[Mark]:
    begins_block, offset = True, 0
    for line in text.split("\n"):
        heading = _HEADING.fullmatch(line)
        if heading:
            yield Mark(offset, "heading", len(heading[1]), heading[2][:MAX_TITLE])
        elif line and begins_block:
            yield Mark(offset, "prose")
        begins_block = not line or heading is not None
        offset += len(line) + 1
