"""Questions to a graph of a small shop: code of two modules, with tests."""

import pytest

from docindex_dagster.core.errors import QueryError
from docindex_dagster.graph import ask
from docindex_dagster.graph.analysis import module_cycles, statistics
from docindex_dagster.graph.build import build_graph
from docindex_dagster.graph.export import Format, export, near
from docindex_dagster.graph.opened import OpenGraph, open_graphs
from tests.graph.calls import chunks_of
from tests.graph.samples import opened

FILES = {
    "shop/__init__.py": "from .store import Store\n",
    "shop/store.py": (
        "from . import money\n\n\n"
        "class Store:\n"
        "    def __init__(self, name):\n        self.name = name\n        self.items = []\n\n"
        "    def add(self, item, price):\n        self.items.append(item)\n        return money.rounded(price)\n\n\n"
        "class Outlet(Store):\n    def sale(self, item):\n        return self.add(item, 1)\n"
    ),
    "shop/money.py": "import decimal\n\n\ndef rounded(price):\n    return decimal.Decimal(price)\n",
    "tests/test_store.py": (
        "from shop import Store\n\n\ndef test_add():\n    Store('a').add('pear', 2)\n    unheard_of.add(3)\n"
    ),
    "a.py": "import b\n\n\ndef one():\n    return b.two()\n",
    "b.py": "import a\n\n\ndef two():\n    return a.one()\n",
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory) -> OpenGraph:
    folder = tmp_path_factory.mktemp("shop")
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return open_graphs({"library/program": build_graph(chunks_of(folder))})


def ends(steps: list[ask.Step]) -> set[tuple[str, str]]:
    return {(step.subject.partition("!")[2], step.object.partition("!")[2] or step.object) for step in steps}


def test_callers_are_found_through_imports_inheritance_and_tests(graph):
    assert ends(ask.callers(graph, "Store.add")) == {
        ("shop/store.py::Outlet.sale", "shop/store.py::Store.add"),
        ("tests/test_store.py::test_add", "shop/store.py::Store.add"),
    }


def test_who_makes_an_object_calls_its_class_and_its_constructor(graph):
    made = {("tests/test_store.py::test_add", "shop/store.py::Store")}
    assert ends(ask.callers(graph, "shop/store.py::Store")) == made
    assert ends(ask.callers(graph, "Store.__init__")) == made


def test_callers_of_callers_come_with_the_depth(graph):
    steps = ask.callers(graph, "rounded", depth=2)
    assert [step.depth for step in steps] == [1, 2, 2]
    assert ("tests/test_store.py::test_add", "shop/store.py::Store.add") in ends(steps)


def test_callees_tell_what_is_external_and_what_is_not_resolved_and_why(graph):
    steps = {step.object: step for step in ask.callees(graph, "test_add")}
    assert steps["library/program!unresolved:add"].confidence == 0
    assert steps["library/program!unresolved:add"].resolution.startswith("unresolved: ")
    assert {step.object for step in ask.callees(graph, "rounded")} == {"external:decimal.Decimal"}


def test_impact_goes_through_subclasses_and_tests(graph):
    names = {subject for subject, _ in ends(ask.impact(graph, "Store"))}
    assert {"shop/store.py::Outlet", "shop/store.py::Outlet.sale", "tests/test_store.py::test_add"} <= names


def test_a_path_leads_along_the_edges(graph):
    steps = ask.path(graph, "test_add", "rounded")
    assert [step.predicate for step in steps] == ["calls", "calls"]
    assert ask.path(graph, "one", "rounded") == []


def test_neighbors_can_be_narrowed_to_some_edges(graph):
    assert ends(ask.neighbors(graph, "shop/store.py", ["imports"])) == {
        ("shop/store.py", "shop/money.py"),
        ("shop/__init__.py", "shop/store.py"),
        ("tests/test_store.py", "shop/store.py"),
    }


def test_each_edge_says_where_and_how(graph):
    (step,) = ask.callers(graph, "shop/money.py::rounded")
    assert (step.place, step.resolution, step.confidence) == ("shop/store.py:11", "imported name", 1.0)
    assert step.chunk_id


@pytest.mark.parametrize("name", ["nothing", "shop/nowhere.py::Store", ""])
def test_what_is_not_there_is_said(graph, name):
    with pytest.raises(QueryError, match="needs a symbol" if not name else "the graph has no"):
        ask.answer(graph, "callers", name)


def test_a_name_of_several_things_lists_them(graph, tmp_path):
    (tmp_path / "x.py").write_text("def go():\n    pass\n")
    (tmp_path / "y.py").write_text("def go():\n    pass\n")
    both = open_graphs({"library/program": build_graph(chunks_of(tmp_path))})
    with pytest.raises(QueryError, match=r"names 2 things: .*x\.py::go.*y\.py::go"):
        ask.callers(both, "go")


def test_files_that_import_each_other_are_a_cycle(graph):
    assert module_cycles(graph) == [["library/program!a.py", "library/program!b.py"]]


def test_statistics_tell_how_many_calls_are_resolved(graph):
    found = statistics(graph)
    assert found.calls["unresolved"] == 1
    assert found.resolved == 1 - 1 / sum(found.calls.values())
    assert found.components == 2
    assert ("library/program!shop/store.py::Store.add", 2) in found.hubs


@pytest.mark.parametrize("form", Format)
def test_a_part_of_the_graph_is_exported(graph, form):
    part = near(graph, ask.one(graph, "rounded"), 1)
    text = "".join(export(part, form))
    assert "shop/money.py::rounded" in text
    assert "test_store" not in text


@pytest.mark.parametrize("name", ["shop.store.Store.add", "store.Store.add", "shop.Store.add", "Store.add"])
def test_a_symbol_is_found_by_the_name_of_its_module_or_package(graph, name):
    assert graph.ids[ask.one(graph, name)[0]] == "library/program!shop/store.py::Store.add"


def test_a_module_that_does_not_hold_the_symbol_is_no_name_of_it(graph):
    with pytest.raises(QueryError, match="did you mean add"):
        ask.one(graph, "money.Store.add")


def test_a_name_of_a_function_and_of_a_method_is_not_taken_for_one_of_them():
    files = {"main.go": "package main\n\nfunc Run() {}\n\ntype E struct{}\n\nfunc (e *E) Run() {}\n"}
    graph = opened(files)

    with pytest.raises(
        QueryError, match=r"'Run' names 2 things: .*main\.go::E\.Run, .*main\.go::Run; give one of them"
    ):
        ask.callers(graph, "Run")
    assert ask.callers(graph, "main.go::Run") == []


def test_an_answer_without_edges_says_of_what_and_what_may_be_missing(graph):
    sale = "library/program!shop/store.py::Outlet.sale"
    assert ask.nothing_known(graph, "callers", "sale") == f"no call of {sale} is known"
    assert ask.nothing_known(graph, "callees", "Store.__init__").startswith("no call in ")
    assert ask.nothing_known(graph, "callers", "Store.add").endswith("; 1 call of that name could not be resolved")
    assert ask.nothing_known(graph, "path", "two", "rounded").startswith("no way is known from ")
