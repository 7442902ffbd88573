"""Code in components, pages and notebooks makes and receives calls like any other."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from docindex_dagster.callgraph.table import as_table
from docindex_dagster.graph.build import build_graph
from docindex_dagster.graph.source_graph import Graph
from tests.graph.calls import cut

UTIL = "export function openDialog(id: string) { return id }\nexport function stamp() { return 1 }\n"


def graph_of(folder: Path, files: Mapping[str, str]) -> Graph:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    made = cut(folder, wants_references=True)
    chunks = made.rows.sort_by([("path", "ascending"), ("chunk_index", "ascending")])
    return build_graph(chunks, as_table(made.references, ""))


def edges(graph: Graph, predicate: str) -> dict[tuple[str, str], int]:
    """Return the edges of a predicate, each with its line."""
    rows = graph.triples.select(["subject", "predicate", "object", "line"]).to_pylist()
    return {(row["subject"], row["object"]): row["line"] for row in rows if row["predicate"] == predicate}


@pytest.mark.parametrize(
    ("path", "text", "calls"),
    [
        (
            "Panel.vue",
            """<template><b @click="save">x</b></template>
<script setup lang="ts">
import { openDialog } from "./util"
function save() { openDialog('a') }
</script>
""",
            {("Panel.vue", "Panel.vue::save"): 1, ("Panel.vue::save", "util.ts::openDialog"): 4},
        ),
        (
            "Old.vue",
            """<script>
import { stamp } from "./util"
export default {
  methods: {
    save() { return stamp() },
    load() { this.save() },
  },
}
</script>
<template>
<p>{{ load() }}</p>
</template>
""",
            {
                ("Old.vue::save", "util.ts::stamp"): 5,
                ("Old.vue::load", "Old.vue::save"): 6,
                ("Old.vue", "Old.vue::load"): 11,
            },
        ),
        (
            "Counter.svelte",
            """<script>
  import { openDialog } from './util'
  function bump() { openDialog('b') }
</script>
<button on:click={bump}>x</button>
""",
            {("Counter.svelte::bump", "util.ts::openDialog"): 3, ("Counter.svelte", "Counter.svelte::bump"): 5},
        ),
        (
            "page.astro",
            "---\nimport { stamp } from './util';\nconst now = stamp();\n---\n<p/>\n",
            {("page.astro", "util.ts::stamp"): 3},
        ),
        (
            "page.html",
            """<html><head><title>T</title>
<script type='module'>
import { stamp } from './util.js'
function boot() { stamp() }
boot()
</script></head><body><p>Text.</p></body></html>
""",
            {("page.html::boot", "util.ts::stamp"): 4, ("page.html", "page.html::boot"): 5},
        ),
        (
            "page.php",
            """<?php function head() { return 1; } ?>
<h1><?= head() ?></h1>
<script>
function twice(x) { return x }
twice(<?= head() ?>)
</script>
""",
            {("page.php", "page.php::head"): 2, ("page.php", "page.php::twice"): 5},
        ),
    ],
)
def test_calls_in_a_page_are_followed(path, text, calls, tmp_path):
    assert edges(graph_of(tmp_path, {path: text, "util.ts": UTIL}), "calls") == calls


def test_a_component_is_called_by_those_that_use_it(tmp_path):
    files = {
        "App.vue": "<script setup>\nimport Panel from './parts/Panel.vue'\n</script>\n<template><Panel/></template>\n",
        "parts/Panel.vue": "<template><p/></template>\n",
        "Page.svelte": "<script>\nimport Side from './parts/side-bar.svelte'\n</script>\n<Side a={1}/>\n",
        "parts/side-bar.svelte": "<p>side</p>\n",
        "index.astro": "---\nimport Card from './parts/Card.astro'\n---\n{rows.map((row) => <Card/>)}\n",
        "parts/Card.astro": "<p>card</p>\n",
    }
    graph = graph_of(tmp_path, files)
    used = {
        ("App.vue", "parts/Panel.vue::Panel"),
        ("Page.svelte", "parts/side-bar.svelte::SideBar"),
        ("index.astro", "parts/Card.astro::Card"),
    }
    assert used <= {*edges(graph, "calls")}
    assert {(user, target.partition("::")[0]) for user, target in used} <= {*edges(graph, "imports")}


def test_cells_of_a_notebook_call_what_they_import(tmp_path):
    source = '"from lib import fit\\n",\n"%time\\n",\n"fit(1)"'
    cells = f'{{"cells": [\n{{"cell_type": "code", "source": [\n{source}]}}],\n"metadata": {{}}}}'
    graph = graph_of(tmp_path, {"train.ipynb": cells, "lib.py": "def fit(x):\n    return x\n"})
    assert edges(graph, "calls") == {("train.ipynb", "lib.py::fit"): 5}


def test_a_page_of_razor_calls_classes_of_its_namespaces(tmp_path):
    files = {
        "Counter.razor": (
            '@using Shop.Data\n<b @onclick="Add">x</b>\n@code {\n  private void Add() { Store.Save(1); }\n}\n'
        ),
        "Store.cs": "namespace Shop.Data;\npublic static class Store { public static void Save(int x) { } }\n",
    }
    calls = {("Counter.razor", "Counter.razor::Add"): 2, ("Counter.razor::Add", "Store.cs::Store.Save"): 4}
    assert edges(graph_of(tmp_path, files), "calls") == calls


def test_a_template_calls_what_it_defines_and_loads(tmp_path):
    files = {"show.html.erb": "<% def row(a) %>\n<% end %>\n<%= row(1) %>\n"}
    assert edges(graph_of(tmp_path, files), "calls") == {("show.html.erb", "show.html.erb::row"): 3}


def test_a_file_that_names_no_script_has_no_problem(tmp_path):
    graph = graph_of(tmp_path, {"a.vue": "<template><p/></template>\n", "b.html": "<p>text</p>\n"})
    assert not graph.problems
