"""Importing an index: each document is checked against the indexed files before it is trusted."""

import random

import pytest

from docindex_dagster.core.errors import ScipError
from docindex_dagster.graph.scip import format as index_module
from docindex_dagster.graph.scip import table
from docindex_dagster.graph.scip.format import UTF8, UTF16, UTF32, byte_column, read_index
from docindex_dagster.graph.scip.importing import (
    DAMAGED,
    EDITED,
    NO_CALLS,
    OTHER_STATE,
    OUTSIDE,
    REPEATED,
    UNKNOWN,
    import_calls,
)
from tests.graph.calls import chunks_of
from tests.graph.scip.samples import KEY, Shop


def known(shop: Shop) -> set[tuple[str, int, str, str]]:
    """Return the calls whose target the index locates in the source: caller, line, name and target."""
    rows = shop.imported().table.to_pylist()
    return {
        (row["caller"].rpartition("/")[2], row["line"], row["name"], target.rpartition("/")[2])
        for row in rows
        if row["target_path"] is not None
        for target in row["targets"]
    }


def document(message, path: str):
    return next(one for one in message.documents if one.relative_path == path)


# Accepted documents


def test_scip_python_tells_what_a_cast_and_a_test_of_the_type_make_known(python):
    found = known(python)
    assert ("cart.py::Cart.add", 16, "price", "goods.py::Item.price") in found
    assert ("cart.py::Cart.total", 21, "price", "goods.py::Book.price") in found


def test_an_alias_is_what_it_stands_for(python):
    assert ("cart.py::Cart.write", 25, "Ware", "goods.py::Item") in known(python)


def test_scip_typescript_tells_what_an_interface_has_and_which_class_is_made(typescript):
    found = known(typescript)
    assert ("schema.ts::Table.name", 16, "tableName", "naming.ts::Naming.tableName") in found
    assert ("schema.ts::make", 26, "Table", "schema.ts::Table") in found


def test_overloads_have_one_name_in_an_index(typescript):
    rows = [row for row in typescript.imported().table.to_pylist() if row["name"] == "shown"]
    assert {tuple(row["targets"]) for row in rows} == {
        ("src/schema.ts::shown", "src/schema.ts::shown~2", "src/schema.ts::shown~3")
    }


def test_a_call_behind_signs_of_four_bytes_is_found_where_it_stands(python):
    (row,) = (row for row in python.imported().table.to_pylist() if row["line"] == 16 and row["name"] == "total")
    assert (python.folder / "shop/cart.py").read_bytes()[row["byte"] :].startswith(b"self.total()")
    assert row["targets"] == ["shop/cart.py::Cart.total"]


def test_what_lies_outside_has_the_name_that_the_graph_gives_it(python):
    rows = python.imported().table.to_pylist()
    outside = {target for row in rows if row["target_type"] == "external" for target in row["targets"]}
    assert {"external:json.dumps", "external:typing.cast", "external:print"} <= outside


def test_a_variable_is_not_what_is_called(python):
    (row,) = (row for row in python.imported().table.to_pylist() if row["name"] == "make")
    assert row["targets"] == []


@pytest.mark.parametrize(("encoding", "column"), [(UTF8, 7), (UTF32, 3), (UTF16, 4), (0, 4)])
def test_columns_count_bytes_characters_or_units(encoding, column):
    assert byte_column("é😀\tf()", column, encoding) == 7
    assert byte_column("é😀\tf()", 99, encoding) is None


# Rejected documents


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../goods.py",
        "shop/../../goods.py",
        "shop//cart.py",
        "./shop/cart.py",
        "shop\\cart.py",
        "a\0b",
        "",
        ".",
    ],
)
def test_a_path_out_of_the_source_is_refused(python, path):
    def change(message):
        document(message, "shop/cart.py").relative_path = path

    python.change_index(change)
    found = python.imported()
    assert found.refused == {OUTSIDE: [path]}
    assert found.files == ["shop/__init__.py", "shop/goods.py"]


def test_a_link_out_of_the_source_is_not_followed(python, tmp_path):
    chunks = python.chunks()
    (tmp_path / "elsewhere.py").write_bytes((python.folder / "shop/cart.py").read_bytes())
    (python.folder / "shop/cart.py").unlink()
    (python.folder / "shop/cart.py").symlink_to(tmp_path / "elsewhere.py")
    assert import_calls(read_index(python.scip), python.folder, chunks).refused == {EDITED: ["shop/cart.py"]}


def test_a_file_that_is_not_indexed_is_refused(python):
    python.change_index(lambda message: setattr(document(message, "shop/cart.py"), "relative_path", "shop/more.py"))
    assert python.imported().refused == {UNKNOWN: ["shop/more.py"]}


def test_a_file_in_a_language_without_calls_is_refused(typescript):
    typescript.change_index(lambda message: setattr(message.documents[0], "relative_path", "package.json"))
    assert typescript.imported().refused == {NO_CALLS: ["package.json"]}


def test_a_document_counts_once(python):
    def change(message):
        message.documents.add().CopyFrom(document(message, "shop/cart.py"))

    before = python.imported().table
    python.change_index(change)
    found = python.imported()
    assert found.refused == {REPEATED: ["shop/cart.py"]}
    assert found.table.equals(before)


def test_a_file_that_was_edited_since_it_was_indexed_is_refused(python):
    chunks = python.chunks()
    python.edit("shop/cart.py", lambda text: text + "\n")
    found = import_calls(read_index(python.scip), python.folder, chunks)
    assert found.refused == {EDITED: ["shop/cart.py"]}


