"""Documents that are transformed: their blocks are written anew, as plain Markdown, and located in the file."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

from docindex_dagster.core.printable import fence_around
from docindex_dagster.documents.model import MAX_TITLE, Block

_NEAR = 20_000  # characters


def heading(title: str, level: int, start_line: int, end_line: int) -> Block:
    """A heading, written with number signs however it was marked in the file."""
    title = " ".join(title.split())
    text = f"{'#' * min(level, 6)} {title}"
    return Block("heading", text, start_line, end_line, level=level, title=title[:MAX_TITLE])


def fenced(code: str, language: str, start_line: int, end_line: int) -> Block:
    """Code between fences longer than any run of backticks inside it."""
    fence = fence_around(code)
    return Block("code", f"{fence}{language}\n{code}\n{fence}", start_line, end_line)


def table(rows: Sequence[Sequence[str]], start_line: int, end_line: int) -> Block:
    """A table, one line a row."""
    lines = ("| " + " | ".join(" ".join(cell.split()) for cell in row) + " |" for row in rows)
    return Block("table", "\n".join(lines), start_line, end_line)


def separated(blocks: Sequence[Block]) -> list[Block]:
    """Put a blank line after every block, and a line end between the items of a list."""
    return [
        replace(block, text=block.text + ("\n" if block.kind == "item" and after == "item" else "\n\n"))
        for block, after in zip_longest(blocks, (block.kind for block in blocks[1:]))
    ]


class SourceLines:
    """A forward search for text in a file.

    Parsers of HTML and JSON keep no positions. So each text is searched from where the one before it was found; one
    that is not found is taken to stand on the last line that was.
    """

    def __init__(self, source: str, start: int = 0) -> None:
        self._source = source
        self._position = max(start, 0)
        self._line = 1 + source.count("\n", 0, self._position)

    @property
    def position(self) -> int:
        """Where the last text was found."""
        return self._position

    def line_behind(self, position: int, text: str) -> int | None:
        """The line of a text that stands not far behind a former position; the search goes on from where it was."""
        found = self._source.find(text, position, position + _NEAR)
        if found < self._position:
            return None if found == -1 else self._line - self._source.count("\n", found, self._position)
        return self._line + self._source.count("\n", self._position, found)

    def line_of(self, text: str) -> int:
        """The line, 1-based, on which `text` stands next; `text` has no line ends."""
        found = self._source.find(text, self._position) if text else -1
        if found != -1:
            self._line += self._source.count("\n", self._position, found)
            self._position = found
        return self._line
