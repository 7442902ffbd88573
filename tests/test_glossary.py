"""docs/glossary.md is the language of the code: none of its “not” words stands in a name or a docstring."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "docindex_dagster"
GLOSSARY = ROOT / "docs" / "glossary.md"


def rows() -> list[tuple[str, str, list[str]]]:
    """The rows of the table: term, meaning, and what not to say."""
    lines = [line.strip("|\n").split("|") for line in GLOSSARY.read_text().splitlines() if line.startswith("| ")]
    return [
        (term.strip(), meaning.strip(), [word.strip() for word in words.split(",") if word.strip()])
        for term, meaning, words in lines[1:]
    ]


BANNED = sorted({word for _, _, words in rows() for word in words})


# Plain English in a sentence, and no name of a thing.
ENGLISH = {"following", "said", "at once", "standing"}


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


def as_words(name: str) -> str:
    """A name in snake or camel case as lower-case words."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_", " ", name).lower().strip()


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "lineno", 1), text


def has(text: str, word: str) -> bool:
    """Whether a text has a word, or its plural."""
    return re.search(rf"\b{re.escape(word)}s?\b", text, re.IGNORECASE) is not None


def found_in(text: str, path: str = "module.py") -> list[str]:
    tree = ast.parse(text)
    in_names = [(line, name) for line, name in names(tree) for word in BANNED if has(as_words(name), word)]
    unsaid = [word for word in BANNED if word not in ENGLISH]
    in_texts = [(line, word) for line, doc in docstrings(tree) for word in unsaid if has(doc, word)]
    return [f"{path}:{line}: {what}" for line, what in (*in_names, *in_texts)]


@pytest.mark.parametrize("room", sorted(path.name for path in PACKAGE.iterdir() if path.suffix in {"", ".py"}))
def test_names_and_docstrings_have_the_words_of_the_glossary(room):
    path = PACKAGE / room
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))

    found = [each for file in files for each in found_in(file.read_text(), file.relative_to(PACKAGE).as_posix())]

    assert found == []


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
    ],
)
def test_the_script_finds_them(text):
    assert found_in(text)


def test_the_glossary_is_complete_and_in_no_row_twice():
    terms = [term for term, _, _ in rows()]

    assert len(terms) > 30
    assert len(set(terms)) == len(terms)
    assert all(meaning for _, meaning, _ in rows())
    assert len(BANNED) >= 15
