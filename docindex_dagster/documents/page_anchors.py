"""The pages of a document, as the anchors by which viewers and links reach them: `manual.pdf#page=12`."""

import re
from collections.abc import Mapping
from typing import Any

from docindex_dagster.documents.convert import is_converted

_ANCHOR = re.compile(r"^(\d+)\tanchor\t[^\t\n]*\tpage=(\d+)$", re.MULTILINE)


def page_anchor(page: int) -> str:
    """The anchor of a page, from 1."""
    return f"page={page}"


def page_at(row: Mapping[str, Any], line: int) -> int | None:
    """The page on which a line of a chunk is; None where the document has no pages."""
    if not row["pointers"] or not is_converted(row["language"]):
        return None
    pages = [int(page) for begin, page in _ANCHOR.findall(row["pointers"]) if int(begin) <= line]
    return max(pages, default=None)


def page_range(row: Mapping[str, Any]) -> str:
    """The pages on which a chunk is, in words; nothing where the document has no pages."""
    first, last = page_at(row, row["start_line"]), page_at(row, row["end_line"])
    return "" if first is None else f"page {first}" if first == last else f"pages {first} to {last}"
