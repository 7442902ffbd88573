"""Answers within a token budget: as many parts as fit, and a cursor with which the next request continues."""

from collections.abc import Callable, Sequence
from itertools import accumulate

from docindex_dagster.core.errors import QueryError
from docindex_dagster.core.tokenizer import count_tokens

DEFAULT = 2000
LEAST, MOST = 200, 20_000
_FOR_MORE = 60  # tokens reserved for the sentence with the cursor
_CUT = "…"
_MAX_CURSOR_DIGITS = 9  # digits


def start_of(cursor: str | None) -> int:
    """Return the number of parts that earlier answers contained.

    Raises:
        QueryError: The cursor is invalid.
    """
    if not cursor:
        return 0
    if not (cursor.isascii() and cursor.isdecimal()) or len(cursor) > _MAX_CURSOR_DIGITS:
        raise QueryError("cursor: it is not from an answer; omit it to start over")
    return int(cursor)


def fit_parts(
    notes: Sequence[str], parts: Sequence[str], budget: int, more: Callable[[int], str], separator: str = "\n\n"
) -> str:
    """Return the notes and as many parts as fit into a budget.

    At least one part is returned, truncated if necessary.

    Args:
        notes: printed first, limited to half of the budget.
        parts: the parts, in order.
        budget: the maximum number of tokens.
        more: returns the closing sentence for a number of parts; empty for none.
        separator: printed between parts.
    """
    head = cut("\n".join(notes), budget // 2)
    room = budget - tokens(head) - _FOR_MORE - 2
    shown = sum(1 for size in accumulate(sizes([part + separator for part in parts])) if size <= room)
    page = list(parts[:shown]) or [cut(part, room) for part in parts[:1]]
    body = separator.join(page)
    return "\n\n".join(filter(None, (head, body, more(len(page)))))


def fit_page(
    parts: Sequence[str],
    what: str,
    start: int,
    budget: int,
    *,
    notes: Sequence[str] = (),
    left: int | None = 0,
    separator: str = "\n\n",
) -> str:
    """Return as many parts of a page as fit into a budget, and how to continue.

    Args:
        parts: the parts of the page.
        what: the plural noun for the parts.
        start: the number of parts in earlier answers.
        budget: the maximum number of tokens.
        notes: printed first, limited to half of the budget.
        left: the number of parts after the page; None if unknown.
        separator: printed between parts.
    """
    if start and not parts:
        notes = [*notes, f"There are no more {what}."]

    def continuation(shown: int) -> str:
        return more(None if left is None else left + len(parts) - shown, start + shown, what) if parts else ""

    return fit_parts(notes, parts, budget, continuation, separator)


def more(left: int | None, cursor: int, what: str) -> str:
    """Return a sentence about how to continue; empty if nothing is left. `left` is None if the number is unknown."""
    if left == 0:
        return ""
    return f'{"More" if left is None else f"{left:,} more"} {what}; continue with cursor "{cursor}".'


def cut(text: str, budget: int) -> str:
    """Return a text, truncated to the budget: to complete lines if possible, otherwise within the first line."""
    if tokens(text) <= budget:
        return text
    lines = text.split("\n")
    fit = sum(1 for size in accumulate(sizes([line + "\n" for line in lines])) if size < budget)
    return "\n".join([*lines[:fit], _CUT]) if fit else _prefix(lines[0], budget) + _CUT


def _prefix(line: str, budget: int) -> str:
    fits, too_long = 0, len(line)
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        if tokens(line[:middle]) < budget:
            fits = middle
        else:
            too_long = middle
    return line[:fits]


def sizes(texts: Sequence[str]) -> list[int]:
    """Return the approximate number of tokens of each text. Concatenated texts have at most the sum."""
    return count_tokens(texts)


def tokens(text: str) -> int:
    """Return the approximate number of tokens of a text."""
    return count_tokens([text])[0]
