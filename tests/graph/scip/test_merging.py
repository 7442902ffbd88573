"""Merging: edges proven by an index replace inferred ones while their files are unchanged."""

import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from docindex_dagster.core import tables
from docindex_dagster.graph.extraction import GraphPlan, write
from docindex_dagster.graph.extraction import read as read_graph
from docindex_dagster.graph.scip import table
from docindex_dagster.graph.scip.merge import merge_precise, stale_files, stale_sentence
from docindex_dagster.graph.source_graph import Graph, outside_nodes, stray_edges
from tests.graph.built import build_graph
from tests.graph.scip.samples import KEY, Edge, Shop, calls, graph_of, precise

CAST = ("shop/cart.py::Cart.add", "shop/goods.py::Item.price")


def test_an_edge_that_an_index_proves_is_certain_and_names_the_tool(python):
    python.keep()
    row = calls(graph_of(python.extract()))[CAST]
    assert (row["resolution"], row["confidence"], row["line"]) == ("precise, scip-python", 1.0, 16)
    chunk = next(one for one in python.chunks().to_pylist() if one["chunk_id"] == row["chunk_id"])
    assert chunk["path"] == "shop/cart.py"
    assert chunk["start_line"] <= 16 <= chunk["end_line"]


def test_an_edge_that_was_inferred_as_well_becomes_certain_where_it_stands(python):
    inferred = build_graph(python.chunks())
    python.keep()
    found = calls(graph_of(python.extract()))
    edge = ("shop/cart.py::fill", "shop/cart.py::Cart.add")
    assert calls(inferred)[edge]["confidence"] < 1
    assert (found[edge]["confidence"], found[edge]["line"]) == (1, calls(inferred)[edge]["line"])


def test_an_edge_that_an_index_contradicts_goes(typescript):
    wrong = ("src/schema.ts::Table.name", "src/naming.ts::Plural.tableName")
    right = ("src/schema.ts::Table.name", "src/naming.ts::Naming.tableName")
    assert wrong in calls(build_graph(typescript.chunks()))
    typescript.keep()
    found = calls(graph_of(typescript.extract()))
    assert wrong not in found
    assert right in precise(graph_of(typescript.extract()))


def with_unresolved(graph: Graph, edge: Edge, name: str) -> Graph:
    """Return the graph of a resolver that finds no target for an edge."""
    rows = graph.triples.to_pylist()
    for row in rows:
        if (row["subject"], row["object"]) == edge and row["predicate"] == "calls":
            row |= {"object": f"unresolved:{name}", "object_type": "unresolved", "confidence": 0.0}
    triples = pa.Table.from_pylist(rows, graph.triples.schema)
    inside = graph.nodes.filter(pc.is_valid(graph.nodes["path"]))
    return Graph(pa.concat_tables([inside, outside_nodes(triples)]), triples)


def test_an_unresolved_call_goes_where_an_index_knows_what_is_meant(typescript):
    known = ("src/schema.ts::shown~3", "src/schema.ts::Table.name")
    chunks = typescript.chunks()
    graph = with_unresolved(build_graph(chunks), known, "name")
    assert "unresolved:name" in graph.nodes["node"].to_pylist()
    found = merge_precise(graph, typescript.imported().table, chunks)
    assert known in precise(found)
    assert "unresolved:name" not in found.nodes["node"].to_pylist()


def test_what_an_index_does_not_know_stays_as_it_was_inferred(python):
    inferred = calls(build_graph(python.chunks()))
    python.keep()
    found = calls(graph_of(python.extract()))
    handed_on = ("shop/cart.py::Cart.each", "shop/goods.py::Item")
    assert found[handed_on] == inferred[handed_on]
    assert found[handed_on]["resolution"] == "argument of a caller"


def test_a_call_of_super_stays_where_an_index_marks_none(typescript):
    typescript.keep()
    found = calls(graph_of(typescript.extract()))
    assert ("src/schema.ts::Table.constructor", "src/schema.ts::Named") in found


def test_each_overload_that_was_inferred_stays(typescript):
    typescript.keep()
    found = precise(graph_of(typescript.extract()))
    assert {("src/schema.ts", "src/schema.ts::shown"), ("src/schema.ts", "src/schema.ts::shown~2")} <= found
    assert ("src/schema.ts", "src/schema.ts::shown~3") not in found


def test_a_package_that_is_installed_beside_its_source_does_not_take_the_calls_away(python):
    """This holds if the index mistakes the source's own module for the installed package's."""

    def install(message):
        for document in message.documents:
            for one in document.occurrences:
                if not one.symbol_roles & 1:
                    one.symbol = one.symbol.replace("python shop 1 ", "python shop 0.9 ")

    python.change_index(install)
    inferred = calls(build_graph(python.chunks()))
    python.keep()
    found = calls(graph_of(python.extract()))
    own = {edge for edge, row in inferred.items() if row["object_type"] not in {"external", "unresolved"}}
    assert own <= found.keys()


