import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docindex_dagster.documents.load import load_document
from docindex_dagster.documents.model import Block, Document

FIXTURES = Path(__file__).parent.parent / "fixtures" / "documents"
LOADERS = ("markdown", "mdx", "rst", "html", "text", "notebook", "asciidoc")
UNTRANSFORMED = ("markdown", "text", "asciidoc")


def load(name: str, loader: str) -> tuple[str, Document]:
    text = (FIXTURES / name).read_text(encoding="utf-8")
    return text, load_document(text, name, loader)


def blocks(document: Document) -> list[Block]:
    return [block for section in document.sections for block in section.blocks]


def outline(document: Document) -> list[tuple[str, ...]]:
    return [section.heading_path for section in document.sections]


def rendered(document: Document) -> str:
    return "".join(block.text for block in blocks(document))


def block_with(document: Document, words: str) -> Block:
    return next(block for block in blocks(document) if words in block.text)


def code(document: Document) -> list[str]:
    return [block.text.rstrip() for block in blocks(document) if block.kind == "code"]


class TestMarkdown:
    def test_headings_of_both_kinds_make_the_outline_and_those_in_code_or_quotes_do_not(self):
        _, document = load("guide.md", "markdown")
        assert outline(document) == [
            (),
            ("Deploying Quill",),
            ("Deploying Quill", "Requirements"),
            ("Deploying Quill", "Installation"),
            ("Deploying Quill", "Installation", "Upgrading"),
            ("Configuration",),
            ("Configuration", "The [queue] table"),
        ]

    def test_front_matter_is_metadata_and_names_the_document(self):
        _, document = load("guide.md", "markdown")
        assert document.title == "Deploying Quill"
        assert document.front_matter is not None
        assert "How to run Quill" in document.front_matter
        assert blocks(document)[0].kind == "front_matter"

    def test_a_fence_is_one_block_even_in_a_list(self):
        _, document = load("guide.md", "markdown")
        toml = block_with(document, "[queue]\n")
        assert (toml.kind, toml.start_line, toml.end_line) == ("code", 31, 36)
        assert [block.kind for block in blocks(document)].count("code") == 4
        assert "```\n# still code\n```" in block_with(document, "still code").text

    def test_a_table_is_one_block(self):
        _, document = load("guide.md", "markdown")
        table = block_with(document, "CPython only")
        assert table.kind == "table"
        assert "Redis" in table.text

    def test_blocks_are_spans_of_the_file(self):
        text, document = load("guide.md", "markdown")
        data = text.encode()
        assert rendered(document) == text
        for block in blocks(document):
            assert data[block.start_byte : block.end_byte].decode() == block.text
            assert block.start_line == 1 + data[: block.start_byte].count(b"\n")

    def test_a_byte_order_mark_hides_no_heading(self):
        document = load_document("\ufeff# Title\n\ntext\n", "a.md", "markdown")
        assert outline(document) == [("Title",)]
        assert rendered(document).startswith("\ufeff# Title")

    @pytest.mark.parametrize("line_end", ["\r\n", "\r", "\n"])
    def test_every_line_end_is_a_line_end(self, line_end):
        text = line_end.join(["# A", "", "text", "", "## B", "", "more", ""])
        document = load_document(text, "a.md", "markdown")
        assert outline(document) == [("A",), ("A", "B")]
        assert rendered(document) == text

    def test_an_unclosed_fence_reaches_to_the_end(self):
        document = load_document("# A\n\n```\n# B\n\n# C\n", "a.md", "markdown")
        assert outline(document) == [("A",)]

    @pytest.mark.parametrize(
        ("source", "title"),
        [
            ("Use `pip` and **more**", "Use pip and more"),
            ("[Link](http://a.b) to ![alt](c.png)", "Link to alt"),
            ("Install {#install-id}", "Install"),
            ("Dependencies { #dependencies }", "Dependencies"),
            ("Use `pip` {: #pip }", "Use pip"),
            ("Wide {.wide lang=en title='a b'}", "Wide {.wide lang=en title='a b'}"),
            ('Wide {#wide .wide lang=en title="a b"} ##', "Wide"),
            ("A set {x}", "A set {x}"),
            ("Users at /users/{id}", "Users at /users/{id}"),
            ("Written \\{#so}", "Written {#so}"),
            ("Shown `{#so}`", "Shown {#so}"),
            ("Fill {{ name }}", "Fill {{ name }}"),
            ("Rendered {% raw %}", "Rendered {% raw %}"),
            ('<a name="x"></a> Anchored', "Anchored"),
            ("Trailing marks ##", "Trailing marks"),
        ],
    )
    def test_a_title_is_the_text_of_its_heading(self, source, title):
        assert outline(load_document(f"## {source}\n", "a.md", "markdown")) == [(title,)]

    def test_an_absurd_heading_is_cut_in_the_path_and_whole_in_the_text(self):
        text = "# " + "word " * 10_000
        document = load_document(text, "a.md", "markdown")
        assert len(document.sections[0].heading_path[0]) <= 200
        assert rendered(document) == text


