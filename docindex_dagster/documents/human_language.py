"""Detection of a document's human language with py3langid, which bundles its model and is deterministic."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable
from functools import cache, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

_MAX_CHARACTERS = 8_000  # characters of a document that are examined
_MIN_LETTERS = 40  # fewer letters are not conclusive
_MIN_CONFIDENCE = 0.9
_CODE = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?^[ \t]*\1|`[^`\n]*`|https?://\S+|<[^>\n]{1,200}>", re.MULTILINE | re.DOTALL)
# Language codes that the model or file names write differently, and country codes used as language codes.
_ALIASES = {
    "wuu": "zh",
    "yue": "zh",
    "cn": "zh",
    "tw": "zh",
    "jp": "ja",
    "kr": "ko",
    "ua": "uk",
    "cz": "cs",
    "br": "pt",
    "nb": "no",
    "nn": "no",
    "gr": "el",
    "dk": "da",
    "se": "sv",
}
_TAG = re.compile(r"([a-z]{2,3})(?:[-_][a-z]{2,4}|[-_]\d{3}){0,2}")


def language_of(texts: Iterable[str]) -> str | None:
    """Return the ISO 639-1 code of a document's language, detected from the texts of its chunks; None if uncertain.

    Code is ignored.
    """
    read = ""
    for text in texts:
        read += _CODE.sub(" ", text) + "\n"
        if len(read) >= _MAX_CHARACTERS:
            break
    letters = sum(char.isalpha() for char in read[:_MAX_CHARACTERS])
    if letters < _MIN_LETTERS:
        return None
    scores = _scores(read[:_MAX_CHARACTERS])
    best = max(scores, key=scores.__getitem__)
    return best if scores[best] >= _MIN_CONFIDENCE else None


@lru_cache(maxsize=256)
def language_among(text: str, languages: Collection[str]) -> str | None:
    """Return which of some languages a short text is written in; None if uncertain."""
    scores = _scores(text)
    known = {language: scores[language] for language in languages if language in scores}
    best = max(known, key=known.__getitem__, default=None)
    return best if best is not None and known[best] >= _MIN_CONFIDENCE * sum(known.values()) else None


def _scores(text: str) -> dict[str, float]:
    """Return the probability of each language for a text; they sum to 1."""
    scores: dict[str, float] = defaultdict(float)
    for tag, score in _identifier().rank(text):
        scores[parse_language_tag(tag) or tag] += score
    return scores


def parse_language_tag(tag: str) -> str | None:
    """Return the language of a tag such as `de`, `pt-BR` or `zh_CN`; None if it is not a language tag."""
    found = _TAG.fullmatch(tag.lower())
    return _ALIASES.get(found[1], found[1]) if found else None


@cache
def _identifier() -> "LanguageIdentifier":
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
