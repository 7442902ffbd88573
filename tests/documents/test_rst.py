"""reStructuredText features beyond `test_load.py`: all prose is kept, and all markup is removed."""

import time

import pytest

from docindex_dagster.documents.load import load_document
from docindex_dagster.documents.model import Block, Document


def load(text: str) -> Document:
    document = load_document(text, "a.rst", "rst")
    assert document.fallback is None
    return document


def blocks(text: str) -> list[Block]:
    return [block for section in load(text).sections for block in section.blocks]


def written(text: str) -> str:
    return "".join(block.text for block in blocks(text)).strip()


class TestLists:
    @pytest.mark.parametrize(
        ("source", "expected"),
        [
            ("* .. class:: wide\n\n  first", "- first"),
            ("* .. a comment\n\n  first\n\n  second", "- first\n  second"),
            (":Members:\n  .. class:: wide\n\n  :one: a\n  :two: b", "Members: one: a\n    two: b"),
            (":Alone:\n  .. a comment", "Alone:"),
            (":Empty:\n:Full: text", "Empty: \nFull: text"),
        ],
    )
    def test_a_marker_stands_before_the_first_text_even_if_markup_comes_first(self, source, expected):
        assert written(source) == expected

    def test_items_keep_their_letters_and_numbers(self):
        source = "c. see\n#. dee\n\n7. seven\n#. eight\n\n(xix) nineteen\n(xx) twenty\n\nI) one"
        expected = "c. see\nd. dee\n7. seven\n8. eight\nxix. nineteen\nxx. twenty\nI. one"
        assert written(source) == expected

    def test_classifiers_belong_to_their_term(self):
        term, definition = blocks("speed : float : optional\n   How fast.")
        assert (term.kind, term.text.strip()) == ("term", "speed : float : optional")
        assert definition.text.strip() == "How fast."

    def test_a_line_block_in_another_keeps_its_lines(self):
        assert written("| one\n|   two\n|   three") == "one\ntwo\nthree"


class TestFootnotes:
    def test_labels_and_references_stay_as_they_are_written(self):
        source = "See [#Why]_, [#]_, [*]_, [1]_ and [Knuth]_.\n\n"
        source += ".. [#Why] because\n.. [#] so\n.. [*] star\n.. [1] one\n.. [Knuth] book"
        assert written(source) == (
            "See [#Why], [#], [*], [1] and [Knuth].\n\n[#Why] because\n[#] so\n[*] star\n[1] one\n[Knuth] book"
        )


class TestSubstitutions:
    def test_the_text_stands_where_it_is_referred_to(self):
        source = (
            "Get |name| |tm|, |logo| by |who|.\n\n.. |name| replace:: Quill *Pro*\n.. |tm| unicode:: 0x2122 .. sign\n"
        )
        source += ".. |logo| image:: quill.png\n   :alt: a feather\n.. |who| image:: who.png"
        assert written(source) == "Get Quill Pro ™, a feather by who."

    def test_what_is_not_referred_to_stays(self):
        assert written(".. |name| replace:: Quill Pro\n.. |when| date:: %Y") == "name: Quill Pro\n\nwhen: %Y"

    def test_the_text_of_a_page_does_not_multiply(self):
        source = ".. |a| replace:: " + "word " * 1000 + "\n\n" + "|a| " * 1000
        assert len(written(source)) < 2 * len(source)


class TestDirectives:
    def test_code_may_follow_its_language_at_once(self):
        assert written(".. code-block:: c\n   int main(void);\n   /* end */") == "```c\nint main(void);\n/* end */\n```"

    @pytest.mark.parametrize(
        ("source", "expected"),
        [
            (".. highlight:: sql\n\nAsk::\n\n   select 1", "Ask:\n\n```sql\nselect 1\n```"),
            (".. code-block::\n   :language: toml\n\n   a = 1", "```toml\na = 1\n```"),
            (".. doctest::\n\n   >>> 1", "```python\n>>> 1\n```"),
            (
                ".. parsed-literal::\n\n   pip install **quill** |v|\n\n.. |v| replace:: 2",
                "```\npip install quill 2\n```",
            ),
        ],
    )
    def test_code_is_in_its_language(self, source, expected):
        assert written(source) == expected

    @pytest.mark.parametrize(
        "source",
        [
            ".. tabs::\n\n   .. container:: wide\n\n      Text.",
            ".. contents:: Here\n   :depth: 2\n\nText.",
            ".. rst-class:: wide\n\nText.",
            ".. grid:: 1 2\n   :gutter: 3\n\n   Text.",
            ".. only:: html\n\n   Text.",
            ".. role:: loud(strong)\n\nText.",
        ],
    )
    def test_layout_leaves_nothing_but_its_content(self, source):
        assert written(source) == "Text."

    def test_names_and_options_that_say_something_stay(self):
        source = ".. tab:: Linux\n   :sync: os\n\n   Text.\n\n"
        source += ".. figure:: a.png\n   :alt: the *plan*\n   :width: 40\n\n   Caption."
        assert written(source) == "tab: Linux\n\nText.\n\nfigure: a.png\n\nalt: the *plan*\n\nCaption."

    def test_markup_in_arguments_and_options_is_read(self):
        source = ".. version-added:: 2.1 ``fast`` and :func:`slow`\n\n.. confval:: x\n   :type: :code:`int`"
        assert written(source) == "version-added: 2.1 `fast` and `slow`\n\nconfval: x\n\ntype: int"

    def test_a_table_of_contents_lists_titles(self):
        assert written(".. toctree::\n\n   First steps <usage/first>\n   install") == "toctree: First steps\ninstall"

    def test_a_title_in_a_directive_names_what_follows(self):
        name, title, text = blocks(".. option:: --fast\n\n   Examples\n   ~~~~~~~~\n\n   Text.")
        assert (name.text.strip(), title.text.strip(), text.text.strip()) == ("option: --fast", "Examples", "Text.")
        assert title.kind == "term"

    def test_the_first_block_begins_where_its_directive_does(self):
        note, value = blocks("x\n\n.. note::\n\n   Text\n   goes on.")[1], blocks(".. confval:: x\n   :default: 3")[1]
        assert (note.start_line, note.end_line, value.start_line) == (3, 6, 2)


