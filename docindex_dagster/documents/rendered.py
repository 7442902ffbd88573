"""Documents that are transformed: their blocks are written anew, as plain Markdown."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

from docindex_dagster.documents.model import MAX_TITLE, Block

_BACKTICKS = re.compile(r"`{3,}")


def heading(title: str, level: int, start_line: int, end_line: int) -> Block:
    """A heading, written with number signs however it was marked in the file."""
    title = " ".join(title.split())
    text = f"{'#' * min(level, 6)} {title}"
    return Block("heading", text, start_line, end_line, level=level, title=title[:MAX_TITLE])


def fenced(code: str, language: str, start_line: int, end_line: int) -> Block:
    """Code between fences longer than any run of backticks inside it."""
    longest = max((len(run) for run in _BACKTICKS.findall(code)), default=2)
    fence = "`" * (longest + 1)
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
