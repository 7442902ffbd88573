"""Concepts from a language model, end to end: a real index and a graph of relations from an LLM behind HTTP."""

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from docindex_dagster.cli import main
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import CONFIG_NAME, Settings, load_settings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.pipeline.up_to_date import is_current
from docindex_dagster.runner.run import index
from docindex_dagster.sources import registry
from docindex_dagster.sources.model import Source
from docindex_dagster.stores.doctor import examine
from docindex_dagster.stores.publish import Publication
from docindex_dagster.stores.reader import open_reader
from tests.incremental.contents import difference, from_nothing, stores_of, tables_of
from tests.llm.server import KEY, LlmServer, unused_url

KEY_OF_SOURCE = "library/files"
PUMP = "# Pump\n\nFirst.\n\nA Pump needs\nWater, says the manual.\n"
TANK = "# Tank\n\nThe Tank holds Water.\n"
CODE = "def push(amount):\n    return amount\n"


def triples(*relations: tuple[str, str, str]) -> str:
    return json.dumps([dict(zip(("subject", "predicate", "object"), each, strict=True)) for each in relations])


def answer_to(text: str) -> str:
    """Return the model's answer about a chunk, depending on its text."""
    if "Pump" in text:
        return f"Here you are:\n```json\n{triples(('Water', 'requires', 'Pump'), ('Pump', 'eats', 'Water'))}\n```"
    if "Tank" in text:
        return triples(("Tank", "contains", "Water"))
    return triples((re.sub(r"\W", " ", text).split()[-1], "uses", "Water"))


@dataclass(slots=True)
class Project:
    """A library of two documents and a module, each a single chunk, whose settings name an LLM."""

    root: Path
    llm: LlmServer
    llm_options: str = "concurrency = 2\ntimeout_s = 2\nretries = 0"
    graph: str = 'concepts = "llm"'

    @property
    def files(self) -> Path:
        return self.root / "files"

    @property
    def settings(self) -> Settings:
        of_llm = f'[llm]\nprovider = "openai"\nmodel = "small-1"\nbase_url = "{self.llm.url}"\n{self.llm_options}\n'
        of_source = '[[source]]\nkind = "library"\npath = "files"\n'
        (self.root / CONFIG_NAME).write_text(f"{of_source}{of_llm}[graph]\n{self.graph}\n")
        return load_settings(self.root)

    @property
    def layout(self) -> Layout:
        return Layout(self.settings.home)

    def write(self, name: str, text: str) -> None:
        (self.files / name).write_text(text)

    def index(self, *, full: bool = False) -> Publication:
        settings = self.settings
        return index(settings, registry.find(settings, KEY_OF_SOURCE), StaticEmbedder(), full=full)

    def asked_meanwhile(self, *, full: bool = False) -> list[str]:
        """Index without a graph problem, and return the headings and texts sent to the LLM."""
        before = len(self.llm.asked)
        assert self.index(full=full).graph_problem == ""
        return sorted(self.llm.pieces[before:])

    @property
    def is_current(self) -> bool:
        settings = self.settings
        return is_current(settings, registry.find(settings, KEY_OF_SOURCE))

    @property
    def edges(self) -> list[dict[str, Any]]:
        """The edges that lead to concepts."""
        graph = open_reader(self.layout).graph
        rows = graph.edges.to_pylist()
        named = [{**row, "subject": graph.ids[row["subject"]], "object": graph.ids[row["object"]]} for row in rows]
        return [row for row in named if row["object"].startswith("concept:")]

    @property
    def relations(self) -> set[tuple[str, str, str]]:
        """The relations between concepts."""
        ends = [(row["subject"], row["predicate"], row["object"]) for row in self.edges]
        return {
            (subject.partition(":")[2], predicate, concept.partition(":")[2])
            for subject, predicate, concept in ends
            if subject.startswith("concept:")
        }

    def assert_as_from_nothing(self) -> None:
        settings = self.settings
        made = from_nothing(settings, [registry.find(settings, KEY_OF_SOURCE)], self.root / "again")
        assert difference(tables_of(self.layout, [KEY_OF_SOURCE]) | stores_of(self.layout), made) == ""


