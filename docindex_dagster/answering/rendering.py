"""A checked answer, shown. Nothing in it becomes a link but the marks that name a passage."""

from collections.abc import Callable, Sequence
from html import escape
from itertools import groupby

from docindex_dagster.answering.citations import Citation, State
from docindex_dagster.answering.markdown import blocks, parser, plain_lines
from docindex_dagster.core.printable import visible

_SIGNS = {State.SUPPORTED: "", State.DOUBTFUL: "?", State.UNCHECKED: "", State.MISSING: " missing"}


def as_text(answer: str, citations: Sequence[Citation]) -> str:
    """The answer with what the checks say in its marks: `[1]`, `[2?]` for a doubtful one, `[3 missing]`."""
    shown, end = [], 0
    for (start, until), of_mark in groupby(citations, key=lambda citation: (citation.start, citation.end)):
        shown += [answer[end:start], "".join(map(_sign, of_mark))]
        end = until
    return visible("".join([*shown, answer[end:]]))


def as_html(answer: str, citations: Sequence[Citation], href: Callable[[Citation], str]) -> str:
    """The answer as HTML; its text may hold anything, and no element of it but marks has an address.

    Args:
        answer: Markdown.
        citations: all of it, as `check` gives them.
        href: the address of a citation's lines; asked only where there is a passage.
    """
    made = parser()
    text = visible(plain_lines(answer))
    tokens = made.parse(text)
    at = {start: list(of_mark) for start, of_mark in groupby(citations, key=lambda citation: citation.start)}
    for spot in (spot for block in list(blocks(tokens, text)) for spot in block.marks):
        spot.token.type = "html_inline"
        spot.token.content = "".join(_link(citation, href) for citation in at.get(spot.position, ()))
    return str(made.renderer.render(tokens, made.options, {}))


def _sign(citation: Citation) -> str:
    return f"[{citation.number}{_SIGNS[citation.state]}]"


def _link(citation: Citation, href: Callable[[Citation], str]) -> str:
    shown = f"[{citation.number}]"
    if citation.passage is None:
        return f'<s class="citation missing">{shown}</s>'
    return f'<a class="citation {citation.state}" href="{escape(href(citation))}">{shown}</a>'