class TestMdx:
    def test_javascript_goes_and_prose_in_components_stays(self):
        _, document = load("tabs.mdx", "mdx")
        text = rendered(document)
        for gone in ("@theme", "Grid", "versions", "Badge", "groupId", "label", "TabItem", "Editors", "in step", "<b>"):
            assert gone not in text
        for kept in ("Use your package manager", "Check the *version*", "- second bold point", "If 1 < 2 then"):
            assert kept in text
        assert "`<Device>`" in text
        assert "we import goods by sea" in text
        assert document.transformed

    def test_fences_are_untouched(self):
        _, document = load("tabs.mdx", "mdx")
        (fence,) = code(document)
        assert "    import Quill from 'quill';\n\n    <Quill onReady={() => start()} />" in fence

    def test_headings_in_components_count_and_lines_are_those_of_the_file(self):
        text, document = load("tabs.mdx", "mdx")
        assert outline(document) == [(), ("Quick start",), ("Quick start", "After installing")]
        lines = text.split("\n")
        for words in ("Use your package manager", "## After installing", "- second", "# Quick start"):
            block = block_with(document, words)
            assert words.split()[-1] in lines[block.start_line - 1]
            assert block.start_byte is None

    def test_a_statement_that_never_ends_takes_only_its_paragraph(self):
        document = load_document("import {\n\n# Title\n\nProse.\n", "a.mdx", "mdx")
        assert outline(document) == [("Title",)]


