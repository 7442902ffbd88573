"""Jupyter notebooks: Markdown cells as Markdown, code cells as fences, outputs dropped."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace

from docindex_dagster.documents import rendered
from docindex_dagster.documents.markdown import as_document, markdown_blocks
from docindex_dagster.documents.model import Block, Document
from docindex_dagster.documents.plain import paragraphs
from docindex_dagster.documents.source_lines import SourceLines


def load_notebook(text: str) -> Document:
    """Read a notebook. Lines are those of the cell's source in the JSON file, as far as they can be found.

    Raises:
        ValueError: it is not JSON.
        TypeError: it is not a notebook.
    """
    notebook = json.loads(text.removeprefix("\ufeff"))
    cells = _cells(notebook)
    language = _language(notebook)
    lines_of_file = SourceLines(text)
    blocks = [block for cell in cells if isinstance(cell, dict) for block in _blocks(cell, language, lines_of_file)]
    return as_document(blocks or [Block("prose", "", 1, 1)], transformed=True)


def _cells(notebook: object) -> list[object]:
    """The cells of a notebook; before the format 4, those of its worksheets."""
    if isinstance(notebook, dict):
        cells, sheets = notebook.get("cells"), notebook.get("worksheets")
        if isinstance(cells, list):
            return cells
        if isinstance(sheets, list):
            return [cell for sheet in sheets if isinstance(sheet, dict) for cell in sheet.get("cells", ())]
    raise TypeError("it holds no list of cells")


def _blocks(cell: Mapping[str, object], language: str, lines_of_file: SourceLines) -> Iterator[Block]:
    source = _source(cell)
    if not source.strip():
        return
    lines = [lines_of_file.line_of(_as_json(line)) for line in source.split("\n")]
    if cell.get("cell_type") == "code":
        yield from rendered.separated(
            [rendered.fenced(source.strip("\n"), _named(cell) or language, lines[0], lines[-1])]
        )
        return
    if cell.get("cell_type") == "heading":
        level = cell.get("level")
        level = max(1, level) if isinstance(level, int) else 1
        yield from rendered.separated([rendered.heading(source, level, lines[0], lines[-1])])
        return
    is_markdown = cell.get("cell_type") == "markdown"
    for block in markdown_blocks(source + "\n\n") if is_markdown else paragraphs(source + "\n\n"):
        first, last = block.start_line - 1, min(block.end_line, len(lines)) - 1
        yield replace(block, start_line=lines[first], end_line=lines[last], start_byte=None, end_byte=None)


def _source(cell: Mapping[str, object]) -> str:
    source = cell.get("source", cell.get("input", ""))
    text = "".join(map(str, source)) if isinstance(source, list) else str(source)
    # JSON may spell half a surrogate pair, which is no text.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _language(notebook: Mapping[str, object]) -> str:
    metadata = notebook.get("metadata")
    for key, name in (("language_info", "name"), ("kernelspec", "language")):
        described = metadata.get(key) if isinstance(metadata, dict) else None
        if isinstance(described, dict) and (found := _named(described, name)):
            return found
    return ""


def _named(described: Mapping[str, object], name: str = "language") -> str:
    value = described.get(name)
    return value.lower() if isinstance(value, str) and value.isprintable() else ""


def _as_json(source_line: str) -> str:
    """A line as it stands in the file, where Jupyter keeps one line of source on a line; a blank one says nothing."""
    return json.dumps(source_line, ensure_ascii=False)[1:-1] if source_line.strip() else ""
