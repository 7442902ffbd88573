"""Sets of words, written as text."""


def words(text: str) -> frozenset[str]:
    """The words of a text that are separated by white space."""
    return frozenset(text.split())