@pytest.mark.parametrize("language", ["python", "typescript"])
def test_a_merge_is_the_same_when_it_is_merged_again(tmp_path, language):
    shop = Shop.copy(tmp_path, language)
    rows, chunks = shop.imported().table, shop.chunks()
    once = merge_precise(build_graph(chunks), rows, chunks)
    twice = merge_precise(once, rows, chunks)
    assert twice.triples.equals(once.triples)
    assert twice.nodes.equals(once.nodes)
    assert stray_edges(once, chunks) == ""


# Later runs


def test_without_an_import_nothing_changes(python):
    extracted = python.extract()
    assert extracted.plan == GraphPlan().fingerprint
    assert graph_of(extracted).triples.equals(build_graph(python.chunks()).triples)


def test_an_import_and_its_removal_are_seen_by_the_next_run(python):
    before = python.extract()
    python.keep()
    with_index = python.extract(before)
    assert with_index.plan != before.plan
    assert CAST in precise(graph_of(with_index))
    assert table.remove(python.layout, KEY)
    after = python.extract(with_index)
    assert after.version == before.version
    assert graph_of(after).triples.equals(graph_of(before).triples)
    assert not table.remove(python.layout, KEY)


def test_the_next_run_merges_the_same_again(python):
    python.keep()
    first = python.extract()
    write(python.layout, KEY, first)
    second = python.extract(read_graph(python.layout, KEY))
    assert second.version == first.version
    assert graph_of(second).triples.equals(graph_of(first).triples)


def test_a_file_that_changed_since_loses_its_precise_edges_and_is_named(python):
    python.keep()
    before = python.extract()
    python.edit("shop/cart.py", lambda text: f"# more\n{text}")
    rows = table.read(python.layout, KEY)
    after = graph_of(python.extract(before))
    assert {edge for edge in precise(after) if edge[0].startswith("shop/cart.py")} == set()
    assert {edge for edge in precise(after) if edge[0].startswith("shop/goods.py")} != set()
    assert stale_files(rows, python.chunks()) == ["shop/cart.py"]
    assert stale_sentence(rows, python.chunks()).endswith("since their precise index was imported: shop/cart.py")
    python.edit("shop/cart.py", lambda text: text.removeprefix("# more\n"))
    again = graph_of(python.extract(before))
    assert again.triples.equals(graph_of(before).triples)


def test_the_target_of_an_edge_may_move_within_its_file(python):
    python.keep()
    before = python.extract()
    python.edit("shop/goods.py", lambda text: text.replace("class Item", "# moved\n\n\nclass Item"))
    assert CAST in precise(graph_of(python.extract(before)))


def test_an_edge_goes_with_its_target(python):
    python.keep()
    before = python.extract()
    python.edit("shop/goods.py", lambda text: text.replace("class Item:\n    def price", "class Item:\n    def cost"))
    after = python.extract(before)
    assert CAST not in calls(graph_of(after))
    assert stray_edges(graph_of(after), python.chunks()) == ""
    python.edit("shop/goods.py", lambda text: text.replace("def cost", "def price"))
    assert graph_of(python.extract(after)).triples.equals(graph_of(before).triples)


def test_a_file_of_targets_may_go(python):
    python.keep()
    before = python.extract()
    (python.folder / "shop/goods.py").unlink()
    after = graph_of(python.extract(before))
    assert stray_edges(after, python.chunks()) == ""
    assert CAST not in calls(after)


def test_a_damaged_table_is_a_problem_that_names_the_remedy(python):
    python.keep()
    path = python.layout.table(table.PRECISE_TABLE, KEY)
    path.write_bytes(path.read_bytes()[:-50])
    extracted = python.extract()
    assert "the precise index is damaged: import it again" in extracted.problem


def test_a_table_of_another_schema_is_damage(python):
    tables.write(python.layout.table(table.PRECISE_TABLE, KEY), pa.table({"path": ["shop/cart.py"]}))
    assert "the precise index is damaged" in python.extract().problem


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("language", ["python", "typescript"])
def test_after_edits_the_graph_is_that_of_a_build_from_nothing(tmp_path, language, seed):
    shop = Shop.copy(tmp_path, language)
    shop.keep()
    chance = random.Random(seed)
    files = sorted(path for path in shop.folder.rglob("*") if path.suffix in {".py", ".ts"})
    original = {path: path.read_text("utf-8") for path in files}
    kept = shop.extract()
    for _ in range(12):
        path = chance.choice(files)
        lines = original[path].split("\n")
        kind = chance.choice(["as it was", "as it was", "line", "insert", "twice", "gone"])
        at = chance.randrange(len(lines))
        if kind == "line":
            del lines[at]
        elif kind == "insert":
            lines.insert(at, chance.choice(["", "class Item: ...", "export class Plural {}"]))
        elif kind == "twice":
            lines += lines
        path.unlink(missing_ok=True)
        if kind != "gone":
            path.write_text("\n".join(lines), "utf-8")
        kept, whole = shop.extract(kept), shop.extract()
        assert graph_of(kept).triples.to_pylist() == graph_of(whole).triples.to_pylist()
        assert graph_of(kept).nodes.to_pylist() == graph_of(whole).nodes.to_pylist()
