"""In which language a document is written, by py3langid: its model lies in its package, and its answer never varies."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable
from functools import cache, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

_READ = 8_000  # characters of a document that decide
_LEAST_LETTERS = 40  # fewer of them say nothing
_SURE = 0.9
_CODE = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?^[ \t]*\1|`[^`\n]*`|https?://\S+|<[^>\n]{1,200}>", re.MULTILINE | re.DOTALL)
# Languages that are called otherwise by the model, in file names, or by their country.
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
    """The language of a document, by the texts of its chunks, as ISO 639-1; None where that is not sure.

    Code does not count.
    """
    read = ""
    for text in texts:
        read += _CODE.sub(" ", text) + "\n"
        if len(read) >= _READ:
            break
    letters = sum(char.isalpha() for char in read[:_READ])
    if letters < _LEAST_LETTERS:
        return None
    scores = _scores(read[:_READ])
    best = max(scores, key=scores.__getitem__)
    return best if scores[best] >= _SURE else None


@lru_cache(maxsize=256)
def language_among(text: str, languages: Collection[str]) -> str | None:
    """Which of some languages a short text is written in; None where that is not sure."""
    scores = _scores(text)
    known = {language: scores[language] for language in languages if language in scores}
    best = max(known, key=known.__getitem__, default=None)
    return best if best is not None and known[best] >= _SURE * sum(known.values()) else None


def _scores(text: str) -> dict[str, float]:
    """How likely a text is written in each language; they sum to 1."""
    scores: dict[str, float] = defaultdict(float)
    for tag, score in _identifier().rank(text):
        scores[of_tag(tag) or tag] += score
    return scores


def of_tag(tag: str) -> str | None:
    """The language that a tag such as `de`, `pt-BR` or `zh_CN` names; None for what is no tag."""
    found = _TAG.fullmatch(tag.lower())
    return _ALIASES.get(found[1], found[1]) if found else None


@cache
def _identifier() -> "LanguageIdentifier":
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
