"""Extracted files survive a round trip through a table, and damaged tables are rejected."""

import sys
from pathlib import Path
from typing import Any, get_args, get_type_hints

import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docindex_dagster.callgraph import ir
from docindex_dagster.callgraph.ir import UNKNOWN, Argument, Expression, FileIR, Instance, Name, TypeRef, walk
from docindex_dagster.callgraph.table import (
    MAX_DEPTH,
    REFERENCES,
    Extracted,
    References,
    as_table,
    is_settled,
    lacking,
    reference_rows,
    usable,
)
from docindex_dagster.core import tables
from tests.graph.calls import PROGRAMS, cut, programs
from tests.graph.samples import chunks_of

TEXTS = st.sampled_from(["", "order", "Cart", "ä\n\t", "a.b"]) | st.text(max_size=4)
NUMBERS = st.integers(0, 2**31 - 1)
NAME_SPACES: st.SearchStrategy[ir.NameSpace] = st.sampled_from(["", "function", "type"])
TYPES = st.recursive(
    TEXTS.map(TypeRef),
    lambda inner: st.tuples(TEXTS, st.lists(inner, max_size=3).map(tuple)).map(lambda given: TypeRef(*given)),
    max_leaves=5,
)
LEAVES = st.one_of(
    st.just(UNKNOWN),
    st.tuples(TEXTS, NAME_SPACES).map(lambda given: Name(*given)),
    *(TEXTS.map(leaf) for leaf in (ir.NameOrCall, ir.Literal, ir.Function, ir.Module)),
    TYPES.map(Instance),
)


