"""`docindex graph`: arguments and output."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import index_in

CALLER = "from pump import prime_pump\n\n\ndef start():\n    prime_pump(3)\n"


def write(folder: Path) -> None:
    (folder / "manual/plant.py").write_text(CALLER)


@pytest.fixture(scope="module")
def indexed_once(tmp_path_factory):
    return index_in(tmp_path_factory.mktemp("indexed"), write=write)


@pytest.fixture
def graphed(run_indexed):
    return run_indexed


def test_callers_are_reported_with_their_place_and_how_they_were_found(graphed):
    shown = graphed("graph", "callers", "prime_pump").out
    assert shown == "manual/plant.py:5  start calls pump.py::prime_pump  imported name\n"


def test_the_place_of_an_edge_can_be_typed_where_the_user_is(graphed, monkeypatch):
    root = Path.cwd()
    monkeypatch.setenv("DOCINDEX_ROOT", str(root))
    monkeypatch.chdir("manual")
    assert graphed("graph", "callers", "prime_pump").out.startswith("plant.py:5  ")
    monkeypatch.chdir(root.parent)
    assert graphed("graph", "callers", "prime_pump").out.startswith(
        f"{root.relative_to(root.parent)}/manual/plant.py:5  "
    )


def test_a_test_that_calls_what_it_tests_is_one_line(run):
    Path("manual/test_pump.py").write_text("from pump import prime_pump\n\n\ndef test_it():\n    prime_pump(1)\n")
    assert run("index", "manual").code == 0
    shown = run("graph", "impact", "prime_pump").out
    assert [line for line in shown.splitlines() if " test_it " in line] == [
        "manual/test_pump.py:5  test_it calls pump.py::prime_pump  imported name"
    ]


def test_json_has_all_fields(graphed):
    (step,) = json.loads(graphed("graph", "callees", "start", "--json").out)
    assert step["object"] == "library/manual!pump.py::prime_pump"
    assert step["file"] == str(Path.cwd() / "manual" / "plant.py")
    assert {"depth", "predicate", "path", "line", "chunk_id", "confidence", "resolution"} <= step.keys()


def test_what_is_not_in_the_graph_is_a_line_and_exit_code_1(graphed):
    answer = graphed("graph", "callers", "nothing")
    assert answer.code == 1
    assert answer.err.startswith("error: 'nothing' not found in the graph")


def test_statistics_and_cycles(graphed):
    assert "resolved" in graphed("graph", "stats").out
    assert graphed("graph", "cycles").out.strip() == "no import cycles"


def test_the_graph_is_written_for_other_programs(graphed):
    assert graphed("graph", "export", "--format", "mermaid").out.startswith("flowchart")
    assert "nodes" in graphed("graph", "export", "--output", "graph.graphml").out
    from networkx import read_graphml

    assert read_graphml("graph.graphml").has_edge(
        "library/manual!plant.py::start", "library/manual!pump.py::prime_pump"
    )


def test_what_a_file_is_called_cannot_steer_the_terminal(run):
    Path("manual/\x1b[31m.py").write_text("def red():\n    return red()\n")
    run("index", "manual")
    assert "\x1b" not in run("graph", "callers", "red").out
