"""Queries on the graph of a small shop: two modules of code, with tests."""

import pyarrow as pa
import pytest

from docindex_dagster.core.errors import QueryError
from docindex_dagster.graph import build, queries
from docindex_dagster.graph.analysis import module_cycles, statistics
from docindex_dagster.graph.export import Format, export, near
from docindex_dagster.graph.lookup import find_nodes, one
from docindex_dagster.graph.open_graph import OpenGraph, open_graphs
from tests.graph.built import build_graph, references_of
from tests.graph.calls import chunks_of
from tests.graph.samples import chunks_of as sample_chunks
from tests.graph.samples import graph_of, opened

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


def ends(steps: list[queries.Step]) -> set[tuple[str, str]]:
    return {(step.subject.partition("!")[2], step.object.partition("!")[2] or step.object) for step in steps}


def test_callers_are_found_through_imports_inheritance_and_tests(graph):
    assert ends(queries.callers(graph, "Store.add")) == {
        ("shop/store.py::Outlet.sale", "shop/store.py::Store.add"),
        ("tests/test_store.py::test_add", "shop/store.py::Store.add"),
    }


def test_who_makes_an_object_calls_its_class_and_its_constructor(graph):
    made = {("tests/test_store.py::test_add", "shop/store.py::Store")}
    assert ends(queries.callers(graph, "shop/store.py::Store")) == made
    assert ends(queries.callers(graph, "Store.__init__")) == made


def test_callers_of_callers_come_with_the_depth(graph):
    steps = queries.callers(graph, "rounded", depth=2)
    assert [step.depth for step in steps] == [1, 2, 2]
    assert ("tests/test_store.py::test_add", "shop/store.py::Store.add") in ends(steps)


def test_callees_tell_what_is_external_and_what_is_not_resolved_and_why(graph):
    steps = {step.object: step for step in queries.callees(graph, "test_add")}
    assert steps["library/program!unresolved:add"].confidence == 0
    assert steps["library/program!unresolved:add"].resolution.startswith("unresolved: ")
    assert {step.object for step in queries.callees(graph, "rounded")} == {"external:decimal.Decimal"}


def test_a_whole_name_means_each_of_its_overloads(tmp_path):
    (tmp_path / "pump.py").write_text(
        "if fast:\n    def flow():\n        pass\nelse:\n    def flow():\n        return near()\n\n\n"
        "def near():\n    pass\n"
    )
    graph = open_graphs({"library/program": build_graph(chunks_of(tmp_path))})

    assert len(one(graph, "library/program!pump.py::flow")) == len(one(graph, "flow")) == 2
    assert len(one(graph, "library/program!pump.py::flow~2")) == 1


def test_impact_goes_through_subclasses_and_tests(graph):
    names = {subject for subject, _ in ends(queries.impact(graph, "Store"))}
    assert {"shop/store.py::Outlet", "shop/store.py::Outlet.sale", "tests/test_store.py::test_add"} <= names


def test_a_path_leads_along_the_edges(graph):
    steps = queries.path(graph, "test_add", "rounded")
    assert [step.predicate for step in steps] == ["calls", "calls"]
    assert queries.path(graph, "one", "rounded") == []


def test_neighbors_are_at_both_ends_of_edges(graph):
    steps = queries.neighbors(graph, "shop/store.py")
    assert ends([step for step in steps if step.predicate == "imports"]) == {
        ("shop/store.py", "shop/money.py"),
        ("shop/__init__.py", "shop/store.py"),
        ("tests/test_store.py", "shop/store.py"),
    }


def test_each_edge_says_where_and_how(graph):
    (step,) = queries.callers(graph, "shop/money.py::rounded")
    assert (step.place, step.resolution, step.confidence) == ("shop/store.py:11", "imported name", 1.0)
    assert step.chunk_id


@pytest.mark.parametrize("name", ["nothing", "shop/nowhere.py::Store", ""])
def test_what_is_not_there_is_reported(graph, name):
    with pytest.raises(QueryError, match="needs a symbol" if not name else "not found in the graph"):
        queries.answer_query(graph, "callers", name)


def test_a_name_of_several_symbols_is_answered_for_each():
    files = {"x.py": "def go():\n    pass\n\n\ngo()\n", "y.py": "def go():\n    pass\n\n\ngo()\n"}
    graph = opened({**files, "z.py": "def go():\n    pass\n"})

    steps = queries.callers(graph, "go")

    asked = [(step.symbol.rpartition("!")[2], step.path) for step in steps]
    assert asked == [("x.py::go", "x.py"), ("y.py::go", "y.py")]
    (sentence,) = queries.unanswered(graph, "callers", "go", "", steps)
    assert sentence == "no calls to library/sample!z.py::go found"


def test_a_name_of_many_symbols_lists_them():
    graph = opened({f"m{number}.py": "def go():\n    pass\n" for number in range(9)})
    with pytest.raises(QueryError, match=r"with 9 matches: .*m0\.py::go.*m7\.py::go and 1 more; use one of these"):
        queries.callers(graph, "go")


def test_a_way_between_names_of_several_symbols_is_not_guessed():
    graph = opened({"x.py": "def go():\n    pass\n", "y.py": "def go():\n    pass\n\n\ndef stop():\n    go()\n"})
    with pytest.raises(QueryError, match=r"with 2 matches: .*x\.py::go.*y\.py::go; use one"):
        queries.path(graph, "stop", "go")


