"""From text to the terms that the full-text index holds; documents and queries go the same way.

Identifiers are kept whole and split at underscores, at changes of case and around digits. There are no stop words,
which are syntax in code. Text and headings are held as stems, names and paths as they are.

Beyond ASCII, a word is taken in its compatibility form, without what is not seen of it (soft hyphens, joiners), and is
held a second time without accents. Scripts without spaces, whose words only a dictionary could tell apart, are held as
pairs of neighbouring characters, Han also as single ones, many of which are words; Hangul, where particles follow a
word without a space, as words and as pairs.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tantivy import TextAnalyzer

# Raise it when a text gives other terms.
TERMS_VERSION = "3"
_LONGEST = 128  # longer runs are data, such as keys and hashes in base64

_ACCENTS = r"\u0300-\u036f"
# Vowel signs and points, which `\w` does not count as part of a word.
_MARKS = (
    _ACCENTS + r"\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    r"\u0900-\u0963\u0966-\u0dff\u0e31-\u0e3a\u0e47-\u0e4e\u0eb1-\u0ebc\u0ec8-\u0ece\u0f71-\u0f84\u102b-\u103e"
    r"\u1056-\u109d\u17b4-\u17d3\u17dd\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\u3099\u309a\ufe20-\ufe2f"
)
# Soft hyphens, joiners, marks of direction, selectors of variants.
_INVISIBLE = r"\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff"
# Thai, Lao, Myanmar, Khmer, Tai, Han, kana, bopomofo.
_UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\u2e80-\u2fdf\u3005-\u3007\u3031-\u3130"
    r"\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua9e0-\ua9ff\uaa60-\uaadf\uf900-\ufaff\U0001b000-\U0001b16f"
    r"\U00020000-\U0003ffff"
)
_HANGUL = r"\u1100-\u11ff\u3131-\u318f\uac00-\ud7ff"
_HALF_WIDTH = r"\uff65-\uffdc"  # kana and Hangul, until they are normalised
_ASCII_WORD = re.compile(r"\w+")
_WORD = re.compile(rf"\w+(?:[{_MARKS}{_INVISIBLE}]+\w*)*")
_PART = re.compile(rf"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|(?:[^\W\d_A-Za-z][{_MARKS}]*)+")
_HAN = re.compile(r"[\u2e80-\u2fdf\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_PAIR = 2  # characters that are held together
# A Korean word of one character with a particle, whose pairs would not say it.
_WITH_PARTICLE = re.compile(
    "(?P<word>.)(?:[은는이가을를에의도와과로만]|에서|에는|에도|으로|까지|부터|처럼|보다|이나|마다)"
)
_CHARACTER = re.compile(rf".[{_MARKS}]*", re.DOTALL)
_IS_INVISIBLE = re.compile(f"[{_INVISIBLE}]+")
_IS_ACCENT = re.compile(f"[{_ACCENTS}]+")
# Letters that no normal form takes apart.
_LETTERS = str.maketrans(
    {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "ł": "l", "þ": "th", "ħ": "h", "\u0131": "i"}
    | {"ẞ": "SS", "Æ": "AE", "Œ": "OE", "Ø": "O", "Đ": "D", "Ð": "D", "Ł": "L", "Þ": "TH", "Ħ": "H"}
)


def plain(text: str) -> str:
    """Return a text in its compatibility form (NFKC), without invisible characters."""
    return text if text.isascii() else unicodedata.normalize("NFKC", _IS_INVISIBLE.sub("", text))


@lru_cache(maxsize=1 << 14)
def without_accents(word: str) -> str:
    """Return a word with the letters that accents stand on; the vowel signs of other scripts stay."""
    if word.isascii():
        return word
    letters = unicodedata.normalize("NFD", word.translate(_LETTERS))
    return unicodedata.normalize("NFC", _IS_ACCENT.sub("", letters))


def spellings(of_terms: Iterable[str]) -> list[str]:
    """The distinct terms, without those that are another one without its accents."""
    distinct = dict.fromkeys(of_terms)
    unaccented = {found for term in distinct if (found := without_accents(term)) != term}
    return [term for term in distinct if term not in unaccented]


@cache  # compiled where a text needs them: that takes 10 ms
def _scripts() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What finds a character of a script without spaces, and what cuts a word into runs of one kind of script."""
    runs = rf"(?P<unspaced>[{_UNSPACED}]+)|(?P<hangul>[{_HANGUL}]+)|(?P<spaced>[^\W{_UNSPACED}{_HANGUL}][{_MARKS}]*)+"
    return re.compile(f"[{_UNSPACED}{_HANGUL}{_HALF_WIDTH}]"), re.compile(runs)


