"""Text and vectors are published before the graph if the graph takes longer than half a second."""

from collections.abc import Iterator
from dataclasses import replace
from threading import Event as Flag

import pytest

from docindex_dagster.chunking import build, pool
from docindex_dagster.core import child_process
from docindex_dagster.core.access import writable_home
from docindex_dagster.core.errors import VerificationError
from docindex_dagster.core.events import Event, Notice, Searchable, listening
from docindex_dagster.core.settings import load_settings
from docindex_dagster.graph.queries import callers
from docindex_dagster.pipeline import graph, stages
from docindex_dagster.pipeline.source_run import SourceRun
from docindex_dagster.pipeline.stage import Inputs, Outcome, Stage
from docindex_dagster.runner import run as running
from docindex_dagster.runner.entries import StageEntry
from docindex_dagster.runner.run import StageOutcomes, run_stages
from docindex_dagster.sources import registry
from docindex_dagster.stores.generation import PublishedSource, read_generation
from docindex_dagster.stores.reader import open_reader
from tests.defs.conftest import KEY, Project, new_project
from tests.incremental.contents import leftovers
from tests.models import TinyEmbedder

_PATIENCE_S = 30
CALLER = "\n\ndef mean(values):\n    return total(values) / len(values)\n"


@pytest.fixture
def project(tmp_path) -> Iterator[Project]:
    with new_project(tmp_path) as made:
        yield made


def run(project: Project, reported: list[StageEntry] | None = None) -> StageOutcomes:
    settings = load_settings(project.root)
    report = (lambda _: None) if reported is None else reported.append
    with writable_home(settings):
        source = SourceRun(settings, registry.find(settings, KEY), TinyEmbedder)
        return run_stages(source, report, is_complete=True)


def published(project: Project) -> PublishedSource:
    generation = read_generation(project.layout)
    assert generation is not None
    return generation.sources[KEY]


def callers_of(project: Project, name: str) -> list[str]:
    return [step.subject.partition("::")[2] for step in callers(open_reader(project.layout).graph, name)]


@pytest.fixture
def goes_on(monkeypatch) -> Flag:
    """Block graph extraction until this flag is set."""
    flag = Flag()

    def slow(run: SourceRun, inputs: Inputs) -> Outcome:
        assert flag.wait(_PATIENCE_S)
        return graph.KNOWLEDGE_GRAPH.run(run, inputs)

    use(monkeypatch, replace(graph.KNOWLEDGE_GRAPH, run=slow))
    monkeypatch.setattr(running, "_LATE_INPUT_WAIT_S", 0)
    return flag


def use(monkeypatch, changed: Stage) -> None:
    ours = tuple(changed if stage.name == changed.name else stage for stage in stages.OURS)
    for module in (stages, running):
        monkeypatch.setattr(module, "stages", lambda: ours)


def test_a_source_is_searchable_before_its_graph_is_there(project, goes_on):
    found: list[list[str]] = []

    def listen(event: Event) -> None:
        if isinstance(event, Searchable):
            found.append(project.search("green button"))
            assert (published(project).unlinked, published(project).edges) == (2, 0)
            goes_on.set()

    with listening(listen):
        ran = run(project)

    assert found == [["guide.md"]]
    assert published(project) == ran.publication.source
    assert (published(project).unlinked, published(project).lacks_of_graph) == (None, False)
    assert published(project).edges > 0
    assert leftovers(project.layout) == []


def test_files_that_stay_the_same_keep_their_edges_meanwhile(project, goes_on):
    goes_on.set()
    (project.notes / "sums.py").write_text((project.notes / "sums.py").read_text() + CALLER)
    run(project)
    goes_on.clear()
    (project.notes / "other.py").write_text("def other():\n    return 1\n")
    during: list[list[str]] = []

    def listen(event: Event) -> None:
        if isinstance(event, Searchable):
            assert published(project).unlinked == 1
            during.append(callers_of(project, "total"))
            goes_on.set()

    with listening(listen):
        run(project)

    assert during == [callers_of(project, "total")] == [["mean"]]


