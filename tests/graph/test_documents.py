"""Links and mentions in documents, and their targets when graphs are opened."""

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docindex_dagster.chunking.chunker import Sizes
from docindex_dagster.graph.cross_references import anchor_of
from docindex_dagster.graph.document_text import read_prose
from docindex_dagster.graph.open_graph import OpenGraph, open_graphs
from docindex_dagster.graph.source_graph import stray_edges
from tests.graph.built import build_graph, update_graph
from tests.graph.samples import KEY, chunks_of, edges, graph_of, opened

CODE = "class Queue:\n    def put(self, job):\n        return job\n\n\ndef make_queue():\n    return Queue()\n"


def links(files: dict[str, str]) -> set[str]:
    return {target for _, _, target in edges(opened(files), "links_to")}


def mentions(text: str, code: str = CODE, path: str = "quill/queue.py") -> set[str]:
    return {target for _, _, target in edges(opened({"a.md": text, path: code}), "mentions")}


# Links


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("[x](b.md)", "docs/b.md"),
        ("[x](./b.md)", "docs/b.md"),
        ("[x](<b.md> 'with a title')", "docs/b.md"),
        ("[x](b)", "docs/b.md"),
        ("[x](b.html)", "docs/b.md"),
        ("[x](../README.md)", "README.md"),
        ("[x](../src/app.py)", "src/app.py"),
        ("[x](deep)", "docs/deep/index.md"),
        ("[x](deep/)", "docs/deep/index.md"),
        ("[x](/docs/b)", "docs/b.md"),
        ("[x](/b)", "docs/b.md"),
        ("[x](b.md#how-it-works)", "docs/b.md#B > How it works?"),
        ("[x](b.md#nowhere)", "docs/b.md"),
        ("[x][later]\n\n[later]: b.md", "docs/b.md"),
        ("[x](https://Ada:secret@Example.com/a/?token=1#part)", "external:https://example.com/a"),
        ("<https://example.com:8080/b>", "external:https://example.com:8080/b"),
        ("[x](gone.md)", "link:docs/gone.md"),
    ],
)
def test_a_link_leads_to_a_file_a_heading_or_the_web(link, target):
    files = {
        "docs/a.md": f"# A\n\nSee {link}\n",
        "docs/b.md": "# B\n\nText.\n\n## How it works?\n\nThus.\n",
        "docs/deep/index.md": "# Deep\n",
        "README.md": "# Read me\n",
        "src/app.py": CODE,
    }

    assert links(files) == {target}


@pytest.mark.parametrize(
    "text",
    ["[x](../../etc/passwd)", "[x](mailto:a@b.c)", "[x](//host/a)", "[`x`](crate::x)", "`[x](b.md)`", "![x](b.md)"],
)
def test_what_leads_neither_into_the_source_nor_to_the_web_is_no_link(text):
    assert links({"docs/a.md": text + "\n", "docs/b.md": "# B\n"}) == set()


def test_what_looks_like_a_link_in_code_is_none():
    assert links({"a.md": "# A\n\n```md\n[x](b.md)\n```\n\n    [x](b.md)\n", "b.md": "# B\n"}) == set()


def test_the_second_part_of_a_long_code_block_is_code():
    lines = "".join(f"echo [x](b.md) number {number} of many lines\n" for number in range(60))
    text = f"# A\n\nFirst.\n\n```\n{lines}```\n\nRead [this](c.md).\n"
    chunks = chunks_of({"a.md": text, "b.md": "# B\n", "c.md": "# C\n"}, sizes=Sizes(64, 0, 128, 0))
    assert max(chunks["part_number"].to_pylist(), key=lambda number: number or 0) > 2

    found = edges(open_graphs({KEY: build_graph(chunks)}), "links_to")

    assert {target for _, _, target in found} == {"c.md"}


def test_headings_of_the_same_title_have_numbered_anchors():
    files = {"a.md": "[x](b.md#use-1)\n", "b.md": "# B\n\n## One\n\n### Use\n\n1\n\n## Two\n\n### Use\n\n2\n"}

    assert links(files) == {"b.md#B > Two > Use"}


