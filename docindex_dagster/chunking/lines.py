"""Cutting any text into chunks of whole lines: what remains for code that has no grammar or cannot be parsed."""

from docindex_dagster.chunking.draft import Draft
from docindex_dagster.chunking.packing import Cut, measure, pack


def chunk_lines(text: str, budget: int, chunk_type: str = "text") -> tuple[Draft, ...]:
    """Cut a text at line ends into chunks of at most `budget` non-white characters.

    A longer line is cut inside, between characters. The chunks put end to end are the text; a text of white space
    alone has none.
    """
    measured = measure(text)
    ranks = dict.fromkeys(measured.line_places, (Cut.LINE, 0))
    return tuple(
        Draft(
            text=measured.data[start:end].decode("utf-8"),
            chunk_type=chunk_type,
            start_line=measured.line_at(start),
            end_line=measured.line_at(end - 1),
            start_byte=start,
            end_byte=end,
        )
        for start, end in pack(measured, ranks, boundaries=(), budget=budget)
    )
