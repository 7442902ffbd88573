"""Embedded code has the byte and line positions of its file."""

import pytest

from docindex_dagster.code.embedded_code import Code, read_code
from docindex_dagster.code.symbols import Symbol


def code_of(text: str, language: str) -> Code:
    found = read_code(text.encode(), language)
    assert found is not None
    return found


def symbols_of(text: str, language: str) -> dict[str, Symbol]:
    return {symbol.qualified_name: symbol for symbol in code_of(text, language).outline_of_file.symbols}


def calls_of(text: str, language: str) -> list[str]:
    return [call.name for call in code_of(text, language).outline_of_file.calls]


VUE = """<template>
  <button @click="saveDraft">Save {{ title("é") }}</button>
</template>

<script setup lang="ts">
import { openDialog } from './util'
function saveDraft(): void {
  openDialog('draft')
}
</script>
"""


def test_a_symbol_has_the_lines_and_bytes_of_the_component():
    symbol = symbols_of(VUE, "vue")["saveDraft"]
    assert (symbol.start_line, symbol.end_line, symbol.signature) == (7, 9, "function saveDraft(): void")
    written = VUE.encode()[symbol.start_byte : symbol.end_byte].decode()
    assert written == "function saveDraft(): void {\n  openDialog('draft')\n}"


def test_imports_of_a_component_are_read():
    assert code_of(VUE, "vue").outline.imports == ("./util",)


@pytest.mark.parametrize(
    ("attributes", "language"),
    [
        ("", "javascript"),
        (' lang="ts"', "typescript"),
        (" setup lang='ts' generic=\"T extends Record<string, X>\"", "typescript"),
        (' lang="tsx"', "tsx"),
        (' type="module"', "javascript"),
        (' type="text/typescript"', "typescript"),
        (" LANG=ts", "typescript"),
    ],
)
def test_the_language_of_a_script_is_that_of_its_attributes(attributes, language):
    assert code_of(f"<script{attributes}>const a = f(1)</script>", "vue").language == language


@pytest.mark.parametrize(
    "page",
    [
        '<script type="application/json">{"a": f(1)}</script>',
        '<script type="text/x-template"><p>{{ f(1) }}</p></script>',
        '<script type="importmap">{"imports": {}}</script>',
        '<script src="a.js">f(1)</script>',
        "<!-- <script>f(1)</script> -->",
        "<p>f(1)</p>",
    ],
)
def test_what_is_no_script_of_a_page_is_no_code(page):
    assert read_code(page.encode(), "html") is None


def test_all_scripts_of_a_component_are_read():
    svelte = '<script context="module">\nexport function load() {}\n</script>\n<script>\nfunction add() {}\n</script>\n'
    assert {name: one.start_line for name, one in symbols_of(svelte, "svelte").items()} == {"load": 2, "add": 5}


def test_front_matter_and_scripts_of_a_page_of_astro_are_read():
    astro = "---\nconst rows = list(1);\nfunction total() {}\n---\n<p/>\n<script>\n  function go() {}\n</script>\n"
    assert {name: one.start_line for name, one in symbols_of(astro, "astro").items()} == {"total": 3, "go": 7}


@pytest.mark.parametrize(
    ("language", "markup", "calls"),
    [
        ("vue", '<p @click="save()" :a="{ b: one(1), c: two(2) }">{{ three(3) }}</p>', ["save", "one", "two", "three"]),
        ("vue", '<p v-for="(row, i) of rows(1)" v-on:click="a.save">{{ row }}</p>', ["rows", "a.save"]),
        ("vue", '<Panel\n  v-if="a < b" @close="done"/>', ["Panel", "done"]),
        ("vue", "<Panel>a</Panel><Other.Part b/><div/>", ["Panel", "Other.Part"]),
        (
            "svelte",
            "<p on:click={add} onclick={() => save(1)} on:x={a.b}>{format(1)}</p>",
            ["add", "save", "a.b", "format"],
        ),
        ("svelte", "{#each rows(1) as row, i (row.id)}{row}{/each}", ["rows"]),
        ("svelte", "{#if one(1)}{a}{:else if two(2)}{b}{/if}{@html three(3)}", ["one", "two", "three"]),
        ("svelte", "{#await load() then value}<Value {value}/>{/await}", ["load", "Value"]),
        ("svelte", "{#snippet row(a)}<p>{a}</p>{/snippet}{one}{two(2)}", ["two"]),
        ("astro", "<Card title={one(1)} {...rest}>{two(2)}</Card>", ["Card", "one", "two"]),
        (
            "astro",
            "{rows.map((row) => <li><Card x={one(row)} />{two(row)} {row}</li>)}",
            ["rows.map", "Card", "one", "two"],
        ),
        ("astro", "{a ? <Card /> : <b>{one(1)}</b>}", ["Card", "one"]),
    ],
)
def test_what_markup_evaluates_is_called(language, markup, calls):
    assert calls_of(markup, language) == calls
    assert not code_of(markup, language).tree.root_node.has_error