@pytest.mark.parametrize("heading", ["Use {#run}", "Use { #run .wide }", "Use {: #run}", 'Use {title="a b" #run}'])
@pytest.mark.parametrize("name", ["b.md", "b.mdx"])
def test_the_attribute_list_of_a_heading_names_its_anchor(heading, name):
    files = {"a.md": f"[x]({name}#run)\n", name: f"# B\n\n## {heading}\n\nText.\n\n## Run\n\nMore.\n"}

    assert links(files) == {f"{name}#B > Use"}


@pytest.mark.parametrize(
    ("title", "anchor"),
    [("How it works?", "how-it-works"), ("`make_queue()`", "make_queue"), ("C++ & Rust", "c--rust"), ("Über", "über")],
)
def test_anchors_are_those_of_github(title, anchor):
    assert anchor_of(title) == anchor


def test_a_link_to_nothing_stays_and_says_so():
    graph = opened({"a.md": "# A\n\n[x](gone.md)\n"})

    (edge,) = [row for row in graph.edges.to_pylist() if row["predicate"] == "links_to"]
    assert edge["confidence"] == 0
    assert edge["resolution"] == "unresolved: no such file"


# Links in reStructuredText and HTML, whose text does not show them

OTHERS = {
    "docs/b.rst": "B\n=\n\n.. _how it-works:\n.. _how:\n\nHow it works?\n-------------\n\nThus.\n",
    "docs/deep/index.rst": "Deep\n====\n",
    "docs/c.html": '<h1>C</h1><p>x</p><h2 id="C-1">How</h2><p>y <a name="late"></a>z</p><h2 id="a%20b">Why not</h2>',
    "README.md": "# Read me\n",
    "src/app.py": CODE,
}


def links_of(path: str, text: str) -> set[str]:
    return links({path: text, **OTHERS})


@pytest.mark.parametrize(
    ("text", "target"),
    [
        (":doc:`b`", "docs/b.rst"),
        (":doc:`the other <b>`", "docs/b.rst"),
        (":doc:`/b`", "docs/b.rst"),
        (":std:doc:`deep/index`", "docs/deep/index.rst"),
        (":download:`../src/app.py`", "src/app.py"),
        (":ref:`how it-works`", "docs/b.rst#B > How it works?"),
        (":ref:`Thus <How>`", "docs/b.rst#B > How it works?"),
        (":numref:`how`", "docs/b.rst#B > How it works?"),
        (":ref:`nowhere`", "link:#nowhere"),
        (":doc:`gone`", "link:docs/gone"),
        ("`text <b.rst>`_", "docs/b.rst"),
        ("`text <b.html#how-it-works>`_", "docs/b.rst#B > How it works?"),
        ("`over two\nlines <c.html>`__", "docs/c.html"),
        ("`text <later_>`_\n\n.. _later: ../README.md", "README.md"),
        ("later_\n\n.. _later: sooner_\n.. _sooner: ../README.md", "README.md"),
        ("`one`__\n\n__ b.rst", "docs/b.rst"),
        ("`Part two`_\n\nPart two\n--------\n\nx", "docs/a.rst#A > Part two"),
        ("here_\n\n.. _here:\n\nPart two\n--------\n\nx", "docs/a.rst#A > Part two"),
        ("unknown_", "link:#unknown"),
        ("https://example.com/a/?b=1#c", "external:https://example.com/a"),
        (".. toctree::\n   :maxdepth: 1\n\n   b", "docs/b.rst"),
        (".. toctree::\n\n   self\n   Deep <deep/index>", "docs/deep/index.rst"),
        (".. toctree::\n   :glob:\n\n   deep/*", "link:docs/deep/*"),
        (".. note:: See `text <b.rst>`_.", "docs/b.rst"),
        ("| a\n| `text <b.rst>`_", "docs/b.rst"),
        ("=  =====================\na  `text <../README.md>`_\n=  =====================", "README.md"),
    ],
)
def test_a_link_in_restructuredtext_leads_where_the_same_one_in_markdown_does(text, target):
    assert links_of("docs/a.rst", f"A\n=\n\n{text}\n") == {target}


