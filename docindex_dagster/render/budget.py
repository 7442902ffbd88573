"""Answers within a budget of tokens: as many parts as fit, and a cursor that says where the next answer goes on."""

from collections.abc import Callable, Sequence
from itertools import accumulate

from docindex_dagster.core.errors import QueryError
from docindex_dagster.core.tokenizer import count_tokens

DEFAULT = 2000
LEAST, MOST = 200, 20_000
_FOR_MORE = 60  # tokens of the sentence that says how to go on
_CUT = "…"
_LONGEST_CURSOR = 9  # digits


def start_of(cursor: str | None) -> int:
    """How many parts were given before.

    Raises:
        QueryError: no answer has such a cursor.
    """
    if not cursor:
        return 0
    if not (cursor.isascii() and cursor.isdecimal()) or len(cursor) > _LONGEST_CURSOR:
        raise QueryError("cursor: no answer gave this one; leave it out to begin anew")
    return int(cursor)


def fitted(
    notes: Sequence[str], parts: Sequence[str], budget: int, more: Callable[[int], str], separator: str = "\n\n"
) -> str:
    """As many parts as fit into a budget, behind some notes.

    At least one part is given, if need be the beginning of it.

    Args:
        notes: stand first, as far as half of the budget goes.
        parts: in the order in which they are given.
        budget: tokens, at most.
        more: what to say behind so many parts; empty for nothing.
        separator: between parts.
    """
    head = cut("\n".join(notes), budget // 2)
    room = budget - tokens(head) - _FOR_MORE - 2
    shown = sum(1 for size in accumulate(sizes([part + separator for part in parts])) if size <= room)
    given = list(parts[:shown]) or [cut(part, room) for part in parts[:1]]
    body = separator.join(given)
    return "\n\n".join(filter(None, (head, body, more(len(given)))))


def paged(
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
        parts: of the page.
        what: they are, in the plural.
        start: how many were given before.
        budget: tokens, at most.
        notes: stand first, as far as half of the budget goes.
        left: how many follow the page; None if that is unknown.
        separator: between parts.
    """
    if start and not parts:
        notes = [*notes, f"There are no more {what}."]

    def continuation(shown: int) -> str:
        return more(None if left is None else left + len(parts) - shown, start + shown, what) if parts else ""

    return fitted(notes, parts, budget, continuation, separator)


def more(left: int | None, cursor: int, what: str) -> str:
    """Say how to continue; empty if nothing is left. `left` is None if some are left, but it is unknown how many."""
    if left == 0:
        return ""
    return f'{"More" if left is None else f"{left:,} more"} {what}; go on with cursor "{cursor}".'


def cut(text: str, budget: int) -> str:
    """A text, or the beginning of one that has more tokens: whole lines, or a part of the first."""
    if tokens(text) <= budget:
        return text
    lines = text.split("\n")
    fit = sum(1 for size in accumulate(sizes([line + "\n" for line in lines])) if size < budget)
    return "\n".join([*lines[:fit], _CUT]) if fit else _beginning(lines[0], budget) + _CUT


def _beginning(line: str, budget: int) -> str:
    fits, too_long = 0, len(line)
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        if tokens(line[:middle]) < budget:
            fits = middle
        else:
            too_long = middle
    return line[:fits]


def sizes(texts: Sequence[str]) -> list[int]:
    """About how many tokens each text is; those that stand end to end have no more than their sum."""
    return count_tokens(texts)


def tokens(text: str) -> int:
    """About how many tokens a text is."""
    return count_tokens([text])[0]
