"""Exporting the graph of a source as a SCIP index that can be imported again."""

from pathlib import Path

import pytest

from docindex_dagster.graph.open_graph import open_graphs
from docindex_dagster.graph.scip.exporting import ExportResult, export_as_scip
from docindex_dagster.graph.scip.format import DEFINITION, index_message, parse_symbol, read_index
from docindex_dagster.graph.scip.importing import import_calls
from docindex_dagster.graph.scip.merge import merge_precise
from tests.graph.built import build_graph
from tests.graph.calls import PROGRAMS, chunks_of
from tests.graph.scip.samples import KEY, Shop, calls, precise

OUTSIDE = {"external", "unresolved"}


def written(folder: Path) -> ExportResult:
    chunks = chunks_of(folder)
    return export_as_scip(open_graphs({KEY: build_graph(chunks)}), KEY, folder, chunks)


def message_of(folder: Path):
    return index_message().FromString(written(folder).data)


def texts(folder: Path, message) -> list[tuple[str, str, bool]]:
    """Return what each occurrence spells: name, symbol, and whether it is a definition."""
    found = []
    for document in message.documents:
        lines = (folder / document.relative_path).read_bytes().split(b"\n")
        for one in document.occurrences:
            line, start, end = one.range
            found.append((lines[line][start:end].decode(), one.symbol, bool(one.symbol_roles & DEFINITION)))
    return found


def test_each_symbol_is_defined_where_its_name_stands(python):
    found = texts(python.folder, message_of(python.folder))
    defined = {symbol: name for name, symbol, is_definition in found if is_definition}
    assert defined["docindex . library/program . shop/`goods.py`/Book#price()."] == "price"
    assert {parse_symbol(symbol).name for symbol in defined} == {
        "Item",
        "Book",
        "price",
        "Cart",
        "__init__",
        "add",
        "total",
        "write",
        "each",
        "fill",
    }
    assert all(parse_symbol(symbol).name == name for symbol, name in defined.items())


def test_each_call_stands_where_its_name_is_written(python):
    found = texts(python.folder, message_of(python.folder))
    called = {(name, symbol.rpartition("/")[2]) for name, symbol, is_definition in found if not is_definition}
    assert ("Ware", "Item#") in called
    assert ("add", "Cart#add().") in called
    assert ("price", "Item#price().") in called


def test_what_a_class_is_made_from_is_a_relationship(typescript):
    symbols = {
        one.display_name: one for document in message_of(typescript.folder).documents for one in document.symbols
    }
    (relationship,) = symbols["Plural"].relationships
    assert relationship.is_implementation
    assert relationship.symbol.endswith("`naming.ts`/Naming#")


def test_symbols_that_are_defined_again_have_names_of_their_own(typescript):
    found = texts(typescript.folder, message_of(typescript.folder))
    overloads = {
        symbol.rpartition("/")[2] for name, symbol, is_definition in found if is_definition and name == "shown"
    }
    assert overloads == {"shown().", "shown(+2).", "shown(+3)."}


def test_an_index_says_who_wrote_it_and_of_what(python):
    message = message_of(python.folder)
    assert message.metadata.tool_info.name == "docindex"
    assert message.metadata.project_root == python.folder.as_uri()
    assert [document.relative_path for document in message.documents] == [
        "shop/__init__.py",
        "shop/cart.py",
        "shop/goods.py",
    ]
    for document in message.documents:
        places = [[*one.range] for one in document.occurrences]
        assert places == sorted(places)


def test_a_file_that_changed_since_is_left_out(python):
    chunks = chunks_of(python.folder)
    graph = open_graphs({KEY: build_graph(chunks)})
    python.edit("shop/cart.py", lambda text: f"\n{text}")
    found = export_as_scip(graph, KEY, python.folder, chunks)
    assert found.left_out == ["shop/cart.py"]
    assert found.documents == 2


def test_the_calls_of_other_sources_are_not_written(python, tmp_path):
    other = Shop.copy(tmp_path / "other", "typescript")
    chunks = chunks_of(python.folder)
    both = open_graphs({KEY: build_graph(chunks), "library/other": build_graph(chunks_of(other.folder))})
    alone = open_graphs({KEY: build_graph(chunks)})
    assert (
        export_as_scip(both, KEY, python.folder, chunks).data == export_as_scip(alone, KEY, python.folder, chunks).data
    )


@pytest.mark.parametrize("language", ["python", "typescript"])
def test_what_is_written_and_imported_proves_the_same_edges(tmp_path, language):
    """This holds for a graph that was merged with a precise index."""
    shop = Shop.copy(tmp_path, language)
    chunks = shop.chunks()
    once = merge_precise(build_graph(chunks), shop.imported().table, chunks)
    shop.scip.write_bytes(export_as_scip(open_graphs({KEY: once}), KEY, shop.folder, chunks).data)
    again = merge_precise(build_graph(chunks), import_calls(read_index(shop.scip), shop.folder, chunks).table, chunks)
    inside = {edge for edge in precise(once) if calls(once)[edge]["object_type"] not in OUTSIDE}
    assert inside <= precise(again)
    assert {row["resolution"] for edge, row in calls(again).items() if edge in inside} == {"precise, docindex"}


@pytest.mark.parametrize("language", sorted(path.name for path in PROGRAMS.iterdir() if path.is_dir()))
def test_programs_in_all_languages_come_back(language):
    """No document is rejected, and every edge is unchanged."""
    for program in sorted((PROGRAMS / language).iterdir())[:4]:
        chunks = chunks_of(program)
        graph = build_graph(chunks)
        found = export_as_scip(open_graphs({KEY: graph}), KEY, program, chunks)
        if not found.documents:
            continue
        message = index_message().FromString(found.data)
        assert all(parse_symbol(one.symbol) for document in message.documents for one in document.occurrences)
        file = read_back(found)
        again = import_calls(file, program, chunks)
        assert again.refused == {}
        edges = calls(merge_precise(graph, again.table, chunks))
        assert edges.keys() == calls(graph).keys()


def read_back(found: ExportResult):
    from tempfile import NamedTemporaryFile

    with NamedTemporaryFile(suffix=".scip") as file:
        file.write(found.data)
        file.flush()
        return read_index(Path(file.name))
