"""Reading and writing SCIP symbol names according to its grammar."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.graph.scip.format import Descriptor, Symbol, format_symbol, parse_symbol


@pytest.mark.parametrize(
    ("text", "package", "descriptors"),
    [
        (
            "scip-python python click 8.2 `click.core`/Context#invoke().",
            "scip-python python click 8.2",
            [("click.core", "/"), ("Context", "#"), ("invoke", "().")],
        ),
        (
            "scip-typescript npm shop 1.0.0 src/`schema.ts`/Table#`<constructor>`().(word)",
            "scip-typescript npm shop 1.0.0",
            [("src", "/"), ("schema.ts", "/"), ("Table", "#"), ("<constructor>", "()."), ("word", "()")],
        ),
        ("a . . . f(+1).", "a . . .", [("f", "().")]),
        ("a . . . T#[P]", "a . . .", [("T", "#"), ("P", "[]")]),
        ("a  b . c . m!x.y:", "a\0b . c .", [("m", "!"), ("x", "."), ("y", ":")]),
        ("a . . . `tick``s`#", "a . . .", [("tick`s", "#")]),
    ],
)
def test_a_symbol_is_a_package_and_descriptors(text, package, descriptors):
    assert parse_symbol(text) == Symbol(package, tuple(Descriptor(*each) for each in descriptors))


@pytest.mark.parametrize(
    "text",
    ["", "local 7", "local 7 a b c", "a . . .", "a . . . ", "a . . . f", "a . . . f(", "a . . . `f", "ü . . . é f#"],
)
def test_what_is_no_global_symbol_is_none(text):
    assert parse_symbol(text) is None


@given(st.text(st.characters(exclude_characters="\0"), min_size=1), st.sampled_from(["#", "().", ".", "/", "!"]))
def test_any_name_comes_back(name, suffix):
    text = format_symbol("docindex", "", "a source", "", [Descriptor("src", "/"), Descriptor(name, suffix)])
    found = parse_symbol(text)
    assert found is not None
    assert found.descriptors == (Descriptor("src", "/"), Descriptor(name, suffix))


@given(st.text())
def test_no_text_breaks_the_reader(text):
    assert parse_symbol(text) is None or text
    assert parse_symbol(f"a b c d {text}") is None or text