def is_unspaced(text: str) -> bool:
    """Whether a text has characters of scripts whose words are not, or not always, set apart by spaces."""
    return not text.isascii() and bool(_scripts()[0].search(text))


def joins_known(term: str, known: Collection[str]) -> bool:
    """Whether a term of a script without spaces only joins terms that are known: one ends in it, another begins.

    In Hangul, what follows a known term may be a particle.
    """
    if not is_unspaced(term):
        return False
    at = [found.start() for found in _CHARACTER.finditer(term)]
    if len(at) == 1:
        return False
    longer = [other for other in known if len(_CHARACTER.findall(other)) > 1]
    if re.match(f"[{_HANGUL}]", term):
        return any(term.startswith(other) or other.endswith(term[: at[1]]) for other in longer)
    first, last = term[: at[1]], term[at[-1] :]
    return any(other.endswith(first) for other in longer) and any(other.startswith(last) for other in longer)


@lru_cache(maxsize=1 << 17)
def _split(word: str) -> tuple[str, ...]:
    """The word itself in lower case, without its accents if it has some and, when it has several, its parts."""
    if len(word) > _LONGEST:
        return ()
    whole = "".join(plain(word).lower().split())  # the compatibility form of some letters begins with a space
    unaccented = without_accents(whole)
    return (whole, *_parts(word)) if unaccented in {whole, ""} else (whole, unaccented, *_parts(word))


def _parts(word: str) -> list[str]:
    """The parts of an identifier, without accents; none when it has but one."""
    found = _PART.findall(without_accents(plain(word)))
    return [part.lower() for part in found] if found[1:] else []


def terms(text: str) -> list[str]:
    """All terms of a text, in order, repeats included."""
    if text.isascii():
        return [term for word in _ASCII_WORD.findall(text) for term in _split(word)]
    return [term for word in _WORD.findall(text) for term in (_split(word) if word.isascii() else _terms(word))]


def _terms(word: str) -> Sequence[str]:
    return [term for *_, of in _pieces(plain(word)) for term in of] if is_unspaced(word) else _split(word)


def parts(text: str) -> list[str]:
    """The words of a text, in order; of an identifier its parts, without the whole."""
    words = _WORD.findall(text)
    return [part for word in words for part in (is_unspaced(word) and _terms(word)) or _parts(word) or _split(word)[:1]]


def located(text: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Where the words of a text, or pairs of its characters, begin and end, and the terms of each; they may overlap."""
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
    """The terms of a word of several scripts in its compatibility form, each with where it begins and ends."""
    for found in _scripts()[1].finditer(word):
        piece, (start, end) = found[0], found.span()
        if found["spaced"]:
            yield start, end, _split(piece.strip("_")) if piece.strip("_") else ()
            continue
        at = [start + one.start() for one in _CHARACTER.finditer(piece)] + [end]
        count = len(at) - 1
        if found["hangul"] and (short := _WITH_PARTICLE.fullmatch(piece)):
            yield start, at[1], (short["word"],)
        if count == 1 or (found["hangul"] and _PAIR < count <= _LONGEST):
            yield start, end, (piece,)
        elif found["unspaced"]:
            yield from ((a, b, (word[a:b],)) for a, b in pairwise(at) if _HAN.match(word, a))
        yield from ((a, b, (word[a:b],)) for a, b in zip(at, at[_PAIR:], strict=False))


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
def stems_of(of_terms: tuple[str, ...]) -> frozenset[str]:
    """The stems of the terms of a word."""
    return frozenset(stems(of_terms))