class TestTables:
    def test_a_list_table_is_a_table(self):
        source = ".. list-table:: Limits\n   :header-rows: 1\n\n   * - Name\n     - Use\n"
        source += "   * - ``retries``\n     - how\n\n       often"
        title, table = blocks(source)
        assert title.text.strip() == "Limits"
        assert (table.kind, table.text.strip()) == ("table", "| Name | Use |\n| `retries` | how often |")
        assert (table.start_line, table.end_line) == (4, 9)

    def test_comma_separated_values_are_a_table(self):
        source = '.. csv-table::\n   :header: Name, "Use, or not"\n\n   a, ``b``\n   "two\n   lines", c'
        (table,) = blocks(source)
        assert table.text.strip() == "| Name | Use, or not |\n| a | `b` |\n| two lines | c |"

    def test_values_that_cannot_be_read_are_kept(self):
        assert "a, b" in written(".. csv-table::\n   :delim: long\n\n   a, b")

    def test_a_cell_holds_all_its_text_and_no_message(self):
        source = "+-------+------+\n| - one | ==   |\n| - two | |x|_ |\n+-------+------+"
        (table,) = blocks(source)
        assert table.text.strip() == "| one two | == x |"
        assert (table.start_line, table.end_line) == (1, 4)


class TestRoles:
    def test_formulas_keep_their_backslashes(self):
        assert written(r"Let :math:`\alpha_1` be.") == r"Let \alpha_1 be."

    def test_numbered_documents_keep_their_series(self):
        assert written(":pep:`8`, :RFC:`2822`, :pep:`style <8>`") == "PEP 8, RFC 2822, style"


HOSTILE = {
    "substitutions": "".join(f".. |a{number}| replace:: |a{number - 1}| x\n" for number in range(3_000)),
    "references": ".. |a| replace:: b\n\n" + "|a| " * 20_000,
    "rows": ".. list-table::\n\n" + "   * - a\n     - b\n" * 3_000,
    "values": ".. csv-table::\n\n" + "   a,b,c\n" * 10_000,
    "quotes": '.. csv-table::\n\n   "' + "a\n   " * 10_000,
    "fields": ":a:\n" * 5_000,
    "markers": "\n".join(f"{'  ' * depth}- .. c" for depth in range(300)),
    "footnotes": ".. [#a] b\n" * 5_000,
    "titles": ".. note::\n\n" + "   T\n   =\n\n" * 2_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_file_is_read_in_moments(text):
    start = time.process_time()  # excludes the load of other processes
    load_document(text, "a.rst", "rst")
    assert time.process_time() - start < 20


class TestPointers:
    """Link targets of a document and the labels under which others link to it."""

    SOURCE = """\
.. _One Label:
.. _two:

Title
=====

See `a page
<page.html>`_ and :ref:`x <two>`,
:doc:`/usage/start`.

.. toctree::

   first
   Second <second>
"""

    def test_links_and_labels_stand_beside_the_text_with_their_lines(self):
        found = [
            (block.kind, each.kind, each.name, each.line) for block in blocks(self.SOURCE) for each in block.pointers
        ]

        assert found == [
            ("heading", "label", "one label", 1),
            ("heading", "label", "two", 2),
            ("prose", "link", "page.html", 7),
            ("prose", "ref", "two", 8),
            ("prose", "link", "/usage/start", 9),
            ("prose", "link", "first", 13),
            ("prose", "link", "second", 14),
        ]

    def test_the_text_does_not_show_them(self):
        assert written(self.SOURCE) == ("# Title\n\nSee a page and x,\n/usage/start.\n\ntoctree: first\nSecond")

    def test_names_that_lead_in_a_cycle_lead_nowhere(self):
        assert [block.pointers for block in blocks("a_\n\n.. _a: b_\n.. _b: a_\n")] == [()]