def _wider(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    several = st.lists(inner, max_size=3).map(tuple)
    named = st.lists(st.tuples(TEXTS, inner), max_size=3).map(tuple)
    return st.one_of(
        *(inner.map(one) for one in (ir.Call, ir.New, ir.Element)),
        *(several.map(one) for one in (ir.Union, ir.Collection)),
        named.map(ir.Record),
        st.tuples(inner, TEXTS).map(lambda given: ir.Attribute(*given)),
        st.tuples(several, TEXTS).map(lambda given: ir.Implicit(*given)),
        st.tuples(inner, st.integers(-1, 9), st.integers(0, 9)).map(lambda given: ir.CallbackArgument(*given)),
    )


EXPRESSIONS = st.recursive(LEAVES, _wider, max_leaves=8)
ARGUMENTS = st.lists(st.builds(Argument, EXPRESSIONS, TEXTS, st.booleans()), max_size=3).map(tuple)
PLACE = {"line": NUMBERS, "byte": NUMBERS}


def _several(row: Any, **columns: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(st.builds(row, **columns), max_size=3).map(tuple)


def _kinds(row: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for the literals allowed in the first field of a statement."""
    first, *_ = get_type_hints(row).values()
    return st.sampled_from(get_args(first))


_IMPORT = {"kind": _kinds(ir.Import), "is_passed_on": st.booleans()}
FILES = st.builds(
    FileIR,
    definitions=_several(
        ir.Definition,
        **dict.fromkeys(("id", "name", "kind", "qualified", "parent"), TEXTS),
        returns=st.none() | TYPES,
        is_local=st.booleans(),
        **PLACE,
    ),
    calls=_several(
        ir.CallSite, kind=_kinds(ir.CallSite), scope=TEXTS, callee=EXPRESSIONS, arguments=ARGUMENTS, **PLACE
    ),
    imports=_several(ir.Import, **_IMPORT, **dict.fromkeys(("scope", "name", "module", "member"), TEXTS), **PLACE),
    exports=_several(ir.Export, name=TEXTS, value=EXPRESSIONS),
    assignments=_several(
        ir.Assignment, role=_kinds(ir.Assignment), scope=TEXTS, target=EXPRESSIONS, value=EXPRESSIONS, **PLACE
    ),
    parameters=_several(ir.Parameter, kind=_kinds(ir.Parameter), scope=TEXTS, name=TEXTS, value=EXPRESSIONS, **PLACE),
    returns=_several(ir.Return, scope=TEXTS, value=EXPRESSIONS),
    bases=_several(ir.Base, kind=_kinds(ir.Base), scope=TEXTS, cls=TEXTS, value=EXPRESSIONS, **PLACE),
    decorators=_several(ir.Decorator, scope=TEXTS, decorated=TEXTS, value=EXPRESSIONS, **PLACE),
    fills=_several(ir.Fill, scope=TEXTS, type=TEXTS, arguments=ARGUMENTS),
    generics=_several(ir.Generic, scope=TEXTS, name=TEXTS, bound=EXPRESSIONS),
    receivers=_several(ir.Receiver, scope=TEXTS, type=TYPES),
    forwards=_several(ir.Forward, scope=TEXTS, name=TEXTS),
    properties=st.lists(TEXTS, max_size=3).map(tuple),
    hidden=st.lists(TEXTS, max_size=3).map(tuple),
    namespace=TEXTS,
)


def table_of(*irs: FileIR) -> pa.Table:
    rows = [Extracted(f"{number}.py", "hash", "python", one) for number, one in enumerate(irs)]
    return as_table(reference_rows(rows), "made")


@settings(max_examples=40)  # each example covers every kind of statement
@given(st.lists(FILES, max_size=3))
def test_what_files_say_is_read_back_as_it_was(irs):
    read = References(table_of(*irs))

    assert list(read.values()) == irs


@pytest.mark.parametrize("language", sorted({program.parent.name for program in programs()}))
def test_real_files_are_read_back_from_the_disk_as_they_were(tmp_path: Path, language: str):
    found = cut(PROGRAMS / language, wants_references=True).references
    irs = References(found)
    tables.write(tmp_path / "table.parquet", as_table(found, "made"))

    read = References(tables.read(tmp_path / "table.parquet"))

    assert dict(read) == dict(irs)
    assert sum(len(file.calls) for file in read.values()) > 100


def test_an_equal_expression_is_stored_once_a_file():
    bound = [ir.Assignment("bind", "", Name("cart"), ir.Call(Name("make")), line, 0) for line in range(5)]

    (row,) = table_of(FileIR(assignments=tuple(bound))).to_pylist()

    texts, expressions, *_ = orjson.loads(row["content"])
    assert len(expressions) == len(list(walk(ir.Call(Name("make"))))) + 1
    assert sorted(texts) == ["", "bind", "cart", "make"]


def test_a_file_is_read_when_it_is_asked_for_and_no_other_one():
    irs = FileIR(forwards=(ir.Forward("f", "g"),))
    read = References(with_content(table_of(irs, irs), 1, b"damaged"))

    assert read["0.py"] == irs
    with pytest.raises(ValueError, match="unexpected character"):
        read["1.py"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b'[["a"],[],""]',  # lists are missing
        b'[[],[[1,0]],""' + 15 * b",[]" + b"]",  # a name refers to a missing text
        b'[["a"],[[7,1]],""' + 15 * b",[]" + b"]",  # a call refers to itself
        b'[["a"],[],""' + 14 * b",[]" + b',[0,"0"]]',  # a text instead of the number of a text
        b'[["a"],[],"",[],[[0],[0]]' + 13 * b",[]" + b"]",  # calls have two columns
    ],
)
def test_a_row_that_is_damaged_is_not_read(content: bytes):
    read = References(with_content(table_of(FileIR()), 0, content))

    with pytest.raises((ValueError, IndexError, TypeError)):
        read["0.py"]


def with_content(table: pa.Table, row: int, content: bytes) -> pa.Table:
    field = REFERENCES.field("content")
    values = table["content"].to_pylist()
    values[row] = content
    return table.set_column(table.schema.get_field_index("content"), field, pa.array(values, field.type))


def deep(levels: int) -> Expression:
    found: Expression = Name("a")
    for _ in range(levels - 1):
        found = ir.Call(found)
    return found


@pytest.mark.parametrize(
    ("levels", "is_followed"), [(MAX_DEPTH, True), (MAX_DEPTH + 1, False), (20 * sys.getrecursionlimit(), False)]
)
def test_what_is_made_of_too_many_levels_is_unknown(levels: int, is_followed: bool):
    value = deep(levels)

    read = References(table_of(FileIR(returns=(ir.Return("f", value),))))

    assert read["0.py"].returns[0].value is (value if is_followed else UNKNOWN)


def test_of_a_type_of_too_many_levels_the_outer_ones_are_left():
    nested = TypeRef("innermost")
    for _ in range(20 * sys.getrecursionlimit()):
        nested = TypeRef("list", (nested,))

    read = References(table_of(FileIR(receivers=(ir.Receiver("f", nested),))))

    assert read["0.py"].receivers[0].type.name == "list"


def test_a_file_without_structure_says_nothing_and_is_another_version_than_one_with_it():
    blank = Extracted("a.py", "hash", "python", None, "time-out: not parsed within 1 s")
    without = as_table(reference_rows([blank]), "made")
    with_it = as_table(reference_rows([Extracted("a.py", "hash", "python", FileIR())]), "made")

    assert "a.py" not in References(without)
    assert References(with_it)["a.py"] == FileIR()
    assert References(without).version_of("a.py") != References(with_it).version_of("a.py")
    assert tables.stamped_version(without.schema.metadata) != tables.stamped_version(with_it.schema.metadata)
    assert (is_settled(without), is_settled(with_it)) == (False, True)


def test_a_table_of_another_extraction_or_with_other_columns_counts_for_nothing(tmp_path: Path):
    table = table_of(FileIR())
    (tmp_path / "damaged.parquet").write_bytes(b"PAR1 no table")

    assert usable(table, "made").num_rows == 1
    assert usable(table, "made otherwise").num_rows == 0
    assert usable(table.drop_columns(["content"]), "made").num_rows == 0
    assert usable(tables.read(tmp_path / "damaged.parquet"), "made").num_rows == 0
    with pytest.raises(ValueError, match="expected a references table"):
        References(table.drop_columns(["content"]))


def test_files_of_code_that_nothing_was_extracted_from_are_counted():
    chunks = chunks_of({"a.py": "import os\n", "b.py": "import os\n", "c.md": "# Title\n\nWords.\n"})
    row = Extracted("a.py", chunks["content_hash"][0].as_py(), "python", FileIR())

    assert lacking(chunks, None) == 2
    assert lacking(chunks, reference_rows([row])) == 1
    assert lacking(chunks, reference_rows([row._replace(content_hash="of another text")])) == 2
    assert lacking(chunks, pa.table({"path": ["a.py"]})) == 2
