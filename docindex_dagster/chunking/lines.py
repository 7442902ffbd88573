"""Cutting any text into chunks of whole lines: what remains for code that has no grammar or cannot be parsed."""

from collections.abc import Sequence
from dataclasses import replace

from docindex_dagster.chunking.draft import Draft
from docindex_dagster.chunking.packing import Cut, measure, pack

_LONGEST_WORD = 100  # characters on average, in what people can read


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


def without_long_ends(drafts: Sequence[Draft]) -> tuple[Draft, ...]:
    """Leave out how lines go on that are too long for a chunk and hold next to no white space, such as data in base64.

    The first part of each line stays, and so does a part that other lines follow or that defines a symbol.
    """
    kept: list[Draft] = []
    places: list[int] = []  # of each draft, or of the one before it that stays
    is_inside = False  # the draft begins inside of a line
    for draft in drafts:
        if not (is_inside and _is_unreadable(draft)):
            parent = draft.parent_index
            kept.append(draft if parent is None else replace(draft, parent_index=places[parent]))
        places.append(len(kept) - 1)
        is_inside = not draft.text.endswith("\n")
    return tuple(kept)


def _is_unreadable(draft: Draft) -> bool:
    text = draft.text.strip()
    is_of_one_line = "\n" not in text and not draft.symbols
    return is_of_one_line and len(text.split()) * _LONGEST_WORD < len(text) and text.isascii()
