"""AsciiDoc, as far as its headings and delimited blocks go; the text is kept as it is."""

import re
from collections.abc import Iterator

from docindex_dagster.documents.model import MAX_TITLE, Document
from docindex_dagster.documents.outline import build_sections
from docindex_dagster.documents.spans import Mark, tile

_HEADING = re.compile(r"(={1,6})[ \t]+(\S.*)")
_VERBATIM = re.compile(r"-{4,}|\.{4,}|\+{4,}|/{4,}|`{3,}\w*|\|={3,}")


def load_asciidoc(text: str) -> Document:
    """Read AsciiDoc. Its blocks are spans of the text; a delimiter that is never closed reaches to the end."""
    sections = build_sections(tile(text, [*_marks(text)]))
    return Document(title=next((part.section for part in sections if part.section), None), sections=sections)


def _marks(text: str) -> Iterator[Mark]:
    closing: str | None = None
    begins_block = True
    offset = 0
    for line in text.split("\n"):
        bare = line.removeprefix("\ufeff").rstrip()
        heading = _HEADING.fullmatch(bare) if closing is None else None
        if closing is not None:
            if bare == closing:
                closing, begins_block = None, True
        elif _VERBATIM.fullmatch(bare):
            yield Mark(offset, "table" if bare.startswith("|") else "code")
            closing = "```" if bare.startswith("```") else bare
        elif heading:
            yield Mark(offset, "heading", len(heading[1]), heading[2][:MAX_TITLE])
            begins_block = True
        elif not bare:
            begins_block = True
        elif begins_block:
            yield Mark(offset, "prose")
            begins_block = False
        offset += len(line) + 1