class TestRst:
    def test_sections_follow_the_order_of_underlines(self):
        _, document = load("api.rst", "rst")
        assert outline(document) == [
            ("API Reference",),
            ("API Reference", "Queues"),
            ("API Reference", "Queues", "Examples"),
            ("API Reference", "Queues", "Examples", "Unknown things"),
            ("API Reference", "Glossary"),
        ]
        assert document.title == "API Reference"
        assert document.fallback is None

    def test_roles_become_their_text(self):
        _, document = load("api.rst", "rst")
        text = rendered(document)
        assert "the interfaces of `quill.Queue` and its friends" in text
        assert "the guide or /install; `quill.toml`" in text
        assert "Nested prose with inner words stays." in text

    def test_directives_keep_their_words(self):
        _, document = load("api.rst", "rst")
        text = rendered(document)
        assert "note: Workers are not thread safe.\n\nStart one for each thread." in text
        assert "autoclass: Queue\n\nmembers: put, get" in text
        assert "py:method: Queue.put(job, *, delay=0, **options)\nQueue.put_many(jobs)" in text
        assert "versionadded: 2.1\n\nThe `delay` argument." in text
        assert "deprecated: 3.0 Use `Queue.send`." in text
        assert "frobnicate: sideways\n\nspeed: ludicrous\n\nNested prose" in text
        assert "- bullet one\n  1. numbered deep\n- bullet two" in text

    def test_code_becomes_fences_with_its_language(self):
        _, document = load("api.rst", "rst")
        fences = code(document)
        assert (
            '```python\nfrom quill import Queue\n\n# not a heading\nqueue = Queue("redis://localhost")\n```' in fences
        )
        assert "```\n$ quill worker\n```" in fences
        assert "```mermaid\ngraph TD; Producer-->Worker;\n```" in fences
        assert "```html\n<blink>vintage</blink>\n```" in fences

    def test_code_that_holds_a_fence_gets_a_longer_one(self):
        document = load_document(".. code-block:: markdown\n\n   ```\n   x\n   ```\n", "a.rst", "rst")
        assert code(document) == ["````markdown\n```\nx\n```\n````"]

    def test_no_file_is_included_and_no_message_is_shown(self, capfd):
        _, document = load("api.rst", "rst")
        text = rendered(document)
        assert "include: ../../../etc/passwd" in text
        assert "root:" not in text
        for word in ("System Message", "Unknown", "WARNING", "start-string"):
            assert word not in text.replace("Unknown things", "")
        assert capfd.readouterr() == ("", "")

    def test_no_prose_is_lost(self):
        text, document = load("api.rst", "rst")
        markup = (
            "param type class ref doc meth weird role project replace raw _api reference code block list table caption"
        )
        layout = "maxdepth header rows emphasize lines inherited"
        words = set(re.findall(r"\w+", text)) - set(f"{markup} {layout}".split())
        assert words <= set(re.findall(r"\w+", rendered(document)))

    def test_blocks_begin_on_the_lines_where_they_stand(self):
        text, document = load("api.rst", "rst")
        lines = text.split("\n")
        for words in (
            "API Reference",
            "This part covers",
            "Adds job",
            "Examples",
            "from quill",
            "numbered deep",
            "Its definition",
            "The end",
        ):
            block = block_with(document, words)
            assert words.split()[-1] in "\n".join(lines[block.start_line - 1 : block.end_line])
            assert block.start_line in range(1, len(lines) + 1)

    def test_a_form_feed_is_no_line_of_the_file(self):
        document = load_document("first\n\n\f\n\nsecond\n", "a.rst", "rst")
        assert [block.start_line for block in blocks(document)] == [1, 5]

    def test_documents_do_not_see_each_other(self):
        defining = ".. role:: shout\n   :class: loud\n\n.. default-role:: shout\n\n:shout:`one` `two`\n"
        using = ":shout:`three` and `four`\n"
        before = rendered(load_document(using, "b.rst", "rst"))
        load_document(defining, "a.rst", "rst")
        assert rendered(load_document(using, "b.rst", "rst")) == before == "three and four\n\n"

    def test_docutils_itself_is_left_as_it_was(self):
        from docutils.core import publish_string
        from docutils.parsers.rst import directives, roles

        load_document(".. note:: ours\n\n:thing:`x`\n", "a.rst", "rst")
        assert "thing" not in vars(roles)["_roles"]
        assert "frobnicate" not in vars(directives)["_directives"]
        assert b"<note>" in publish_string(".. note:: theirs\n\n   * more", writer="pseudoxml")

    @pytest.mark.parametrize(
        "text",
        [
            "Title\n===\n\ntext\n",
            "====\nTitle\n---\n\nkept\n",
            "+---+\n| broken | grid\n+---+\n\nkept\n",
            "=== ===\nbroken simple\n=== ===\nkept\n",
            "A\n=\n\nB\n-\n\nC\n~\n\nD\n=\n\nE\n~\n\nkept\n",
            ".. note::\n   Title\n   =====\n\n   kept\n",
            ".. |broken| image\n\nkept\n",
            "* item\nkept without blank\n",
        ],
    )
    def test_errors_lose_no_words(self, text):
        document = load_document(text, "a.rst", "rst")
        assert set(re.findall(r"\w+", text)) <= set(re.findall(r"\w+", rendered(document)))


