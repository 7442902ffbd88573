"""The graph is extracted while the chunks are embedded, where there is a second core, and is the same."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from threading import Event as Flag
from threading import current_thread, main_thread

import pyarrow as pa
import pytest

from docindex_dagster.core import child
from docindex_dagster.core.access import writing
from docindex_dagster.core.errors import VerificationError
from docindex_dagster.core.events import Event, Notice, Progress, emit, listening
from docindex_dagster.core.settings import load_settings
from docindex_dagster.embedding.protocol import Vectors
from docindex_dagster.graph import extraction
from docindex_dagster.pipeline import graph, publication
from docindex_dagster.pipeline.ahead import Ahead
from docindex_dagster.pipeline.source_run import SourceRun
from docindex_dagster.runner.run import Ran, run_stages
from docindex_dagster.sources import registry
from docindex_dagster.stores import lance_table
from tests.defs.conftest import KEY, Project, new_project
from tests.incremental.contents import leftovers
from tests.models import TinyEmbedder

_PATIENCE_S = 30


@pytest.fixture
def project(tmp_path) -> Iterator[Project]:
    with new_project(tmp_path) as made:
        yield made


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)


@pytest.mark.usefixtures("two_cores")
def test_work_is_done_while_its_caller_does_something_else():
    ahead, goes_on = Ahead(), Flag()
    ahead.begin("graph", "v1", lambda: goes_on.wait(_PATIENCE_S) and current_thread())

    goes_on.set()

    assert ahead.result("graph", "v1", current_thread) is not main_thread()


@pytest.mark.usefixtures("two_cores")
def test_work_that_was_begun_from_something_else_is_done_again():
    ahead = Ahead()
    ahead.begin("graph", "v1", lambda: "of v1")

    assert ahead.result("graph", "v2", lambda: "of v2") == "of v2"


def test_with_one_core_work_is_done_when_it_is_asked_for(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    ahead = Ahead()
    ahead.begin("graph", "v1", lambda: pytest.fail("it was begun"))

    assert ahead.result("graph", "v1", current_thread) is main_thread()


@pytest.mark.usefixtures("two_cores")
def test_an_error_reaches_who_asks_for_the_result():
    ahead = Ahead()
    ahead.begin("graph", "v1", lambda: {}["missing"])

    with pytest.raises(KeyError, match="missing"):
        ahead.result("graph", "v1", dict)


@pytest.mark.usefixtures("two_cores")
def test_progress_is_announced_when_the_result_is_awaited():
    events: list[Event] = []
    early, late = Progress("a", "graph", 0, 2, "files"), Progress("a", "graph", 1, 2, "files")
    ahead, is_early, goes_on = Ahead(), Flag(), Flag()

    def work() -> None:
        emit(early)
        is_early.set()
        goes_on.wait(_PATIENCE_S)
        emit(late)

    def note(event: Event) -> None:
        events.append(event)
        goes_on.set()

    with listening(note):
        ahead.begin("graph", "v1", work)
        assert is_early.wait(_PATIENCE_S)
        assert events == []
        ahead.result("graph", "v1", work)

    assert events == [early, late]


@pytest.mark.usefixtures("two_cores")
def test_progress_is_announced_to_those_who_listen_where_the_result_is_awaited():
    where_begun: list[Event] = []
    where_awaited: list[Event] = []
    late, goes_on = Progress("a", "graph", 1, 2, "files"), Flag()
    ahead = Ahead()

    def work() -> None:
        goes_on.wait(_PATIENCE_S)
        emit(late)

    with listening(where_begun.append):
        ahead.begin("graph", "v1", work)
    goes_on.set()
    with listening(where_awaited.append):
        ahead.result("graph", "v1", work)

    assert (where_begun, where_awaited) == ([], [late])


@pytest.mark.usefixtures("two_cores")
def test_a_run_that_fails_waits_for_what_it_began():
    ahead, goes_on, done = Ahead(), Flag(), Flag()

    def work() -> None:
        goes_on.wait(_PATIENCE_S)
        done.set()

    def fail() -> None:
        with ahead:
            ahead.begin("graph", "v1", work)
            goes_on.set()
            raise OSError("no model")

    with pytest.raises(OSError, match="no model"):
        fail()
    assert done.is_set()


class Waiting(TinyEmbedder):
    """Embeds nothing before a graph is extracted, or the test has waited for one long enough."""

    def __init__(self, is_extracted: Flag) -> None:
        super().__init__()
        self.is_extracted, self.was_extracted = is_extracted, False

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.was_extracted = self.is_extracted.wait(_PATIENCE_S)
        return super().embed_documents(texts)


def run(project: Project, embedder: TinyEmbedder) -> Ran:
    settings = load_settings(project.root)
    with writing(settings):
        return run_stages(SourceRun(settings, registry.find(settings, KEY), lambda: embedder))


@pytest.mark.usefixtures("two_cores")
def test_a_run_extracts_the_graph_while_it_embeds(project: Project, monkeypatch: pytest.MonkeyPatch):
    is_extracted, extract = Flag(), extraction.extract

    def noted(*arguments, **named):
        try:
            return extract(*arguments, **named)
        finally:
            is_extracted.set()

    monkeypatch.setattr(extraction, "extract", noted)
    embedder = Waiting(is_extracted)

    ran = run(project, embedder)

    assert embedder.was_extracted
    assert ran.outcomes["knowledge_graph"].value.graph.triples.num_rows


def edges(ran: Ran) -> pa.Table:
    return ran.outcomes["knowledge_graph"].value.graph.triples


@pytest.mark.usefixtures("two_cores")
@pytest.mark.parametrize("is_lost", [False, True])
def test_a_large_graph_is_the_same_from_another_process_be_it_lost_or_not(tmp_path, monkeypatch, is_lost):
    """Where the process is lost, this one does its work, and says so."""
    for name in ("small", "large"):
        (tmp_path / name).mkdir()
    with new_project(tmp_path / "small") as small:
        here = edges(run(small, TinyEmbedder()))
    asked: list[object] = []
    result_of = child.result_of

    def noted(work):
        asked.append(work)
        if is_lost:
            raise ChildProcessError("a process ended")
        return result_of(work)

    monkeypatch.setattr(child, "result_of", noted)
    monkeypatch.setattr(graph, "CHUNKS_WORTH_A_PROCESS", 1)
    notices: list[Event] = []
    with new_project(tmp_path / "large") as large, listening(notices.append):
        there = edges(run(large, TinyEmbedder()))

    assert len(asked) == 1
    assert there.equals(here)
    repeated = [event.text for event in notices if isinstance(event, Notice)]
    assert repeated == (["the graph is extracted once more: a process ended"] if is_lost else [])


@pytest.mark.usefixtures("two_cores")
def test_what_waits_for_a_stage_that_makes_nothing_ends_with_the_run():
    ahead = Ahead()
    with ahead:
        ahead.begin("stores", "v1", ahead.promise("graph").result)

    with pytest.raises(CancelledError):
        ahead.result("stores", "v1", dict)


@pytest.fixture
def staged(monkeypatch: pytest.MonkeyPatch) -> Flag:
    """Set when LanceDB has the rows; a graph of any size is worth a process, of which this one does the work."""
    is_staged, reconcile = Flag(), lance_table.reconcile

    def noted(*arguments):
        done = reconcile(*arguments)
        is_staged.set()
        return done

    monkeypatch.setattr(lance_table, "reconcile", noted)
    monkeypatch.setattr(graph, "CHUNKS_WORTH_A_PROCESS", 1)
    return is_staged


@pytest.mark.usefixtures("two_cores")
def test_the_first_stores_are_written_while_the_graph_is_extracted(project: Project, staged: Flag, monkeypatch):
    was_staged: list[bool] = []

    def patient(work):
        was_staged.append(staged.wait(_PATIENCE_S))
        return work()

    monkeypatch.setattr(child, "result_of", patient)

    ran = run(project, TinyEmbedder())

    assert was_staged == [True]
    assert ran.publication.source.edges == edges(ran).num_rows > 0


@pytest.fixture
def begun(staged: Flag, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the stages that a run begins ahead."""
    names: list[str] = []
    begin = Ahead.begin

    def noted(ahead: Ahead, name: str, *work) -> None:
        names.append(name)
        begin(ahead, name, *work)

    monkeypatch.setattr(Ahead, "begin", noted)
    monkeypatch.setattr(child, "result_of", lambda work: work())
    return names


