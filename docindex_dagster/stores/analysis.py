"""Text analysis for the full-text index: the terms of documents and queries.

Identifiers are kept intact, and also split at underscores, case changes and digits. There are no stop words, since in
code they are syntax. Text and headings are stored as stems, names and paths as they are.

Non-ASCII words are normalized to their compatibility form without invisible characters (soft hyphens, joiners), and
also stored without accents. Scripts without spaces, whose words only a dictionary could separate, are stored as bigrams
of characters. Han is also stored as single characters, many of which are words. Hangul, where particles follow a word
without a space, is stored as words and bigrams.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tantivy import TextAnalyzer

# Increment when the terms of any text change.
TERMS_VERSION = "3"
_MAX_TERM = 128  # longer runs are data, such as keys and base64 hashes

_ACCENTS = r"\u0300-\u036f"
# Vowel signs and points, which `\w` does not count as part of a word.
_MARKS = (
    _ACCENTS + r"\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    r"\u0900-\u0963\u0966-\u0dff\u0e31-\u0e3a\u0e47-\u0e4e\u0eb1-\u0ebc\u0ec8-\u0ece\u0f71-\u0f84\u102b-\u103e"
    r"\u1056-\u109d\u17b4-\u17d3\u17dd\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\u3099\u309a\ufe20-\ufe2f"
)
# Soft hyphens, joiners, directional marks, variation selectors.
_INVISIBLE = r"\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff"
# Thai, Lao, Myanmar, Khmer, Tai, Han, kana, bopomofo.
_UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\u2e80-\u2fdf\u3005-\u3007\u3031-\u3130"
    r"\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua9e0-\ua9ff\uaa60-\uaadf\uf900-\ufaff\U0001b000-\U0001b16f"
    r"\U00020000-\U0003ffff"
)
_HANGUL = r"\u1100-\u11ff\u3131-\u318f\uac00-\ud7ff"
_HALF_WIDTH = r"\uff65-\uffdc"  # kana and Hangul before normalization
_ASCII_WORD = re.compile(r"\w+")
_WORD = re.compile(rf"\w+(?:[{_MARKS}{_INVISIBLE}]+\w*)*")
_PART = re.compile(rf"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|(?:[^\W\d_A-Za-z][{_MARKS}]*)+")
_HAN = re.compile(r"[\u2e80-\u2fdf\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_BIGRAM = 2  # length of a bigram
# A Korean word of one character with a particle, which its bigrams would not match.
_WITH_PARTICLE = re.compile(
    "(?P<word>.)(?:[은는이가을를에의도와과로만]|에서|에는|에도|으로|까지|부터|처럼|보다|이나|마다)"
)
_CHARACTER = re.compile(rf".[{_MARKS}]*", re.DOTALL)
_IS_INVISIBLE = re.compile(f"[{_INVISIBLE}]+")
_IS_ACCENT = re.compile(f"[{_ACCENTS}]+")
# Letters that no normal form decomposes.
_LETTERS = str.maketrans(
    {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "ł": "l", "þ": "th", "ħ": "h", "\u0131": "i"}
    | {"ẞ": "SS", "Æ": "AE", "Œ": "OE", "Ø": "O", "Đ": "D", "Ð": "D", "Ł": "L", "Þ": "TH", "Ħ": "H"}
)


def plain(text: str) -> str:
    """Return the compatibility form (NFKC) of a text without invisible characters."""
    return text if text.isascii() else unicodedata.normalize("NFKC", _IS_INVISIBLE.sub("", text))


@lru_cache(maxsize=1 << 14)
def without_accents(word: str) -> str:
    """Return a word without accents; the vowel signs of other scripts are kept."""
    if word.isascii():
        return word
    letters = unicodedata.normalize("NFD", word.translate(_LETTERS))
    return unicodedata.normalize("NFC", _IS_ACCENT.sub("", letters))


def spellings(of_terms: Iterable[str]) -> list[str]:
    """Return the distinct terms, without those that are the unaccented form of another."""
    distinct = dict.fromkeys(of_terms)
    unaccented = {found for term in distinct if (found := without_accents(term)) != term}
    return [term for term in distinct if term not in unaccented]


@cache  # compiled only when needed: that takes 10 ms
def _scripts() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return patterns for a character of an unspaced script, and for runs of one kind of script inside a word."""
    runs = rf"(?P<unspaced>[{_UNSPACED}]+)|(?P<hangul>[{_HANGUL}]+)|(?P<spaced>[^\W{_UNSPACED}{_HANGUL}][{_MARKS}]*)+"
    return re.compile(f"[{_UNSPACED}{_HANGUL}{_HALF_WIDTH}]"), re.compile(runs)


