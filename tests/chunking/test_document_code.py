"""Symbols defined in the code of a page or notebook belong to chunks, so that searches find them by name and kind."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.chunking.chunker import ChunkOptions, Draft, Sizes, SourceFile
from docindex_dagster.chunking.chunkers import load_chunker

OPTIONS = ChunkOptions(Sizes(512, 64, 1024, 64), 200)

PAGE = """<html><head><title>Dialogué</title>
<script>

function openDialog(name) {
  return showModal(name);
}
</script></head>
<body><h1>Dialogs of the shop</h1><p>One opens when the button is clicked.</p>
<script>visits.push("page");</script>
<script type="application/json">{"function": "no"}</script>
<script lang="ts">class Cart { add(item: Item) { this.items.push(item); } }
</script></body></html>
"""


def cut(text: str, loader: str) -> tuple[Draft, ...]:
    return load_chunker(loader)(SourceFile("a/file", text), OPTIONS).drafts


def test_scripts_that_define_something_are_chunks_of_their_page():
    page, *scripts = cut(PAGE, "html")
    assert page.section == "Dialogs of the shop"
    assert not page.symbols
    assert [(one.chunk_type, one.symbol.qualified_name, one.start_line, one.end_line) for one in scripts] == [
        ("function", "openDialog", 4, 6),
        ("class", "Cart", 11, 11),
    ]
    assert [(one.name, one.start_line) for one in scripts[1].symbols] == [("Cart", 11), ("add", 11)]
    assert [one.calls for one in scripts] == [("showModal",), ("this.items.push",)]


def test_a_script_is_a_span_of_its_page():
    for draft in cut(PAGE, "html")[1:]:
        assert PAGE.encode()[draft.start_byte : draft.end_byte].decode() == draft.text
        for symbol in draft.symbols:
            assert symbol.name in PAGE.encode()[symbol.start_byte : symbol.end_byte].decode()


def test_a_large_script_is_cut_and_its_chunks_continue_each_other():
    methods = "\n".join(f"  method{number}() {{ return {'x' * 40}; }}" for number in range(20))
    page, *scripts = cut(f"<p>words</p><script>\nclass Large {{\n{methods}\n}}\n</script>", "html")
    assert len(scripts) > 3
    assert {one.parent_index for one in scripts[1:]} == {1}
    assert [one.name for draft in scripts for one in draft.symbols] == ["Large", *(f"method{i}" for i in range(20))]
    assert page.text == "words"


@given(st.text("<script>/ function(){}\n\r", max_size=80))
def test_any_page_is_cut_into_spans(text):
    page = f"<p>words</p>{text}"
    for draft in load_chunker("html")(SourceFile("a.html", page), OPTIONS).drafts:
        if draft.symbols and draft.start_byte is not None:
            assert page.encode()[draft.start_byte : draft.end_byte].decode() == draft.text


def notebook(*cells: tuple[str, str], language: str = "python", indent: int | None = 1) -> str:
    return json.dumps(
        {
            "cells": [{"cell_type": kind, "source": source.splitlines(keepends=True)} for kind, source in cells],
            "metadata": {"kernelspec": {"language": language}},
            "nbformat": 4,
        },
        indent=indent,
    )


FIT = "def fit(model):\n    return clean(model)\n"
PUMP = "class Pump:\n    def prime(self):\n        return fit(self)\n"
WORDS = "A model is fit. " * 100


@pytest.mark.parametrize("indent", [1, None])
def test_what_a_notebook_defines_belongs_to_the_chunk_that_shows_it(indent):
    text = notebook(("markdown", "# Fit\n" + WORDS), ("code", FIT), ("markdown", "# Pump\n" + WORDS), ("code", PUMP))
    drafts = cut(notebook(("code", FIT), ("code", PUMP), indent=indent), "notebook")
    assert [[one.name for one in draft.symbols] for draft in drafts] == [["fit", "Pump", "prime"]]
    assert drafts[0].symbol.name == "Pump"

    found = {one.name: draft for draft in cut(text, "notebook") for one in draft.symbols}
    assert set(found) == {"fit", "Pump", "prime"}
    for name, draft in found.items():
        assert f"def {name}" in draft.text or f"class {name}" in draft.text
        assert draft.start_line <= next(one.start_line for one in draft.symbols if one.name == name) <= draft.end_line


def test_a_notebook_of_a_language_without_symbols_has_none():
    assert not any(draft.symbols for draft in cut(notebook(("code", "f(x) = 1"), language="julia"), "notebook"))