@pytest.mark.parametrize(
    "text", [":ref:`!how`", ":class:`Queue`", "``b_``", "::\n\n  `text <b.rst>`_", ".. code::\n\n   b_", "b\\_"]
)
def test_what_looks_like_a_link_in_restructuredtext_is_none(text):
    assert links_of("docs/a.rst", f"A\n=\n\n{text}\n") == set()


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ('<p><a href="b.html">x</a></p>', "docs/b.rst"),
        ('<p><a href="b.html#how">x</a></p>', "docs/b.rst#B > How it works?"),
        ('<p><a href="c.html#c-1">x</a></p>', "docs/c.html#C > How"),
        ('<p><a href="c.html#late">x</a></p>', "docs/c.html#C > How"),
        ('<p><a href="c.html#why-not">x</a></p>', "docs/c.html#C > Why not"),
        ('<p><a href="c.html#nowhere">x</a></p>', "docs/c.html"),
        ('<p><a href="c.html#a%20b">x</a></p>', "docs/c.html#C > Why not"),
        ('<p><a href=" deep/ ">x</a></p>', "docs/deep/index.rst"),
        ('<h2><a href="/b">x</a></h2>', "docs/b.rst"),
        ('<table><tr><td><a href="../src/app.py">x</a></td></tr></table>', "src/app.py"),
        ('<pre><a href="b.rst">x</a></pre>', "docs/b.rst"),
        ('<a href="b.rst"><img src="b.png"></a><p>x</p>', "docs/b.rst"),
        ('<p><a href="https://a.b/c?d=1&amp;e=2">x</a></p>', "external:https://a.b/c"),
        ('<p><a href="gone.html">x</a></p>', "link:docs/gone.html"),
    ],
)
def test_a_link_in_html_leads_where_the_same_one_in_markdown_does(text, target):
    assert links_of("docs/a.html", f"<html><body><h1>A</h1>{text}</body></html>") == {target}


@pytest.mark.parametrize(
    "text",
    [
        '<nav><a href="b.html">x</a></nav>',
        '<h2>x <a class="headerlink" href="b.html">#</a></h2>',
        '<p><a href="mailto:a@b.c">x</a><a href="javascript:b()">y</a><a>z</a></p>',
    ],
)
def test_page_furniture_and_other_schemes_are_no_links(text):
    assert links_of("docs/a.html", f"<html><body><h1>A</h1>{text}</body></html>") == set()


def test_the_links_of_the_markdown_in_a_notebook_are_links():
    cell = {"cell_type": "markdown", "source": ["# A\n", "\n", "See [this](b.rst).\n"]}

    assert links_of("docs/a.ipynb", json.dumps({"cells": [cell]}, indent=1)) == {"docs/b.rst"}


@pytest.mark.parametrize(
    ("text", "resolution"),
    [
        (":doc:`gone`", "unresolved: no such file"),
        (":ref:`nowhere`", "unresolved: no such label"),
        (":ref:`twice`", "unresolved: several places with this label"),
        (".. toctree::\n\n   part/*", "unresolved: a pattern of names"),
    ],
)
def test_a_link_to_nothing_says_why(text, resolution):
    labelled = ".. _twice:\n\nB\n=\n"
    graph = opened({"a.rst": f"A\n=\n\n{text}\n", "b.rst": labelled, "c.rst": labelled})

    (edge,) = [row for row in graph.edges.to_pylist() if row["predicate"] == "links_to"]
    assert (edge["confidence"], edge["resolution"]) == (0, resolution)


def test_labels_and_anchors_are_no_nodes_of_an_open_graph():
    graph = opened({"a.rst": ".. _a:\n\nA\n=\n", "b.html": '<h1 id="b">B</h1>'})

    assert set(graph.types) == {"file", "section"}


# Mentions


