"""From text to the terms that the full-text index holds; documents and queries go the same way.

Identifiers are kept whole and split at underscores, at changes of case and around digits. There is no stemming and
there are no stop words: both are syntax in code.
"""

import re
from functools import lru_cache

_WORD = re.compile(r"\w+")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_A-Za-z]+")
_LONGEST = 128  # longer runs are data, such as keys and hashes in base64


@lru_cache(maxsize=1 << 17)
def _split(word: str) -> tuple[str, ...]:
    """The word itself in lower case and, when it has several, its parts."""
    if len(word) > _LONGEST:
        return ()
    whole = word.lower()
    parts = [part.lower() for part in _PART.findall(word)]
    return (whole, *parts) if parts[1:] else (whole,)


def terms(text: str) -> list[str]:
    """All terms of a text, in order, repeats included."""
    return [term for word in _WORD.findall(text) for term in _split(word)]
