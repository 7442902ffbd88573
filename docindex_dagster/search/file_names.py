"""How far a query names a file: the share of the words of its name that the query has."""

from collections.abc import Collection
from functools import lru_cache

from docindex_dagster.stores.analysis import parts, stems, terms

# A word and one that begins with it are the same, unless it is shorter: `env`, `environment`.
_SHORTEST = 3
# What the file is called that stands for its folder, whose name says what it is about.
_OF_FOLDERS = frozenset({"index", "init", "mod"})


def share_named(path: str, query: tuple[str, ...]) -> float:
    """The share of the words in a file's name that a query has, whose stems are given: 0 to 1.

    A word is the same in each of its forms, and where it begins a word of the query or the other way about.
    """
    words = _words(_name(path))
    return sum(_is_among(word, query) for word in words) / len(words) if words else 0.0


def is_written(path: str, terms_of_query: Collection[str]) -> bool:
    """Whether a query has the name of a file with its ending, as `README.md` is written; its terms are given."""
    return _terms(path.rpartition("/")[2]).issubset(terms_of_query)


def _name(path: str) -> str:
    """What a file is called: without its ending, or as its folder where it stands for that."""
    folder, _, file = path.rpartition("/")
    name = file.rpartition(".")[0] or file
    stands_for_folder = name.split(".", maxsplit=1)[0].strip("_").lower() in _OF_FOLDERS
    return folder.rpartition("/")[2] if folder and stands_for_folder else name


@lru_cache(maxsize=1 << 16)
def _terms(name: str) -> frozenset[str]:
    return frozenset(terms(name))


@lru_cache(maxsize=1 << 16)
def _words(name: str) -> frozenset[str]:
    return frozenset(stems(parts(name)))


def _is_among(word: str, query: tuple[str, ...]) -> bool:
    """Whether a word is the same, or one of both begins with the other."""
    if word in query:
        return True
    long, lines = _long(query)
    return len(word) >= _SHORTEST and (word.startswith(long) or f"\n{word}" in lines)


@lru_cache(maxsize=64)  # it is asked for each file that a query finds
def _long(words: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """The words that are long enough to be begun with, and a text in which each of them is a line."""
    long = tuple(word for word in words if len(word) >= _SHORTEST)
    return long, "".join(f"\n{word}" for word in long)