@pytest.mark.parametrize(
    ("code", "symbol"),
    [
        ("Queue", "Queue"),
        ("Queue.put", "Queue.put"),
        ("Queue#put", "Queue.put"),
        ("Queue::put()", "Queue.put"),
        ("put(job, *, delay=0)", "Queue.put"),
        ("quill.queue.Queue", "Queue"),
        ("quill.Queue", "Queue"),
        ("make_queue()", "make_queue"),
    ],
)
def test_a_name_in_code_font_mentions_the_symbol(code, symbol):
    assert mentions(f"Use `{code}`.\n") == {f"quill/queue.py::{symbol}"}


@pytest.mark.parametrize(
    "code", ["put", "--put", "queue", "Queue put", "Other.put", "make_queue | sort", "x = Queue()"]
)
def test_what_may_mean_something_else_mentions_nothing(code):
    assert mentions(f"Use `{code}`.\n") == set()


def test_names_outside_of_code_font_and_in_code_blocks_are_no_mentions():
    assert mentions("# Queue\n\nThe Queue.\n\n```python\nqueue = Queue()\n```\n") == set()


def test_a_name_of_several_symbols_mentions_none_of_them():
    text = "Use `Queue`.\n"
    assert edges(opened({"a.md": text, "x.py": CODE, "y.py": CODE}), "mentions") == set()


def test_symbols_of_tests_are_not_meant():
    found = edges(opened({"a.md": "Use `Queue`.\n", "x.py": CODE, "tests/test_x.py": CODE}), "mentions")

    assert found == {("a.md", "mentions", "x.py::Queue")}


def test_a_path_in_code_font_mentions_the_file():
    assert mentions("See `quill/queue.py`, or `queue.py`.\n") == {"quill/queue.py"}


def test_roles_of_sphinx_mention_symbols():
    found = edges(opened({"a.rst": "Title\n=====\n\nUse :class:`~quill.Queue`.\n", "quill/queue.py": CODE}), "mentions")

    assert found == {("a.rst#Title", "mentions", "quill/queue.py::Queue")}


def across(text: str, *sources: str) -> OpenGraph:
    graphs = {"library/docs": graph_of({"a.md": text}, "library/docs")}
    return open_graphs(graphs | {source: graph_of({"quill/queue.py": CODE}, source) for source in sources})


def mentioned(graph: OpenGraph) -> list[tuple[str, float]]:
    return [
        (graph.ids[row["object"]], round(row["confidence"], 2))
        for row in graph.edges.to_pylist()
        if row["predicate"] == "mentions"
    ]


def test_a_document_mentions_a_symbol_of_another_source():
    assert mentioned(across("Use `Queue`.\n", "library/quill")) == [("library/quill!quill/queue.py::Queue", 0.9)]


def test_a_branch_is_not_asked_beside_its_repository():
    graph = across("Use `Queue`.\n", "git/quill", "git/quill@dev")

    assert mentioned(graph) == [("git/quill!quill/queue.py::Queue", 0.9)]


def test_what_two_sources_define_is_not_guessed():
    graph = across("Use `Queue`.\n", "library/one", "library/two")

    assert mentioned(graph) == []
    assert not any("mention:" in name for name in graph.ids)


# Evidence, updates, and hostile text


def test_each_edge_says_where_it_stands():
    graph = graph_of({"a.md": "# A\n\nFirst\nline, then `Queue`\nand [b](b.md).\n"})

    found = [(row["predicate"], row["line"], row["subject"]) for row in graph.triples.to_pylist()]
    assert ("mentions", 4, "a.md#A") in found
    assert ("links_to", 5, "a.md#A") in found


RST = """\
A
=

First
`b <b.html>`_ and
`over two
lines <c.html>`_, then :ref:`d`.

.. note:: Text,
   :doc:`e`

.. toctree::

   f

Part
----

- g_
- `h
  <h.html>`_

.. _g: g.html
"""
HTML = """\
<html><body>
<nav><a href="b.html">b</a></nav>
<h1>A</h1>
<p>First
<a href="b.html">here</a>, and <em>then</em>
<a
href="c.html">here</a>, text.
</p>
<h2>Part</h2>
<ul>
<li><a href="d.html">here</a></li>
</ul>
</body></html>
"""