@pytest.mark.parametrize("line", [0, 1, 10, 15, 20])
def test_a_file_that_was_edited_since_the_index_was_made_is_refused(python, line):
    def insert(text: str) -> str:
        lines = text.split("\n")
        return "\n".join([*lines[:line], "# more", *lines[line:]])

    python.edit("shop/cart.py", insert)
    assert python.imported().refused == {OTHER_STATE: ["shop/cart.py"]}


def test_a_definition_under_another_name_is_of_another_state(python):
    python.edit("shop/goods.py", lambda text: text.replace("class Book", "class Bulk"))
    assert python.imported().refused == {OTHER_STATE: ["shop/goods.py"]}


def test_a_text_that_the_index_holds_has_to_be_that_of_the_file(python):
    text = (python.folder / "shop/cart.py").read_text("utf-8")
    python.change_index(lambda message: setattr(document(message, "shop/cart.py"), "text", text))
    assert python.imported().refused == {}
    python.change_index(lambda message: setattr(document(message, "shop/cart.py"), "text", text + "#"))
    assert python.imported().refused == {OTHER_STATE: ["shop/cart.py"]}


@pytest.mark.parametrize("numbers", [[], [1], [1, 2], [-1, 0, 4], [1, 5, 3], [1, -2, 4], [1, 2, 3, 4, 5]])
def test_a_range_that_is_none_is_damage(python, numbers):
    def change(message):
        del document(message, "shop/cart.py").occurrences[-1].range[:]
        document(message, "shop/cart.py").occurrences[-1].range.extend(numbers)

    python.change_index(change)
    (reason,) = python.imported().refused
    assert reason in {DAMAGED, OTHER_STATE}


@pytest.mark.parametrize("numbers", [[10**6, 0, 4], [1, 0, 10**9], [2**31 - 1, 2**31 - 2, 2**31 - 1]])
def test_a_range_behind_the_end_of_the_file_is_of_another_state(python, numbers):
    def change(message):
        document(message, "shop/cart.py").occurrences.add(range=numbers, symbol="local 1")

    python.change_index(change)
    assert python.imported().refused == {OTHER_STATE: ["shop/cart.py"]}


def test_where_no_document_fits_nothing_is_imported(python):
    python.edit("shop/cart.py", lambda text: f"\n{text}")
    python.edit("shop/goods.py", lambda text: f"\n{text}")
    python.change_index(lambda message: message.documents.remove(document(message, "shop/__init__.py")))
    with pytest.raises(
        ScipError, match=r"no document of the SCIP file matches the source; 2 refused \(made from another"
    ):
        python.imported()


# Invalid index files


def test_a_file_that_is_not_there_says_so(tmp_path):
    with pytest.raises(ScipError, match=r"cannot read .*: No such file"):
        read_index(tmp_path / "nothing.scip")


@pytest.mark.parametrize("data", [b"", b"\x08\x01", b"not a file of SCIP", bytes(1000), b"\xff" * 1000])
def test_what_is_no_file_of_scip_says_so(tmp_path, data):
    (tmp_path / "index.scip").write_bytes(data)
    with pytest.raises(ScipError, match=r"not a SCIP file"):
        read_index(tmp_path / "index.scip")


def test_a_file_over_the_limit_is_refused(python, monkeypatch):
    monkeypatch.setattr(index_module, "MOST_BYTES", 1 << 10)
    with pytest.raises(ScipError, match=r"is too large"):
        read_index(python.scip)


@pytest.mark.parametrize("seed", range(40))
def test_damage_is_an_error_or_a_refusal_and_never_more_than_the_index_says(python, seed):
    chance = random.Random(seed)
    data = bytearray(python.scip.read_bytes())
    for _ in range(chance.choice([1, 5, 50])):
        data[chance.randrange(len(data))] = chance.randrange(256)
    python.scip.write_bytes(data[: chance.choice([len(data), chance.randrange(len(data))])])
    files = {"shop/__init__.py", "shop/cart.py", "shop/goods.py"}
    try:
        found = python.imported()
    except ScipError:
        return
    assert set(found.files) <= files
    for row in found.table.to_pylist():
        assert row["path"] in files
        assert row["target_path"] in {None, *files}


def test_the_name_of_a_tool_is_a_plain_word(python):
    python.change_index(lambda message: setattr(message.metadata.tool_info, "name", "\x1b[31m e vil\n" + "x" * 100))
    tool = python.imported().tool
    assert tool.startswith("31m-e-vil-xxx")
    assert len(tool) <= 40


def test_an_index_of_a_folder_in_the_source_is_of_the_files_in_it(python, tmp_path):
    def change(message):
        message.metadata.project_root = (tmp_path / "program").as_uri()

    python.change_index(change)
    found = import_calls(read_index(python.scip), tmp_path, chunks_of(tmp_path))
    assert found.files == ["program/shop/__init__.py", "program/shop/cart.py", "program/shop/goods.py"]


# Stored index


def test_indexes_of_two_tools_stand_side_by_side(tmp_path):
    both = Shop.copy(tmp_path, "python")
    both.keep()
    both.change_index(lambda message: setattr(message.metadata.tool_info, "name", "another"))
    both.change_index(lambda message: message.documents.remove(document(message, "shop/cart.py")))
    both.keep()
    now = table.read(both.layout, KEY)
    tools = {(row["path"], row["tool"]) for row in now.to_pylist()}
    assert tools == {("shop/cart.py", "scip-python"), ("shop/goods.py", "another")}


def test_what_the_same_tool_gave_before_goes(python):
    python.keep()
    python.change_index(lambda message: message.documents.remove(document(message, "shop/cart.py")))
    python.keep()
    now = table.read(python.layout, KEY)
    assert {row["path"] for row in now.to_pylist()} == {"shop/goods.py"}
