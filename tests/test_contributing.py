"""Tests that every path and name mentioned in CONTRIBUTING.md exists."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "docindex_dagster"
PLACES = re.findall(r"^\| (.+?) \| `([\w/]+\.py)`: `(\w+)` \|$", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)


def defined(path: Path) -> set[str]:
    """Return the functions, classes and variables defined at module level."""
    names: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Assign(targets=targets):
                names |= {target.id for target in targets if isinstance(target, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
    return names


@pytest.mark.parametrize(("change", "module", "name"), PLACES)
def test_the_place_of_a_change_exists(change, module, name):
    assert name in defined(PACKAGE / module)


@pytest.mark.parametrize(
    "word",
    [
        *("languages", "reranker", "RRF's k", "sensor", "column of the chunks", "states of a source", "MCP tool"),
        *("embedder", "keeps failing", "Kotlin call", "filter of searches", "an operation", "has changed"),
    ],
)
def test_the_changes_that_are_asked_for_most_have_a_place(word):
    assert len([change for change, _, _ in PLACES if word in change]) == 1
