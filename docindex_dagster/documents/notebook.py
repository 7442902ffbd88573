"""Jupyter notebook loader: Markdown cells as Markdown, code cells as fences, outputs dropped."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from docindex_dagster.documents.line_markup import paragraphs
from docindex_dagster.documents.markdown import as_document, markdown_blocks
from docindex_dagster.documents.model import Block, Document, SourceLines, code_block, heading_block, with_separators

_MAGIC = re.compile(r"\s*[%!?]|.*\?\s*$")
_TIMING = re.compile(r"%%(?:capture|prun|time|timeit)\b")


def load_notebook(text: str) -> Document:
    """Read a notebook. Line numbers are those of the cell's source in the JSON file, as far as it can be found.

    Raises:
        ValueError: The text is not valid JSON.
        TypeError: The JSON is not a notebook.
    """
    language, cells = _read(text)
    blocks = [block for cell in cells for block in _blocks(cell, language)]
    return as_document(blocks or [Block("prose", "", 1, 1)], transformed=True)


def read_code_cells(text: str) -> tuple[str, list[str], list[int]]:
    """Return the kernel language of a notebook, the lines of its code cells, and the file line of each of them.

    Lines addressed to the kernel, such as `%matplotlib inline`, are blank.

    Raises:
        ValueError: The text is not valid JSON.
        TypeError: The JSON is not a notebook.
    """
    language, cells = _read(text)
    source: list[str] = []
    lines: list[int] = []
    for cell in cells:
        if cell.kind == "code":
            source += _without_magic(cell.source.split("\n"))
            lines += cell.lines
    return language, source, lines


class _Cell(NamedTuple):
    """A cell that is not blank, its text, and the file line of each of its lines."""

    content: Mapping[str, object]
    source: str
    lines: Sequence[int]

    @property
    def kind(self) -> object:
        """The cell type, such as `code`."""
        return self.content.get("cell_type")


def _read(text: str) -> tuple[str, Iterator[_Cell]]:
    notebook = json.loads(text.removeprefix("\ufeff"))
    return _language(notebook), _cells(notebook, SourceLines(text))


def _cells(notebook: object, lines_of_file: SourceLines) -> Iterator[_Cell]:
    for cell in _cell_list(notebook):
        source = _source(cell) if isinstance(cell, dict) else ""
        if isinstance(cell, dict) and source.strip():
            lines = [lines_of_file.line_of(_as_json(line)) for line in source.split("\n")]
            yield _Cell(cell, source, lines)


def _cell_list(notebook: object) -> list[object]:
    """Return the cells of a notebook; in formats before 4, those of its worksheets."""
    if isinstance(notebook, dict):
        cells, sheets = notebook.get("cells"), notebook.get("worksheets")
        if isinstance(cells, list):
            return cells
        if isinstance(sheets, list):
            return [cell for sheet in sheets if isinstance(sheet, dict) for cell in sheet.get("cells", ())]
    raise TypeError("notebook has no list of cells")


def _without_magic(lines: Sequence[str]) -> list[str]:
    """Return the lines of a cell without kernel commands; all lines are blank if the cell is for another program."""
    first = next((line for line in lines if line.strip()), "")
    if first.startswith("%%") and not _TIMING.match(first):
        return [""] * len(lines)
    return ["" if _MAGIC.match(line) else line for line in lines]


def _blocks(cell: _Cell, language: str) -> Iterator[Block]:
    source, lines = cell.source, cell.lines
    if cell.kind == "code":
        fence = code_block(source.strip("\n"), _language_value(cell.content) or language, lines[0], lines[-1])
        yield from with_separators([fence])
        return
    if cell.kind == "heading":
        level = cell.content.get("level")
        level = max(1, level) if isinstance(level, int) else 1
        yield from with_separators([heading_block(source, level, lines[0], lines[-1])])
        return
    is_markdown = cell.kind == "markdown"
    for block in markdown_blocks(source + "\n\n") if is_markdown else paragraphs(source + "\n\n"):
        first, last = block.start_line - 1, min(block.end_line, len(lines)) - 1
        yield replace(block, start_line=lines[first], end_line=lines[last], start_byte=None, end_byte=None)


def _source(cell: Mapping[str, object]) -> str:
    source = cell.get("source", cell.get("input", ""))
    text = "".join(map(str, source)) if isinstance(source, list) else str(source)
    # JSON can contain lone surrogates, which are not valid text.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _language(notebook: Mapping[str, object]) -> str:
    metadata = notebook.get("metadata")
    for key, name in (("language_info", "name"), ("kernelspec", "language")):
        entry = metadata.get(key) if isinstance(metadata, dict) else None
        if isinstance(entry, dict) and (found := _language_value(entry, name)):
            return found
    return ""


def _language_value(entry: Mapping[str, object], name: str = "language") -> str:
    value = entry.get(name)
    return value.lower() if isinstance(value, str) and value.isprintable() else ""


def _as_json(source_line: str) -> str:
    """Return a line as Jupyter writes it to the file, one line of source per line; "" if blank, as it is not unique."""
    return json.dumps(source_line, ensure_ascii=False)[1:-1] if source_line.strip() else ""
