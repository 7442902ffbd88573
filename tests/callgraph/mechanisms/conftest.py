"""Fixtures that return the graph edges of small programs."""

from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent

import pyarrow.compute as pc
import pytest

from tests.graph.built import build_graph
from tests.graph.calls import chunks_of

Calls = Callable[[Mapping[str, str]], set[tuple[str, str, str]]]
"""Return edges (caller, callee, resolution) from file texts. Names of a single file omit its path."""


@pytest.fixture
def calls(tmp_path: Path) -> Calls:
    """Return the calls inside a program. Each program gets its own folder."""
    return lambda files: _edges(tmp_path, files, "calls")


@pytest.fixture
def may_calls(tmp_path: Path) -> Calls:
    """Return possible targets of dynamic dispatch."""
    return lambda files: _edges(tmp_path, files, "may_call")


@pytest.fixture
def imports(tmp_path: Path) -> Calls:
    """Return the imports of files."""
    return lambda files: _edges(tmp_path, files, "imports")


@pytest.fixture
def references(tmp_path: Path) -> Calls:
    """Return references to functions that are passed or assigned."""
    return lambda files: _edges(tmp_path, files, "references")


def _edges(root: Path, files: Mapping[str, str], predicate: str) -> set[tuple[str, str, str]]:
    folder = root / str(len([*root.iterdir()]))
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(dedent(text).lstrip("\n"), "utf-8")
    chunks = chunks_of(folder)
    graph = build_graph(chunks)
    fallbacks = dict(zip(chunks["path"].to_pylist(), chunks["fallback"].to_pylist(), strict=True))
    problems = {**graph.problems, **fallbacks}
    if any(problems.values()):
        raise RuntimeError(f"the graph has no edges of some files: {problems}")
    edges = graph.triples.filter(pc.equal(graph.triples["predicate"], predicate)).to_pylist()
    path = f"{next(iter(files))}::" if len(files) == 1 else ""
    return {
        (edge["subject"].removeprefix(path), edge["object"].removeprefix(path), edge["resolution"])
        for edge in edges
        if not edge["object"].startswith(("external:", "unresolved:"))
    }
