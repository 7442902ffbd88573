"""A question and the files that answer it, and which texts are worth asking."""

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

Category = Literal["commit", "docstring", "heading", "issue", "symbol"]
CATEGORIES: tuple[Category, ...] = ("commit", "docstring", "heading", "issue", "symbol")

_LEAST_WORDS = 3  # with content
_LONGEST = 200  # characters
_LEAST_LETTERS = 0.6  # of the characters but spaces
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]+")
_ANY_WORD = re.compile(r"[a-z0-9]+")
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
# Words that say nothing of what a file is about, those of changes included.
_EMPTY_WORDS = """
a about add added adding adds after all allow allowed allows also always an and any are as at avoid be because been
before being better both bug bugs but by can cannot change changed changes changing clean cleanup code correct
correctly could did do does doesn don done each ensure even every false few first fix fixed fixes fixing for from get
given gives had has have how if improve improved improvement improvements in instead into is isn issue issues it its
just last less like make makes making may minor misc more most move moved moves much must need needed needs never new
no not now of off old on once one only or other our out over please problem proper properly refactor remove removed
removes removing rename renamed replace replaced return returned returns same see set sets several shall should
simplify since small so some still such support supported supports than that the their them then there these they
thing things this those through to too true try tweak two under unnecessary until up update updated updates updating
upon us use used useful user uses using various very via want wants was way we were what when where whether which
while who whose why will with within without work working works would you your
"""
_EMPTY = frozenset(_EMPTY_WORDS.split())


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and the paths of the files that answer it."""

    query: str
    category: Category
    targets: tuple[str, ...]


def content_words(text: str) -> frozenset[str]:
    """The words of a text that say what it is about, in lower case, names cut at their capitals."""
    found = (part.lower() for word in _WORD.findall(text) for part in _PARTS.findall(word))
    return frozenset(word for word in found if len(word) > 1 and word not in _EMPTY and not word.isdigit())


def normalised(text: str) -> str:
    """The words of a text in lower case between spaces, whatever marks of comments stand between them."""
    return f" {' '.join(_ANY_WORD.findall(text.lower()))} "


def is_worth_asking(question: Question) -> bool:
    """Whether a question has enough words, is English as far as letters tell, and says more than a file's name."""
    query = question.query
    found = content_words(query)
    letters = sum(char.isalpha() and char.isascii() for char in query)
    return (
        len(found) >= _LEAST_WORDS
        and len(query) <= _LONGEST
        and letters >= _LEAST_LETTERS * len(query.replace(" ", ""))
        and all(char.isascii() or not char.isalpha() for char in query)
        and not any(_is_name_of(query, found, path.rpartition("/")[2]) for path in question.targets)
    )


def _is_name_of(query: str, asked: frozenset[str], file: str) -> bool:
    return file.lower() in query.lower() or asked <= content_words(file)


def distinct(questions: Iterable[Question]) -> Iterator[Question]:
    """Those questions whose words nobody asked before."""
    seen: set[str] = set()
    for question in questions:
        words = normalised(question.query)
        if words not in seen:
            seen.add(words)
            yield question


def sample(questions: Sequence[Question], most: int, seed: str) -> list[Question]:
    """So many questions, in random order; the same seed gives the same ones."""
    order = sorted(questions, key=lambda question: (question.query, question.targets))
    random.Random(seed).shuffle(order)  # noqa: S311 nothing secret
    return [*islice(order, most)]