RELATIONS = {("water", "requires", "pump"), ("tank", "contains", "water")}


@pytest.fixture
def project(tmp_path, llm, monkeypatch) -> Project:
    monkeypatch.setenv("DOCINDEX_LLM__API_KEY", KEY)
    monkeypatch.delenv("DOCINDEX_HOME", raising=False)
    llm.write = answer_to
    made = Project(tmp_path, llm)
    made.files.mkdir()
    made.write("pump.md", PUMP)
    made.write("tank.md", TANK)
    made.write("pump.py", CODE)
    return made


# Requests and the use of answers.


def test_the_graph_holds_what_the_model_says_with_its_evidence(project):
    assert project.asked_meanwhile() == [
        "Section: Pump\n\nPump\n\nFirst.\n\nA Pump needs\nWater, says the manual.",
        "Section: Tank\n\nTank\n\nThe Tank holds Water.",
    ]

    found = {
        (row["subject"], row["predicate"], row["object"]): (row["path"], row["line"], row["resolution"])
        for row in project.edges
    }
    assert found == {
        ("concept:water", "requires", "concept:pump"): ("pump.md", 6, "llm"),
        ("concept:tank", "contains", "concept:water"): ("tank.md", 1, "llm"),
        (f"{KEY_OF_SOURCE}!pump.md#Pump", "mentions", "concept:water"): ("pump.md", 6, "llm"),
        (f"{KEY_OF_SOURCE}!pump.md#Pump", "mentions", "concept:pump"): ("pump.md", 6, "llm"),
        (f"{KEY_OF_SOURCE}!tank.md#Tank", "mentions", "concept:tank"): ("tank.md", 1, "llm"),
        (f"{KEY_OF_SOURCE}!tank.md#Tank", "mentions", "concept:water"): ("tank.md", 1, "llm"),
    }
    assert {round(row["confidence"], 2) for row in project.edges} == {0.7}
    assert list(examine(project.layout)) == []
    assert project.is_current
    assert set(project.llm.keys) == {f"Bearer {KEY}"}


def test_of_many_triples_ten_a_chunk_are_kept(project):
    project.llm.write = lambda _: triples(*((f"Part {at}x", "uses", f"Thing {at}y") for at in range(30)))
    project.index()

    assert len(project.relations) == 10  # each document has the same relations
    assert all("at most 10 objects" in asked["messages"][0]["content"] for asked in project.llm.asked)

    project.graph += "\nmax_triples_per_chunk = 3"  # changes the prompt
    project.index()
    assert len(project.relations) == 3


# Cached answers.


def test_a_second_run_and_a_full_one_ask_nothing(project):
    assert len(project.asked_meanwhile()) == 2
    assert project.asked_meanwhile() == []
    assert project.asked_meanwhile(full=True) == []
    assert project.relations == RELATIONS


def test_an_edit_asks_about_its_chunk_alone(project):
    project.index()
    project.write("pump.py", CODE.replace("push", "pull"))
    assert project.asked_meanwhile() == []

    project.write("tank.md", TANK.replace("Water", "plenty of Water"))
    assert project.asked_meanwhile() == ["Section: Tank\n\nTank\n\nThe Tank holds plenty of Water."]
    assert project.relations == RELATIONS
    project.assert_as_from_nothing()


def test_another_model_is_asked_anew(project, monkeypatch):
    project.index()
    monkeypatch.setenv("DOCINDEX_LLM__MODEL", "small-2")

    assert not project.is_current
    assert len(project.asked_meanwhile()) == 2