@pytest.mark.parametrize(
    ("path", "text", "references"),
    [
        (
            "a.rst",
            RST,
            {
                ("a.rst#A", "link:b.html", 5),
                ("a.rst#A", "link:c.html", 6),
                ("a.rst#A", "link:#d", 7),
                ("a.rst#A", "link:e", 10),
                ("a.rst#A", "link:f", 14),
                ("a.rst#A > Part", "link:g.html", 19),
                ("a.rst#A > Part", "link:h.html", 20),
            },
        ),
        (
            "a.html",
            HTML,
            {
                ("a.html#A", "link:b.html", 5),
                ("a.html#A", "link:c.html", 7),
                ("a.html#A > Part", "link:d.html", 11),
            },
        ),
    ],
)
def test_a_link_that_the_text_does_not_show_has_its_line_and_section(path, text, references):
    chunks = chunks_of({path: text})
    graph = build_graph(chunks)

    assert {
        (row["subject"], row["object"], row["line"])
        for row in graph.triples.to_pylist()
        if row["predicate"] == "links_to"
    } == references
    assert stray_edges(graph, chunks) == ""


def test_each_link_of_a_long_table_is_reported_once():
    rows = "".join(
        f"   * - row {number}\n     - `link <b{number}.html>`_ and many more words\n" for number in range(99)
    )
    chunks = chunks_of({"a.rst": f"A\n=\n\n.. list-table::\n\n{rows}"}, sizes=Sizes(64, 16, 128, 0))
    assert chunks.num_rows > 5

    references = [line for text in chunks["pointers"].to_pylist() if text for line in text.split("\n")]
    assert [fact.split("\t")[3] for fact in references] == [f"b{number}.html" for number in range(99)]
    assert references[98].split("\t")[0] == str(6 + 2 * 98 + 1)


WORDS = st.sampled_from(["# One\n\n", "## Two\n\n", "Use `Queue`. ", "See [b](b.md#two). ", "```\nx\n```\n", "\n\n"])
RST_WORDS = st.sampled_from(
    [".. _two:\n\n", "One\n---\n\n", "Two\n---\n\n", ":ref:`two`, :doc:`b`, `x <b.html#two>`_.\n\n", "two_\n\n"]
)
HTML_WORDS = st.sampled_from(['<h1 id="a">A</h1>', "<h2>Two</h2>", '<p>x <a href="b.md#two">y</a></p>', "<p>z</p>"])
DOCUMENTS = st.dictionaries(
    st.sampled_from(["a.md", "b.md", "c.md"]), st.lists(WORDS, min_size=1).map("".join)
).flatmap(
    lambda documents: st.fixed_dictionaries(
        {path: st.just(text) for path, text in documents.items()},
        optional={
            "d.rst": st.lists(RST_WORDS, min_size=1).map("".join),
            "e.html": st.lists(HTML_WORDS, min_size=1).map("".join),
        },
    )
)


@settings(max_examples=50)
@given(before=DOCUMENTS, after=DOCUMENTS)
def test_an_updated_graph_equals_one_that_was_extracted_from_nothing(before, after):
    old, new = chunks_of(before | {"q.py": CODE}), chunks_of(after | {"q.py": CODE})

    whole = build_graph(new)
    updated = update_graph(build_graph(old), new)

    assert updated.nodes.equals(whole.nodes)
    assert updated.triples.equals(whole.triples)
    assert stray_edges(whole, new) == ""


@given(st.text(alphabet="ab `*_[]()<>#|-!\n\\.:&{}\u00e9", max_size=400))
def test_any_text_can_be_read(text):
    prose: Any = read_prose(text, may_start_in_code=True)

    assert all(mark.line >= 0 for mark in (*prose.links, *prose.codes))


@pytest.mark.parametrize(
    "text", ["[" * 20_000, "`" * 20_000 + "a", "**a " * 10_000, "](" * 20_000, "> " * 20_000, "_a" * 20_000]
)
def test_hostile_text_takes_no_longer_than_its_length_allows(text):
    started = time.process_time()

    read_prose(text)

    assert time.process_time() - started < 10