class TestHtml:
    def test_the_main_content_is_read_and_nothing_else(self):
        _, document = load("page.html", "html")
        text = rendered(document)
        for gone in ("home", "tracker", "color", "injected", "Previous", "Copyright", "¶"):
            assert gone not in text
        assert document.title == "Workers — Quill"
        assert outline(document) == [("Workers",), ("Workers", "Running a worker")]

    def test_text_is_written_as_markdown(self):
        _, document = load("page.html", "html")
        text = rendered(document)
        assert "A worker takes jobs from `queue` & runs them one by one.\nIt never sleeps." in text
        assert "1. Start Redis.\n2. Start the worker:\n  - with systemd\n  - by hand" in text
        assert "| Signal | Meaning |\n| TERM | finish first |" in text

    def test_preformatted_text_is_verbatim(self):
        _, document = load("page.html", "html")
        assert code(document) == ['```python\ndef run(queue):\n    while True:\n        queue.get()("<arg>")\n```']

    def test_lines_are_found_in_the_file(self):
        text, document = load("page.html", "html")
        lines = text.split("\n")
        for words in ("Workers", "worker takes", "Running a worker", "with systemd", "def run", "Meaning", "drain"):
            assert words in lines[block_with(document, words).start_line - 1]

    def test_a_page_without_main_loses_its_furniture(self):
        text = "<body><header>Site</header><aside>Links</aside><div><p>Text.</p><p>More.</p></div><footer>End</footer>"
        assert rendered(load_document(text, "a.html", "html")) == "Text.\n\nMore.\n\n"

    def test_a_caption_belongs_to_its_table(self):
        text = "<main><table><caption>Limits</caption><tr><td>a</td><td>b</td></tr></table></main>"
        assert rendered(load_document(text, "a.html", "html")) == "| Limits |\n| a | b |\n\n"

    def test_code_in_a_layout_table_stays_code(self):
        text = (
            '<main><table><tr><td class="linenos"><pre>1\n2</pre></td>'
            '<td class="code"><pre>a\n  b</pre></td></tr></table></main>'
        )
        assert code(load_document(text, "a.html", "html")) == ["```\na\n  b\n```"]

    def test_a_page_without_text_is_still_covered(self):
        document = load_document("<script>x()</script>", "a.html", "html")
        assert rendered(document) == "<script>x()</script>"
        assert document.fallback == "html loader found no text"