def test_what_a_run_published_twice_is_reported_once(project, goes_on):
    reported: list[StageEntry] = []
    with listening(lambda event: goes_on.set() if isinstance(event, Searchable) else None):
        run(project, reported)

    assert sorted(entry.stage for entry in reported) == sorted(stage.name for stage in stages.OURS)
    (stores,) = (entry for entry in reported if entry.stage == "stores")
    assert stores.products["lancedb_table"].numbers["added"] == 2
    assert stores.checks["golden_query_finds_itself"].passed


def test_a_small_edit_is_published_once(project, monkeypatch):
    monkeypatch.setattr(running, "_LATE_INPUT_WAIT_S", _PATIENCE_S)
    run(project)
    first = read_generation(project.layout)
    (project.notes / "other.py").write_text("def other():\n    return 1\n")
    seen: list[Event] = []

    with listening(seen.append):
        run(project)

    assert not [event for event in seen if isinstance(event, Searchable)]
    second = read_generation(project.layout)
    assert second.number == first.number + 1


def test_a_large_change_does_not_wait_for_its_graph(project, monkeypatch):
    monkeypatch.setattr(running, "_LATE_INPUT_WAIT_S", _PATIENCE_S)
    monkeypatch.setattr(running, "_MANY_CHUNKS", 0)
    seen: list[Event] = []

    with listening(seen.append):
        run(project)

    assert [type(event) for event in seen].count(Searchable) == 1
    assert published(project).unlinked is None


@pytest.mark.parametrize("is_large", [False, True])
def test_references_come_from_the_same_parse_unless_much_is_cut(project, monkeypatch, is_large):
    monkeypatch.setattr(build, "_MAX_COMBINED_BYTES", 0 if is_large else 1 << 20)

    ran = run(project)

    numbers = ran.outcomes["references"].reports["references"].numbers
    assert (numbers["files"], numbers["parsed_again"]) == (1, int(is_large))


def test_no_more_than_one_parsing_worker_outlives_a_run(project, monkeypatch):
    monkeypatch.setattr(pool, "_BYTES_WORTH_A_WORKER", 0)
    monkeypatch.setattr(pool, "processors", lambda: 2)

    run(project)

    assert set(pool._idle_pools) <= {1}


def test_a_graph_that_breaks_a_rule_fails_the_run_and_what_was_published_is_searchable(project, monkeypatch):
    is_searchable = Flag()

    def broken(_run: SourceRun, _inputs: Inputs) -> Outcome:
        assert is_searchable.wait(_PATIENCE_S)
        raise VerificationError("graph", {"edges_are_proved": "an edge has no chunk"})

    use(monkeypatch, replace(graph.KNOWLEDGE_GRAPH, run=broken))
    monkeypatch.setattr(running, "_LATE_INPUT_WAIT_S", 0)
    reported: list[StageEntry] = []

    with (
        listening(lambda event: is_searchable.set() if isinstance(event, Searchable) else None),
        pytest.raises(VerificationError),
    ):
        run(project, reported)

    assert reported[-1].broken == {"edges_are_proved": "an edge has no chunk"}
    assert project.search("green button") == ["guide.md"]
    assert published(project).unlinked == 2


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_large_graph_is_the_same_from_another_process_be_it_lost_or_not(tmp_path, monkeypatch, is_lost):
    """If the child process is lost, this process does its work and reports that."""
    for name in ("small", "large"):
        (tmp_path / name).mkdir()
    with new_project(tmp_path / "small") as small:
        here = run(small).outcomes["knowledge_graph"].value.graph.triples
    asked: list[object] = []
    result_of = child_process.run_in_child_process

    def noted(work):
        asked.append(work)
        if is_lost:
            raise ChildProcessError("a process ended")
        return result_of(work)

    monkeypatch.setattr(child_process, "run_in_child_process", noted)
    monkeypatch.setattr(graph, "CHUNKS_WORTH_A_PROCESS", 1)
    notices: list[Event] = []
    with new_project(tmp_path / "large") as large, listening(notices.append):
        there = run(large).outcomes["knowledge_graph"].value.graph.triples

    assert len(asked) == 1
    assert there.equals(here)
    repeated = [event.text for event in notices if isinstance(event, Notice)]
    assert repeated == (["extracting the graph again: a process ended"] if is_lost else [])
