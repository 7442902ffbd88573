"""Lines of a source with the text that the blocks should contain."""

from collections.abc import Iterable

Line = tuple[int, str]  # the line number from 1, and the text that the blocks should contain


def as_it_is(text: str) -> Iterable[Line]:
    """Return all lines unchanged."""
    return enumerate(text.splitlines(), start=1)
