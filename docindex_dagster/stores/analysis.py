"""From text to the terms that the full-text index holds; documents and queries go the same way.

Identifiers are kept whole and split at underscores, at changes of case and around digits. There are no stop words,
which are syntax in code. Text and headings are held as stems, names and paths as they are.
"""

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tantivy import TextAnalyzer

_WORD = re.compile(r"\w+")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_A-Za-z]+")
# Raise it when a text gives other terms.
TERMS_VERSION = "2"
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


def parts(text: str) -> list[str]:
    """The words of a text, in order; of an identifier its parts, without the whole."""
    return [part for word in _WORD.findall(text) for part in _split(word)[1:] or _split(word)]


@cache
def stemmer() -> "TextAnalyzer":
    """Cuts terms, joined by spaces, to their stems: Snowball's for English, which leaves most names alone."""
    import tantivy

    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
    return builder.filter(tantivy.Filter.stemmer("english")).build()


def stems(of_terms: Sequence[str]) -> list[str]:
    """The stem of each term."""
    found: list[str] = stemmer().analyze(" ".join(of_terms))
    return found


@lru_cache(maxsize=1 << 16)
def word_stems(word: str) -> frozenset[str]:
    """The stems of a word and of its parts."""
    return frozenset(stems(_split(word)))
