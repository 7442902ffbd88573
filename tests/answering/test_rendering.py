"""Rendered answers: only citation marks become links, whatever the model writes."""

from html.parser import HTMLParser

import pytest
from hypothesis import given

from docindex_dagster.answering.citations import check
from docindex_dagster.answering.rendering import as_html, as_text
from docindex_dagster.core.safe_text import make_visible
from tests.answering.hostile import HOSTILE
from tests.answering.samples import passage
from tests.answering.test_marks import ANSWERS

PASSAGES = [passage(1, "def pump(level):\n    return level", first=5), passage(2, "x = 1", name=None)]
PLAIN = {"code", "em", "strong", "p", "pre", "ul", "ol", "li", "blockquote", "hr", "br", "s", "a"}
PLAIN |= {"h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"}


class Elements(HTMLParser):
    """Tags, attributes and link targets of an HTML text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.addresses: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.addresses |= {value for name, value in attrs if name == "href"}


def shown(answer: str) -> str:
    return as_html(answer, check(answer, PASSAGES), lambda found: f"/files/{found.passage.number}#L{found.start_line}")


def test_a_mark_becomes_a_link_to_its_lines_that_says_what_the_check_says():
    assert shown("`pump(level)` pumps [1, 2]; `x` too [7].") == (
        "<p><code>pump(level)</code> pumps "
        '<a class="citation supported" href="/files/1#L5">[1]</a>'
        '<a class="citation doubtful" href="/files/2#L1">[2]</a>'
        '; <code>x</code> too <s class="citation missing">[7]</s>.</p>\n'
    )


def test_a_terminal_shows_it_in_the_mark():
    answer = "`pump(level)` pumps [1, 2]; `x` too [7]."

    assert as_text(answer, check(answer, PASSAGES)) == "`pump(level)` pumps [1][2?]; `x` too [7 missing]."


@pytest.mark.parametrize("name", HOSTILE)
def test_a_model_that_repeats_what_attackers_write_links_nothing_but_passages(name):
    answer = f"`pump` says [1]:\n\n{HOSTILE[name]}\n\nand `x` [2], [9]."

    found = Elements(shown(answer))

    assert found.addresses <= {"/files/1#L5", "/files/2#L1"}
    assert found.tags <= PLAIN
    assert found.attributes <= {"href", "class", "start"}
    assert make_visible(shown(answer)) == shown(answer)
    assert make_visible(as_text(answer, check(answer, PASSAGES))) == as_text(answer, check(answer, PASSAGES))


@given(ANSWERS)
def test_no_answer_links_anything_else(answer):
    found = Elements(shown(answer))

    assert found.addresses <= {"/files/1#L5", "/files/2#L1"}
    assert found.tags <= PLAIN
    assert found.attributes <= {"href", "class", "start", "style"}


@given(ANSWERS)
def test_every_citation_is_shown_once(answer):
    citations = check(answer, PASSAGES)

    assert shown(answer).count('class="citation ') == len(citations)


def test_an_address_is_written_as_an_attribute():
    citations = check("`pump` [1]", PASSAGES)

    assert 'href="/a&quot;&gt;&lt;b"' in as_html("`pump` [1]", citations, lambda _: '/a"><b')