@pytest.mark.usefixtures("two_cores")
def test_where_searches_have_an_index_stores_wait_for_the_graph(project: Project, begun: list[str]):
    """Else publications of other sources would wait as long as for this graph."""
    run(project, TinyEmbedder())
    assert begun == ["knowledge_graph", "stores"]
    begun.clear()
    for table in ("graph_nodes", "graph_triples"):
        project.layout.table(table, KEY).unlink()
    (project.notes / "another.py").write_text("def another():\n    return 1\n")

    run(project, TinyEmbedder())

    assert begun == ["knowledge_graph"]


@pytest.mark.usefixtures("two_cores")
def test_large_stores_wait_for_the_graph(project: Project, begun: list[str], monkeypatch):
    """Else there would have to be memory for both."""
    monkeypatch.setattr(publication, "_MOST_BESIDE", 1)

    run(project, TinyEmbedder())

    assert begun == ["knowledge_graph"]


@pytest.fixture
def broken(staged: Flag, monkeypatch: pytest.MonkeyPatch) -> None:
    """The graph breaks a rule, which is found when the stores wait for it."""

    def extracted(_work):
        assert staged.wait(_PATIENCE_S)
        raise VerificationError("graph", {"edges_are_proved": "an edge has no chunk"})

    monkeypatch.setattr(child, "result_of", extracted)


@pytest.mark.usefixtures("two_cores", "broken")
def test_of_a_graph_that_breaks_a_rule_nothing_is_published(project: Project):
    with pytest.raises(VerificationError, match="an edge has no chunk"):
        run(project, TinyEmbedder())

    assert not project.layout.current.exists()
    assert leftovers(project.layout) == []


@pytest.mark.usefixtures("two_cores", "broken")
def test_a_recorded_run_whose_graph_breaks_a_rule_ends(project: Project):
    project.index()

    assert not project.layout.current.exists()
    assert leftovers(project.layout) == []