class TestNotebook:
    def test_cells_become_sections_and_outputs_are_dropped(self):
        _, document = load("analysis.ipynb", "notebook")
        assert outline(document) == [("Latency study",), ("Latency study", "Data")]
        assert code(document) == ['```python\nimport pandas as pd\nframe = pd.read_csv("latency.csv")\n```']
        text = rendered(document)
        assert 'We measure "queue" latency.' in text
        assert "Raw remark." in text
        assert "secret" not in text

    def test_lines_are_those_of_the_json_file(self):
        text, document = load("analysis.ipynb", "notebook")
        lines = text.split("\n")
        for words in ("# Latency", "We measure", "## Data", "Raw remark"):
            assert words in lines[block_with(document, words).start_line - 1]
        fence = block_with(document, "import pandas")
        assert "import pandas" in lines[fence.start_line - 1]
        assert "read_csv" in lines[fence.end_line - 1]

    def test_a_notebook_of_the_third_format_has_its_cells_in_worksheets(self):
        cells = [
            {"cell_type": "heading", "level": 2, "source": ["Pumps"]},
            {"cell_type": "markdown", "source": ["How they *start*.\n"]},
            {"cell_type": "code", "language": "python", "input": ["valve.open()\n"], "outputs": [{"text": ["secret"]}]},
        ]
        text = json.dumps({"nbformat": 3, "metadata": {}, "worksheets": [{"cells": cells[:1]}, {"cells": cells[1:]}]})

        document = load_document(text, "a.ipynb", "notebook")

        assert document.fallback is None
        assert outline(document) == [("Pumps",)]
        assert code(document) == ["```python\nvalve.open()\n```"]
        assert "How they *start*." in rendered(document)
        assert "secret" not in rendered(document)

    @pytest.mark.parametrize(
        "notebook",
        [
            {"cells": [], "metadata": {}, "nbformat": 4},
            {"worksheets": [], "metadata": {"name": ""}, "nbformat": 3},
            {"cells": [{"cell_type": "code", "source": [], "outputs": [{"data": {"text/plain": "secret"}}]}]},
        ],
    )
    def test_an_empty_notebook_has_no_text(self, notebook):
        document = load_document(json.dumps(notebook, indent=1), "a.ipynb", "notebook")

        assert document.fallback is None
        assert rendered(document) == ""

    @pytest.mark.parametrize("text", ["{", "[]", "null", '{"cells": 3}', "[" * 100_000])
    def test_what_is_no_notebook_is_read_as_text(self, text):
        document = load_document(text, "a.ipynb", "notebook")
        assert rendered(document) == text
        assert document.fallback is not None

    def test_half_a_surrogate_pair_is_replaced(self):
        text = '{"cells": [{"cell_type": "markdown", "source": "a \\ud800 b"}]}'
        rendered(load_document(text, "a.ipynb", "notebook")).encode()


class TestTextAndAsciiDoc:
    def test_text_has_paragraphs_and_no_headings(self):
        text, document = load("notes.txt", "text")
        assert outline(document) == [()]
        assert [(block.start_line, block.end_line) for block in blocks(document)] == [(1, 2), (3, 6), (7, 10), (11, 11)]
        assert rendered(document) == text
        assert not document.structured

    def test_asciidoc_headings_outside_listings_make_the_outline(self):
        text, document = load("manual.adoc", "asciidoc")
        assert outline(document) == [
            ("Quill manual",),
            ("Quill manual", "Usage"),
            ("Quill manual", "Usage", "Options"),
        ]
        assert "== not a heading" in block_with(document, "quill worker").text
        assert rendered(document) == text


def test_an_unknown_loader_is_an_error_of_the_caller():
    with pytest.raises(ValueError, match="unknown loader 'word'"):
        load_document("x", "a.docx", "word")


MARKUP = st.text(st.sampled_from("ab \n\n#=-`~>*_[]()<>{}/\\|:.!\"'\t\r1é😀"), max_size=120)


@given(st.one_of(st.text(max_size=200), MARKUP), st.sampled_from(LOADERS))
@settings(max_examples=400, deadline=None)
def test_any_text_loads_with_any_loader(text, loader):
    document = load_document(text, "file", loader)
    lines = text.count("\n") + 1
    for block in blocks(document):
        assert 1 <= block.start_line <= block.end_line <= lines
    if loader in UNTRANSFORMED:
        assert document.fallback is None
        assert rendered(document) == text
    else:
        assert all(block.start_byte is None for block in blocks(document)) or document.fallback
    assert load_document(text, "file", loader) == document


HOSTILE = {
    "quotes": ">" * 10_000 + " x",
    "bullets on one line": "- " * 10_000 + "x",
    "indented bullets": "\n".join("  " * depth + "- a" for depth in range(700)),
    "indented quotes": "\n\n".join(" " * depth + "a" for depth in range(700)),
    "tags": "<div>" * 10_000 + "x" + "</div>" * 10_000,
    "formatting tags": "".join(f"<b a={number}><p>" for number in range(10_000)),
    "one line": "x" * 2**20,
    "one line of words": "word " * 200_000,
    "dots": "." * 2**20,
    "brackets": "[" * 100_000,
    "backticks": "".join("`" * length + " " for length in range(800)),
    "braces": "<A x={" * 30_000,
    "stars": "*a " * 30_000,
    "spaces": "a" + " " * 2**20 + "b",
}


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_file_is_read_in_moments(text, loader):
    import time

    start = time.perf_counter()
    document = load_document(text, "file", loader)
    assert time.perf_counter() - start < 10
    if loader in UNTRANSFORMED:
        assert rendered(document) == text
    else:
        assert rendered(document).strip()