def test_a_template_of_ruby_is_read_in_pieces():
    erb = "<% if admin? %><%= headline(@user) %><%# later(1) %> <%= price 2 %><% end %>\n<% def row(a) %>\n<% end %>\n"
    assert calls_of(erb, "embeddedtemplate") == ["admin?", "headline", "price"]
    assert symbols_of(erb, "embeddedtemplate")["row"].start_line == 2


def test_a_template_of_javascript_is_read_in_pieces():
    ejs = "<% rows.forEach((row) => { %>\n<p><%- cell(row) %></p>\n<% }) %>\n"
    assert calls_of(ejs, "ejs") == ["rows.forEach", "cell"]


RAZOR = """@page "/counter"
@using Shop.Data
@* @code { void No() {} } *@
<button @onclick="Increment">@count</button>
@code {
    [Parameter] public string Title { get; set; } = "}";
    private void Increment() { Log("{"); }
}
<p>void Nor() {}</p>
"""


def test_the_blocks_of_a_page_of_razor_are_read():
    assert {name: one.start_line for name, one in symbols_of(RAZOR, "razor").items()} == {"Increment": 7}
    assert calls_of(RAZOR, "razor") == ["Increment", "Log"]
    assert code_of(RAZOR, "razor").outline.imports == ("Shop.Data",)


@pytest.mark.parametrize("opening", ["@functions {", "@{", "@functions\n{"])
def test_other_blocks_of_a_page_of_razor_are_read(opening):
    assert set(symbols_of(f"<p>a</p>\n{opening}\n  int Twice(int x) {{ return x * 2; }}\n}}\n", "razor")) == {"Twice"}


def test_scripts_beside_the_code_of_a_server_are_read():
    php = (
        "<?php function head() { return '<script>no(1)</script>'; } ?>\n"
        "<script>\nfunction twice(x) { return <?= head() ?> }\n</script>\n"
    )
    assert {name: one.start_line for name, one in symbols_of(php, "php").items()} == {"head": 1, "twice": 3}
    erb = "<%= head %>\n<script>\nfunction twice(x) { return '<%= row %>' }\n</script>\n"
    assert set(symbols_of(erb, "embeddedtemplate")) == {"twice"}


@pytest.mark.parametrize(
    "text",
    [
        "<script>" * 500,
        '<script "' * 500,
        "<script a='" * 500,
        "<!--" * 500,
        "<script>f(1)</script>" * 500,
        "<p>" * 500 + "<script>f(1)</script>",
        "<%" * 500,
        "@{" * 500,
        '@{ "' * 500,
        "{#if a}" * 500,
        "{{ f(" * 500,
        "{<a>" * 500,
        "---\n" * 500,
        "<Panel" * 500,
        "<Panel\n" * 500,
    ],
)
@pytest.mark.parametrize("language", ["astro", "embeddedtemplate", "html", "php", "razor", "svelte", "vue"])
def test_hostile_pages_are_read(text, language):
    code = read_code(text.encode(), language)
    assert code is None or len(code.tree.root_node.text or b"") <= len(text)


@pytest.mark.parametrize("language", ["astro", "ejs", "embeddedtemplate", "html", "razor", "svelte", "vue"])
def test_no_line_moves(language):
    text = "é <script>\r\n f(1)\r\n</script>\n<% g(2) %>\n{{ h(3) }} {i(4)}\n@{ j(5); }\n<A\n/>\n"
    code = read_code(text.encode(), language)
    assert code is not None
    lines = text.encode().split(b"\n")
    for call in code.outline_of_file.calls:
        line = text.encode()[: call.start_byte].count(b"\n")
        assert call.name.encode() in lines[line]