def test_a_path_goes_by_calls_rather_than_by_what_contains_what():
    """Both are methods of one class, so two containment edges join them; the calls take three."""
    methods = ("a", "b", "c", "d")
    calls = zip(methods, (*methods[1:], None), strict=True)
    code = "class Chain:\n" + "".join(
        f"    def {name}(self):\n        {f'self.{called}()' if called else 'pass'}\n\n" for name, called in calls
    )
    graph = opened({"chain.py": code})
    assert [step.predicate for step in queries.path(graph, "Chain.a", "Chain.d")] == ["calls"] * 3
    assert [step.predicate for step in queries.path(graph, "Chain.a", "Chain.d", depth=2)] == ["contains"] * 2


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
    part = near(graph, one(graph, "rounded"), 1)
    text = "".join(export(part, form))
    assert "shop/money.py::rounded" in text
    assert "test_store" not in text


@pytest.mark.parametrize("name", ["shop.store.Store.add", "store.Store.add", "shop.Store.add", "Store.add"])
def test_a_symbol_is_found_by_the_name_of_its_module_or_package(graph, name):
    assert graph.ids[one(graph, name)[0]] == "library/program!shop/store.py::Store.add"


def test_a_module_that_does_not_hold_the_symbol_is_no_name_of_it(graph):
    with pytest.raises(QueryError, match="did you mean add"):
        one(graph, "money.Store.add")


GO = "package gin\n\ntype Context struct{}\n\nfunc (c *Context) JSON() {}\n"


@pytest.mark.parametrize(
    ("path", "code", "name", "symbol"),
    [
        ("context.go", GO, "Context.JSON", "Context.JSON"),
        ("context.go", GO, "gin.Context.JSON", "Context.JSON"),
        (
            "src/runtime/rt.rs",
            "pub struct Rt;\nimpl Rt { fn stop(&self) {} }\n",
            "gin::runtime::Rt::stop",
            "Rt.stop",
        ),
        ("src/Http/Kernel.php", "<?php\nclass Kernel { function run() {} }\n", r"Http\Kernel::run", "Kernel.run"),
        ("java/com/shop/Cart.java", "class Cart { void add() {} }\n", "com.shop.Cart#add", "Cart.add"),
        ("Src/Shop.Json/Text.cs", "class Text { void Read() {} }\n", "Shop.Json.Text.Read", "Text.Read"),
    ],
)
def test_a_name_as_its_language_writes_it_is_found(path, code, name, symbol):
    graph = open_graphs({"git/gin": graph_of({path: code}, "git/gin")})
    assert [graph.ids[number] for number in find_nodes(graph, name)] == [f"git/gin!{path}::{symbol}"]


def test_an_answer_without_edges_says_of_what_and_what_may_be_missing(graph):
    sale = "library/program!shop/store.py::Outlet.sale"
    assert queries.explain_no_edges(graph, "callers", "sale") == f"no calls to {sale} found"
    assert queries.explain_no_edges(graph, "callees", "Store.__init__").startswith("no calls in ")
    assert queries.explain_no_edges(graph, "callers", "Store.add").endswith(
        "; 1 call of that name could not be resolved"
    )
    assert queries.explain_no_edges(graph, "path", "two", "rounded").startswith("no path found from ")


UNREAD = {
    "a.py": "def go():\n    pass\n",
    "b.py": "def stop():\n    pass\n",
    "c.pl": "sub go { 1 }\ngo();\n",
    "d.sql": "SELECT 1;\n",
    "e.vue": "<template><p/></template>\n",
    "f.md": "# Title\n",
    "g.json": "{}\n",
}
NOT_SEARCHED = "2 of 7 files were not searched: 2 in languages whose calls are not read"


@pytest.mark.parametrize("question", ["callers", "callees", "impact"])
def test_an_answer_without_edges_counts_the_files_that_were_not_searched(question):
    graph = opened(UNREAD)
    (sentence,) = queries.unanswered(graph, question, "go", "", [])
    assert sentence.endswith(f" found; {NOT_SEARCHED}")


def test_a_way_that_is_not_known_counts_the_files_that_were_not_searched():
    (sentence,) = queries.unanswered(opened(UNREAD), "path", "go", "stop", [])
    assert sentence.endswith(f"; {NOT_SEARCHED}")


def test_an_unknown_symbol_counts_the_files_that_were_not_searched():
    with pytest.raises(QueryError, match=f"; {NOT_SEARCHED}$"):
        queries.callers(opened(UNREAD), "nothing")


def test_files_that_were_cut_as_text_are_counted_apart():
    chunks = sample_chunks({"a.py": "def go():\n    pass\n", "b.py": "go()\n"})
    references = references_of(chunks)
    problem = pa.array([None, "time-out: 30 s"], pa.string())
    references = references.set_column(references.schema.get_field_index("problem"), "problem", problem)
    graph = open_graphs({"library/sample": build.build_graph(chunks, references)})
    (sentence,) = queries.unanswered(graph, "callers", "go", "", [])
    assert sentence.endswith("; 1 of 2 files was not searched: 1 cut as text")


def test_unresolved_calls_and_files_that_were_not_searched_are_both_counted():
    graph = opened({"a.py": "class A:\n    def go(self):\n        pass\n", "b.py": "x.go()\n", "c.pl": "go();\n"})
    (sentence,) = queries.unanswered(graph, "callers", "go", "", [])
    assert "; 1 call of that name could not be resolved; 1 of 3 files was not searched: 1 in " in sentence