LATEX = r"""\documentclass{article}
\title{Pumps}
\section{Start}
\label{start}
Open.
\subsection*{Valves \emph{new}}
\begin{verbatim}
\section{no}
\end{verbatim}
\section[Short]{The stop}% why
"""
LATEX_BOOK = r"""\chapter{One}
\section{Two}\label{two}
\chapter{Three}
"""
ORG = """#+TITLE: Pumps
* TODO Start :tag:
** Valves
#+BEGIN_SRC org
* no
#+END_SRC
* [#A] Stop
*bold* text
"""
POD = """=pod

=head1 NAME

=head2 open(%x)

=cut
"""
MEDIAWIKI = """Intro
== Start ==
=== Valves ===
<pre>
== no ==
</pre>
== Stop == <!-- why -->
a = b
"""
MAN = r""".\" comment
.TH PUMP 1 "May 2024"
.SH NAME
pump \- starts
.SS "Open valves"
.SH OPTIONS
"""
MDOC = """.Dd May 1
.Dt PUMP 8
.Sh NAME
.Nm pump
.Sh DESCRIPTION
"""


class TestLineMarkup:
    """Line-based headings of LaTeX, Org, POD, MediaWiki, AsciiDoc and man pages."""

    @pytest.mark.parametrize(
        ("path", "text", "expected"),
        [
            ("a.tex", LATEX, ["Pumps", "Pumps > Start", r"Pumps > Start > Valves \emph{new}", "Pumps > The stop"]),
            ("b.tex", LATEX_BOOK, ["One", "One > Two", "Three"]),
            ("a.org", ORG, ["Start", "Start > Valves", "Stop"]),
            ("a.pod", POD, ["NAME", "NAME > open(%x)"]),
            ("a.mediawiki", MEDIAWIKI, ["Start", "Start > Valves", "Stop"]),
            ("pump.1", MAN, ["PUMP 1", "PUMP 1 > NAME", "PUMP 1 > NAME > Open valves", "PUMP 1 > OPTIONS"]),
            ("pump.8", MDOC, ["PUMP 8", "PUMP 8 > NAME", "PUMP 8 > DESCRIPTION"]),
        ],
    )
    def test_headings_make_the_outline_and_those_in_verbatim_blocks_do_not(self, path, text, expected):
        document = load_document(text, path, "text")

        assert [" > ".join(titles) for titles in outline(document) if titles] == expected
        assert document.structured
        assert rendered(document) == text

    @pytest.mark.parametrize(
        "text",
        [
            "Pumps\n=====\n\nText.\n\nStart\n-----\n\nOpen.\n\nValves\n~~~~~~\n\nx\n",
            "# Pumps\n\nText.\n\n## Start\n\n----\n## no\n----\n\n### Valves\n\nx\n",
        ],
    )
    def test_asciidoc_also_underlines_titles_and_takes_number_signs(self, text):
        document = load_document(text, "a.adoc", "asciidoc")

        assert outline(document) == [("Pumps",), ("Pumps", "Start"), ("Pumps", "Start", "Valves")]
        assert rendered(document) == text

    @pytest.mark.parametrize(
        ("path", "text"), [("a.txt", "== Not a title ==\n* item\n"), ("a.1", "1.0\n"), ("a.tex", "x\n")]
    )
    def test_other_text_stays_without_structure(self, path, text):
        assert not load_document(text, path, "text").structured
