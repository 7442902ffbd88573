"""A context includes graph neighbors of the best hits in addition to search results."""

from dataclasses import replace

import pytest

from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings
from docindex_dagster.search.context import Context
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.model import Granularity, Mode
from docindex_dagster.search.service import Request, context_of, hits_of
from docindex_dagster.stores.reader import Reader, open_reader
from tests.search.farm import ALIKE, CALLEE, CALLER, QUERY, indexed

ASKED = Request(QUERY)
BUDGET = 1500


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Settings:
    return indexed(tmp_path_factory.mktemp("with_graph"))


@pytest.fixture(scope="module")
def without_graph(tmp_path_factory) -> Settings:
    return indexed(tmp_path_factory.mktemp("without_graph"), "[graph]\nenabled = false\n")


def reader_of(project: Settings) -> Reader:
    return open_reader(Layout(project.home))


def read(project: Settings, request: Request = ASKED) -> Context:
    return context_of(project, reader_of(project), request, BUDGET)


def paths(context: Context) -> list[str]:
    return [passage.path for passage in context.passages]


def test_a_context_holds_what_its_best_passage_calls_though_no_search_finds_it(project):
    assert CALLEE not in [hit.path for hit in hits_of(project, reader_of(project), Request(QUERY, top_k=75))]

    found = paths(read(project))

    assert found[0] == CALLER
    assert CALLEE in found
    assert ALIKE not in found


@pytest.mark.parametrize("mode", [Mode.HYBRID, Mode.VECTOR, Mode.BM25, Mode.GRAPH])
def test_it_does_so_in_each_mode_that_ranks_by_meaning_or_words(project, mode):
    assert {CALLER, CALLEE} <= {*paths(read(project, Request(QUERY, mode)))}


def test_what_the_graph_leads_to_meets_the_filters(project):
    assert CALLEE not in paths(read(project, Request(QUERY, filters=Filters(path_glob="farm/**"))))


def test_what_the_graph_leads_to_says_whether_its_file_changed(project):
    (passage,) = [passage for passage in read(project).passages if passage.path == CALLEE]

    assert passage.stale is False


def test_a_search_finds_what_it_found_before(project):
    before = hits_of(project, reader_of(project), Request(QUERY))
    read(project)

    assert hits_of(project, reader_of(project), Request(QUERY)) == before
    assert CALLEE not in [hit.path for hit in before]


def test_the_same_question_has_the_same_context(project):
    assert read(project) == read(project)


def test_where_a_text_or_files_are_asked_for_nothing_is_added(project):
    assert paths(read(project, Request("irrigate(field)", Mode.LITERAL))) == [CALLER]
    assert CALLEE not in paths(read(project, Request(QUERY, granularity=Granularity.FILE)))


def test_without_a_graph_a_context_is_what_a_search_finds(without_graph):
    found = paths(read(without_graph))

    assert found[0] == CALLER
    assert CALLEE not in found


def test_a_graph_that_is_damaged_costs_a_warning_and_not_the_context(project):
    damaged = replace(reader_of(project), graphs={})
    warnings: list[str] = []

    found = context_of(project, damaged, Request(QUERY), BUDGET, warnings.append)

    assert paths(found)[0] == CALLER
    assert any("Linked code is left out" in warning for warning in warnings)


def test_where_nothing_is_found_the_context_is_empty(project):
    assert read(project, Request("zzzyx", Mode.BM25)).passages == ()


def test_tests_stand_back_less_where_contexts_are_made_since_they_show_how_something_is_used(tmp_path):
    folder = tmp_path / "files" / "tests"
    folder.mkdir(parents=True)
    (folder / "test_wheat.py").write_text("def test_water():\n    water('the dry field of wheat')\n")
    project = indexed(tmp_path, "[graph]\nenabled = false\n")
    path = "tests/test_wheat.py"

    (hit,) = [hit for hit in hits_of(project, reader_of(project), Request(QUERY, top_k=75)) if hit.path == path]
    (passage,) = [one for one in read(project).passages if one.path == path]

    assert passage.score > hit.score
