"""What a reader of a source gives."""

from collections.abc import Iterable

Line = tuple[int, str]  # its number, 1-based, and what of it must be found in the blocks


def as_it_is(text: str) -> Iterable[Line]:
    """All of a text."""
    return enumerate(text.splitlines(), start=1)
