"""Incremental updates: an edit re-resolves its dependents, and the graph equals a full build."""

import os
import random
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from docindex_dagster.graph import build
from docindex_dagster.graph.source_graph import Graph
from tests.graph.built import build_graph, update_graph
from tests.graph.calls import PROGRAMS, chunks_of, programs


class Edited:
    """A folder of several programs with its up-to-date graph."""

    def __init__(self, folder: Path, names: list[str]) -> None:
        self.folder = folder
        for name in names:
            shutil.copytree(PROGRAMS / name, folder / name.replace("/", "-"))
        self.chunks = chunks_of(folder)
        self.graph = build_graph(self.chunks)

    def update(self) -> Graph:
        chunks = chunks_of(self.folder)
        self.graph = update_graph(self.graph, chunks)
        self.chunks = chunks
        return self.graph

    def files(self) -> list[Path]:
        return sorted(path for path in self.folder.rglob("*") if path.is_file() and path.name != "calls.txt")


def assert_same(graph: Graph, chunks: pa.Table) -> None:
    whole = build_graph(chunks)
    assert graph.triples.to_pylist() == whole.triples.to_pylist()
    assert graph.nodes.to_pylist() == whole.nodes.to_pylist()


def edit(chance: random.Random, edited: Edited) -> str:
    """Apply a random edit of the kind people make to files."""
    files = edited.files()
    path = chance.choice(files)
    lines = path.read_text("utf-8").split("\n")
    kind = chance.choice(["line", "line", "line", "swap", "rename", "remove", "copy", "move", "empty", "import"])
    if kind == "line":
        del lines[chance.randrange(len(lines))]
    elif kind == "swap":
        at, to = chance.randrange(len(lines)), chance.randrange(len(lines))
        lines[at], lines[to] = lines[to], lines[at]
    elif kind == "rename":
        words = [
            word for line in lines for word in line.replace("(", " ").replace(".", " ").split() if word.isidentifier()
        ]
        if words:
            old = chance.choice(words)
            lines = "\n".join(lines).replace(old, chance.choice(["renamed", "add", "get", old])).split("\n")
    elif kind == "empty":
        lines = []
    elif kind == "import":
        lines.insert(0, chance.choice(lines))
    if kind == "remove" and len(files) > 3:
        path.unlink()
    elif kind == "copy":
        original, copy = chance.choice(files), path.with_name(f"copy{chance.randrange(3)}{path.suffix}")
        copy.write_bytes(original.read_bytes())
    elif kind == "move":
        path.rename(path.with_name(f"moved{chance.randrange(3)}{path.suffix}"))
    else:
        path.write_text("\n".join(lines), "utf-8")
    return f"{kind} {path.name}"


def many() -> int:
    return int(os.environ.get("DOCINDEX_TEST_STEPS") or 200)


def assert_defined_once(graph: Graph) -> None:
    """Assert that each symbol has exactly one `defines` edge."""
    symbols = graph.nodes.filter(pc.match_substring(graph.nodes["node"], "::"))["node"]
    defined = graph.triples.filter(pc.equal(graph.triples["predicate"], "defines"))["object"]
    assert sorted(defined.to_pylist()) == sorted(symbols.to_pylist())


@pytest.mark.parametrize("steps", [20, pytest.param(0, marks=pytest.mark.states)])
def test_after_random_edits_the_graph_is_that_of_a_build_from_nothing(tmp_path, steps):
    chance = random.Random(int(os.environ.get("DOCINDEX_TEST_SEED") or 7))
    names = [program.relative_to(PROGRAMS).as_posix() for program in programs()]
    edited = Edited(tmp_path, chance.sample(names, min(6, len(names))))
    done = []
    for step in range(steps or many()):
        done.append(edit(chance, edited))
        graph = edited.update()
        try:
            assert_same(graph, edited.chunks)
        except AssertionError as error:
            raise AssertionError(f"step {step}: {done[-3:]}") from error
        paths = set(edited.chunks["path"].to_pylist())
        assert set(graph.triples["path"].to_pylist()) <= paths
        assert set(graph.triples["chunk_id"].to_pylist()) <= set(edited.chunks["chunk_id"].to_pylist())
        assert_defined_once(graph)


def test_an_edit_of_a_body_resolves_only_its_own_file(tmp_path, monkeypatch):
    edited = Edited(tmp_path, ["python/ledger-package"])
    file = tmp_path / "python-ledger-package" / "ledger" / "money.py"
    resolved = watched(monkeypatch)
    file.write_text(file.read_text().replace("return round(amount, 2)", "return round(amount, 3)"))
    edited.update()
    assert resolved == ["python-ledger-package/ledger/money.py"]


def test_a_function_that_gets_another_name_is_resolved_again_where_it_was_called(tmp_path, monkeypatch):
    edited = Edited(tmp_path, ["python/ledger-package"])
    file = tmp_path / "python-ledger-package" / "ledger" / "money.py"
    resolved = watched(monkeypatch)
    file.write_text(file.read_text().replace("def parse(", "def read("))
    graph = edited.update()
    assert {path.rpartition("/")[2] for path in resolved} >= {"money.py", "accounts.py", "journal.py", "main.py"}
    called = graph.triples.filter(pc.equal(graph.triples["predicate"], "calls"))["object"].to_pylist()
    assert "python-ledger-package/ledger/money.py::parse" not in called


def watched(monkeypatch) -> list[str]:
    """Return a list that collects the paths of files resolved from now on."""
    resolved: list[str] = []
    extract = build._File.extracted

    def watch(file, ends_at):
        resolved.append(file.path)
        return extract(file, ends_at)

    monkeypatch.setattr(build._File, "extracted", watch)
    return resolved
