"""The code in documents: scripts of HTML pages become chunks, definitions in notebooks are listed with their cells.

A script that defines nothing, such as a visit counter, stays out of the index.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace

from docindex_dagster.chunking.code import chunk_code
from docindex_dagster.chunking.draft import Draft, FileDrafts
from docindex_dagster.chunking.names import code_of
from docindex_dagster.code.embedded import script_spans
from docindex_dagster.code.symbols import Symbol


def with_scripts(page: FileDrafts, text: str, budget: int) -> FileDrafts:
    """The chunks of an HTML page, followed by those of each script that defines something.

    Args:
        page: the chunks of the page as a document.
        text: the page.
        budget: the largest chunk of code, as for `chunk_code`.
    """
    drafts = list(page.drafts)
    data = text.encode()
    language, spans = script_spans(data)
    for opening, end in spans:
        start = end - len(data[opening:end].lstrip(b"\r\n"))
        found = chunk_code(data[start:end].rstrip().decode(), language, budget).drafts
        if any(draft.symbols for draft in found):
            drafts += _moved(found, data.count(b"\n", 0, start), start, len(drafts))
    return replace(page, drafts=tuple(drafts))


def _moved(drafts: Sequence[Draft], lines: int, offset: int, index: int) -> Iterator[Draft]:
    """Drafts of part of a file, moved by the lines, bytes and drafts of the file that precede them."""

    def symbol(one: Symbol) -> Symbol:
        return replace(
            one,
            start_line=one.start_line + lines,
            end_line=one.end_line + lines,
            start_byte=one.start_byte + offset,
            end_byte=one.end_byte + offset,
        )

    for draft in drafts:
        yield replace(
            draft,
            start_line=draft.start_line + lines,
            end_line=draft.end_line + lines,
            start_byte=None if draft.start_byte is None else draft.start_byte + offset,
            end_byte=None if draft.end_byte is None else draft.end_byte + offset,
            symbol=symbol(draft.symbol) if draft.symbol else None,
            symbols=tuple(map(symbol, draft.symbols)),
            parent_index=None if draft.parent_index is None else draft.parent_index + index,
        )


def with_cells(notebook: FileDrafts, text: str) -> FileDrafts:
    """The chunks of a notebook, each with the definitions of the code that it shows."""
    code = code_of(text, "jupyter")
    if code is None or code.lines is None:
        return notebook
    starts = [draft.start_line for draft in notebook.drafts]
    defined: dict[int, list[Symbol]] = {}
    for one in code.symbols:
        first, last = code.lines[one.start_line - 1], code.lines[one.end_line - 1]
        defined.setdefault(max(0, bisect_right(starts, first) - 1), []).append(
            replace(one, start_line=first, end_line=last)
        )
    return replace(
        notebook,
        drafts=tuple(_with_symbols(draft, defined.get(index, ())) for index, draft in enumerate(notebook.drafts)),
    )


def _with_symbols(draft: Draft, symbols: Sequence[Symbol]) -> Draft:
    largest = max(symbols, key=lambda one: one.end_byte - one.start_byte, default=None)
    return replace(draft, symbol=largest, symbols=tuple(symbols)) if largest else draft
