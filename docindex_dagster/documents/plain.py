"""Plain text: paragraphs between blank lines."""

import re

from docindex_dagster.documents.model import Block, Document
from docindex_dagster.documents.outline import build_sections
from docindex_dagster.documents.spans import Mark, tile

_PARAGRAPH_END = re.compile(r"\n(?:[ \t\r]*\n)+")


def load_plain(text: str, fallback: str | None = None) -> Document:
    """Read a text without headings. `fallback` says why a document with structure is read so."""
    return Document(title=None, sections=build_sections(paragraphs(text)), structured=False, fallback=fallback)


def paragraphs(text: str) -> list[Block]:
    """Cut a text after each run of blank lines."""
    ends = (match.end() for match in _PARAGRAPH_END.finditer(text))
    return tile(text, [Mark(0, "prose"), *(Mark(end, "prose") for end in ends if end < len(text))])
