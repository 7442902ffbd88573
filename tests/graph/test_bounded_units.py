"""Large sources: memory holds no more units than allowed, and the graph is the same."""

import weakref

import pytest

from docindex_dagster.callgraph.program import Units
from docindex_dagster.callgraph.resolver import queries
from docindex_dagster.callgraph.units import Unit
from docindex_dagster.graph import build
from docindex_dagster.graph.build import without_code
from tests.graph.built import build_graph, references_of
from tests.graph.calls import PROGRAMS, chunks_of

MOST = 40  # statements; the programs have hundreds


@pytest.mark.parametrize("module", [build, queries])  # key creation and name resolution
@pytest.mark.parametrize("language", ["python", "cpp", "ruby", "rust", "typescript"])
def test_the_graph_is_the_same_where_few_units_are_held(language, module, monkeypatch):
    chunks = chunks_of(PROGRAMS / language)
    whole = build_graph(chunks)
    held: list[int] = []
    gone: list[weakref.ref[Unit]] = []
    survivors: list[str] = []
    clear = Units.clear

    def noted(units: Units) -> None:
        held.append(units.statements)
        survivors.extend(unit.path for reference in gone if (unit := reference()) is not None)
        gone[:] = map(weakref.ref, units._units.values())
        clear(units)

    monkeypatch.setattr(Units, "clear", noted)
    monkeypatch.setattr(module, "MOST_STATEMENTS", MOST)

    bounded = build_graph(chunks)

    assert bounded.nodes.equals(whole.nodes)
    assert bounded.triples.equals(whole.triples)
    assert sum(statements > MOST for statements in held) > 3
    assert survivors == []


def test_what_is_held_of_one_family_of_languages_is_let_go_of_before_the_next(monkeypatch, tmp_path):
    for name, text in (
        ("a.py", "def a():\n    b()\n\ndef b():\n    pass\n"),
        ("c.rb", "def c\n  d\nend\n\ndef d\nend\n"),
    ):
        (tmp_path / name).write_text(text)
    held: list[set[str]] = []
    clear = Units.clear

    def noted(units: Units) -> None:
        held.append({*units._units})
        clear(units)

    monkeypatch.setattr(Units, "clear", noted)

    build_graph(chunks_of(tmp_path))

    assert held == [{"a.py", "c.rb"}, {"c.rb"}]


def test_without_the_text_of_code_the_graph_is_the_same(tmp_path):
    files = {
        "tsconfig.json": '{"compilerOptions": {"paths": {"@lib/*": ["src/inner/*"]}}}\n',
        "main.ts": 'import { run } from "@lib/engine";\n\nexport function main() {\n  run();\n}\n',
        "src/inner/engine.ts": "// Runs.\nexport function run() {}\n",
        "guide.md": "# Guide\n\nSee [engine](src/inner/engine.ts) and `run`.\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(text)
    chunks = chunks_of(tmp_path)
    whole, less = build_graph(chunks), build.build_graph(without_code(chunks), references_of(chunks))

    assert less.nodes.equals(whole.nodes)
    assert less.triples.equals(whole.triples)
    assert "main.ts::main calls src/inner/engine.ts::run" in {
        f"{row['subject']} {row['predicate']} {row['object']}" for row in less.triples.to_pylist()
    }
    texts = {row["path"]: row["text"] for row in without_code(chunks).to_pylist()}
    assert (texts["main.ts"], texts["src/inner/engine.ts"]) == ("", "")
