"""docs/glossary.md is the language of the code: none of its “not” words stands in a name, docstring or comment."""

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "docindex_dagster"
GLOSSARY = ROOT / "docs" / "glossary.md"
FIXTURES = ROOT / "tests" / "fixtures"


def rows() -> list[tuple[str, str, list[str]]]:
    """The rows of the table: term, meaning, and what not to say."""
    lines = [line.strip("|\n").split("|") for line in GLOSSARY.read_text().splitlines() if line.startswith("| ")]
    return [
        (term.strip(), meaning.strip(), [word.strip() for word in words.split(",") if word.strip()])
        for term, meaning, words in lines[1:]
    ]


BANNED = sorted({word for _, _, words in rows() for word in words})


# The others are plain English in a sentence, and no name of a thing.
SENTENCES = sorted(set(BANNED) - {"following", "said", "at once", "standing"})


@lru_cache(1)  # of one module, its names are looked at and then its texts
def parsed(code: str) -> ast.Module:
    return ast.parse(code)


def names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """What a module defines: functions, classes, parameters, variables, attributes."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.lineno, node.name
            case ast.arg():
                yield node.lineno, node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.lineno, node.attr


@cache
def as_words(name: str) -> str:
    """A name in snake or camel case as lower-case words."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_", " ", name).lower().strip()


def texts(code: str) -> Iterator[tuple[int, str]]:
    """The docstrings and comments of a module."""
    for node in ast.walk(parsed(code)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "lineno", 1), text
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def any_of(words: Iterable[str]) -> re.Pattern[str]:
    """Finds each of these words, and its plural."""
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, words))})s?\b", re.IGNORECASE)


IN_NAMES = any_of(BANNED)
IN_SENTENCES = any_of(SENTENCES)


def in_names(code: str) -> Iterator[tuple[int, str]]:
    """The names that have a word that is not to be said. What a test is called is a sentence."""
    for line, name in names(parsed(code)):
        unsaid = IN_SENTENCES if name.startswith("test_") else IN_NAMES
        if unsaid.search(as_words(name)):
            yield line, name


def in_texts(code: str) -> Iterator[tuple[int, str]]:
    return ((line, found[0]) for line, text in texts(code) for found in IN_SENTENCES.finditer(text))


def found_in(files: Iterable[Path]) -> list[str]:
    return [
        f"{file.relative_to(ROOT)}:{line}: {what}"
        for file in files
        for code in [file.read_text()]
        for line, what in (*in_names(code), *in_texts(code))
    ]


@pytest.mark.parametrize("room", sorted(path.name for path in PACKAGE.iterdir() if path.suffix in {"", ".py"}))
def test_the_package_has_the_words_of_the_glossary(room):
    path = PACKAGE / room
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))

    assert found_in(files) == []


@pytest.mark.parametrize("folder", ["tests", "benchmarks", "training"])
def test_tests_and_benchmarks_have_them_too(folder):
    files = [file for file in sorted((ROOT / folder).rglob("*.py")) if FIXTURES not in file.parents]

    assert found_in(files) == []


@pytest.mark.parametrize(
    "text",
    [
        '"""Files that import each other in a circle."""',
        "def tell_nobody(): ...",
        "class Following: ...",
        "class KeepsWalls:\n    crowd = 1",
        "def f(standing): ...",
        'def f():\n    """How much processor time it takes."""',
        "self.arrived_vectors = 1",
        "told = []",
        "x = 1  # what nobody was told",
    ],
)
def test_the_script_finds_them(text):
    assert [*in_names(text), *in_texts(text)]


def test_names_of_tests_may_be_sentences():
    assert not [*in_names("def test_what_follows_at_once(): ...")]


def test_the_glossary_is_complete_and_in_no_row_twice():
    terms = [term for term, _, _ in rows()]

    assert len(terms) > 30
    assert len(set(terms)) == len(terms)
    assert all(meaning for _, meaning, _ in rows())
    assert len(BANNED) >= 15