def is_unspaced(text: str) -> bool:
    """Return whether a text has characters of scripts that do not, or not always, separate words by spaces."""
    return not text.isascii() and bool(_scripts()[0].search(text))


def joins_known(term: str, known: Collection[str]) -> bool:
    """Return whether a term of an unspaced script only joins the end of a known term and the start of another.

    In Hangul, a particle may follow a known term.
    """
    if not is_unspaced(term):
        return False
    starts = [found.start() for found in _CHARACTER.finditer(term)]
    if len(starts) == 1:
        return False
    longer = [other for other in known if len(_CHARACTER.findall(other)) > 1]
    if re.match(f"[{_HANGUL}]", term):
        return any(term.startswith(other) or other.endswith(term[: starts[1]]) for other in longer)
    first, last = term[: starts[1]], term[starts[-1] :]
    return any(other.endswith(first) for other in longer) and any(other.startswith(last) for other in longer)


@lru_cache(maxsize=1 << 17)
def _split(word: str) -> tuple[str, ...]:
    """Return the lower-case word, its unaccented form if that differs, and its parts if it has several."""
    if len(word) > _MAX_TERM:
        return ()
    lowered = "".join(plain(word).lower().split())  # the compatibility form of some letters starts with a space
    unaccented = without_accents(lowered)
    return (lowered, *_parts(word)) if unaccented in {lowered, ""} else (lowered, unaccented, *_parts(word))


def _parts(word: str) -> list[str]:
    """Return the unaccented parts of an identifier; empty if there is only one."""
    found = _PART.findall(without_accents(plain(word)))
    return [part.lower() for part in found] if found[1:] else []


def terms(text: str) -> list[str]:
    """Return all terms of a text in order, including duplicates."""
    if text.isascii():
        return [term for word in _ASCII_WORD.findall(text) for term in _split(word)]
    return [term for word in _WORD.findall(text) for term in (_split(word) if word.isascii() else _terms(word))]


def _terms(word: str) -> Sequence[str]:
    return [term for *_, of in _pieces(plain(word)) for term in of] if is_unspaced(word) else _split(word)


def parts(text: str) -> list[str]:
    """Return the words of a text in order, with identifiers replaced by their parts."""
    words = _WORD.findall(text)
    return [part for word in words for part in (is_unspaced(word) and _terms(word)) or _parts(word) or _split(word)[:1]]


def located(text: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Yield the start, end and terms of each word or character bigram of a text; they may overlap."""
    for found in _WORD.finditer(text):
        word, (start, end) = found[0], found.span()
        if not is_unspaced(word):
            yield start, end, _split(word)
            continue
        shown = plain(word)
        is_aligned = len(shown) == len(word)
        for first, last, of in _pieces(shown):
            yield (start + first, start + last, of) if is_aligned else (start, end, of)


def _pieces(word: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Yield the start, end and terms of each piece of a mixed-script word in compatibility form."""
    for found in _scripts()[1].finditer(word):
        piece, (start, end) = found[0], found.span()
        if found["spaced"]:
            yield start, end, _split(piece.strip("_")) if piece.strip("_") else ()
            continue
        boundaries = [start + match.start() for match in _CHARACTER.finditer(piece)] + [end]
        count = len(boundaries) - 1
        if found["hangul"] and (short := _WITH_PARTICLE.fullmatch(piece)):
            yield start, boundaries[1], (short["word"],)
        if count == 1 or (found["hangul"] and _BIGRAM < count <= _MAX_TERM):
            yield start, end, (piece,)
        elif found["unspaced"]:
            yield from ((a, b, (word[a:b],)) for a, b in pairwise(boundaries) if _HAN.match(word, a))
        yield from ((a, b, (word[a:b],)) for a, b in zip(boundaries, boundaries[_BIGRAM:], strict=False))


@cache
def stemmer() -> "TextAnalyzer":
    """Return the analyzer that stems space-separated terms: Snowball's for English, which keeps most names intact."""
    import tantivy

    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
    return builder.filter(tantivy.Filter.stemmer("english")).build()


def stems(of_terms: Sequence[str]) -> list[str]:
    """Return the stem of each term."""
    found: list[str] = stemmer().analyze(" ".join(of_terms))
    return found


@lru_cache(maxsize=1 << 16)
def stems_of(of_terms: tuple[str, ...]) -> frozenset[str]:
    """Return the stems of the terms of a word."""
    return frozenset(stems(of_terms))