# Failures.


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"status": 401}, "rejected the key"),
        ({"status": 500}, "answered 500"),
        ({"reply": b"nonsense"}, "invalid completion"),
        ({"write": lambda _: "I would rather not."}, "unusable answer"),
        ({"write": lambda _: '[{"subject": "Pump"}, 1]'}, "unusable answer"),
        ({"delay_s": 30.0}, "did not answer within"),
        ({"broken": b""}, "127.0.0.1"),
        ({"url": unused_url()}, "cannot be reached"),
    ],
    ids=["wrong key", "broken", "garbage", "prose", "other JSON", "hanging", "broken off", "down"],
)
def test_a_failing_model_costs_the_concepts_and_is_asked_again_in_the_next_run(project, how, why):
    patient = "concurrency = 2\ntimeout_s = 10\nretries = 0"
    project.llm_options = patient.replace("10", "0.3") if "delay_s" in how else patient
    healthy = {name: getattr(project.llm, name) for name in how}
    for name, value in how.items():
        setattr(project.llm, name, value)
    started = time.monotonic()
    problem = project.index().graph_problem

    assert time.monotonic() - started < 20
    assert problem.startswith("the concepts are incomplete: llm/1/openai/small-1/10: ")
    assert why in problem
    assert KEY not in problem
    assert project.edges == []
    assert f"{KEY_OF_SOURCE}!pump.py::push" in open_reader(project.layout).graph.numbers
    assert not project.is_current

    for name, value in healthy.items():
        setattr(project.llm, name, value)
    project.llm_options = patient
    assert len(project.asked_meanwhile()) == 2
    assert project.relations == RELATIONS
    assert project.is_current
    project.assert_as_from_nothing()


def test_one_answer_that_cannot_be_used_costs_one_chunk(project):
    project.llm.write = lambda text: "no" if "Tank" in text else answer_to(text)
    assert "unusable answer" in project.index().graph_problem
    assert project.relations == {("water", "requires", "pump")}

    project.llm.write = answer_to
    assert len(project.asked_meanwhile()) == 1
    assert project.relations == RELATIONS


def test_after_a_few_failures_in_a_row_nothing_more_is_asked(project):
    for at in range(40):
        project.write(f"f{at:02}.md", f"# F{at}\n\nThe part number {at} uses it.\n")
    project.llm.status = 500
    project.index()
    assert len(project.llm.asked) <= 6

    project.llm.status = 200
    assert len(project.asked_meanwhile()) == 42


def test_those_that_always_fail_do_not_keep_the_others_from_being_asked(project):
    for at in range(6):
        project.write(f"a{at}.md", f"# A{at}\n\nThis is poison number {at}.\n")
    for at in range(20):
        project.write(f"b{at}.md", f"# B{at}\n\nA part that is called Part{at}\n")
    project.llm.write = lambda text: "no" if "poison" in text else answer_to(text)
    wanted = RELATIONS | {(f"part{at}", "uses", "water") for at in range(20)}
    for _ in range(20):
        project.index()
        if project.relations == wanted:
            break

    assert project.relations == wanted


# The command.


@pytest.mark.parametrize("healthy", [True, False])
def test_the_command_ends_well_and_warns(project, healthy, monkeypatch, capfd):
    monkeypatch.chdir(project.root)
    monkeypatch.setattr("sys.argv", ["docindex", "index"])
    project.llm.status = 200 if healthy else 500
    assert project.settings
    with pytest.raises(SystemExit) as ended:
        main()

    assert not ended.value.code
    reported = " ".join("".join(capfd.readouterr()).split())
    assert ("the concepts are incomplete" in reported) is not healthy
    assert KEY not in reported
    assert project.relations == (RELATIONS if healthy else set())


def test_a_model_that_takes_its_time_keeps_no_other_source_waiting(project):
    asked, may_answer = Event(), Event()

    def slowly(text: str) -> str:
        asked.set()
        may_answer.wait(60)
        return answer_to(text)

    project.llm.write = slowly
    project.llm_options = "timeout_s = 60"
    settings = project.settings
    (project.root / "tools").mkdir()
    (project.root / "tools" / "valve.py").write_text("def shut():\n    return True\n")
    other = Source("library/tools", "library", "tools", project.root / "tools")

    with ThreadPoolExecutor(1) as beside:
        slow = beside.submit(index, settings, registry.find(settings, KEY_OF_SOURCE), StaticEmbedder())
        assert asked.wait(60)
        index(settings, other, StaticEmbedder())
        published = [*open_reader(project.layout).generation.sources]
        is_waiting = not slow.done()
        may_answer.set()
        assert slow.result(60).graph_problem == ""

    # The slow source may be searchable by then, without its graph.
    assert "library/tools" in published
    assert is_waiting
    assert [*open_reader(project.layout).generation.sources] == [KEY_OF_SOURCE, "library/tools"]
    assert project.relations == RELATIONS
