"""Checked answers as text and HTML, and answers without a model: the best passages, and how to set a model.

In HTML, only the marks that name a passage become links.
"""

from collections.abc import Callable, Sequence
from html import escape
from itertools import groupby

from docindex_dagster.answering.citations import Citation, State
from docindex_dagster.answering.markdown import blocks, parser, plain_lines
from docindex_dagster.answering.passages import Passage
from docindex_dagster.core.safe_text import fence_around, in_line, visible

_SIGNS = {State.SUPPORTED: "", State.DOUBTFUL: "?", State.UNCHECKED: "", State.MISSING: " missing"}
_BEST = 5
_MOST_LINES = 12  # of each
_LINES_BEFORE = 3  # the one that matches best
NO_MODEL = "No language model is set, so these are the best passages as they are."
HOW_TO_SET = """\
[llm]
provider = "ollama"
model = "NAME"
"""


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


def extractive(passages: Sequence[Passage], history: str = "", *, is_model_set: bool = False) -> str:
    """The best passages as Markdown, each with its mark.

    Args:
        passages: that were found.
        history: the commits that the question is about; they come first.
        is_model_set: whether the settings name a model, which was not wanted; else three lines say how to set one.
    """
    best = sorted(passages, key=lambda passage: -passage.score)[:_BEST]
    commits = [_fenced(history)] if history else []
    shown = [*commits, *map(_shown, best)] or ["Nothing was found."]
    if is_model_set:
        return "\n\n".join(["The best passages, as they are:" if best else "", *shown]).strip() + "\n"
    how = f"To be answered in words, add to `docindex.toml` (docs/answers.md):\n\n```toml\n{HOW_TO_SET}```"
    return "\n\n".join([NO_MODEL if best else "No language model is set.", *shown, how]) + "\n"


def _shown(passage: Passage) -> str:
    """The place of a passage, the lines around its best match, and its citation mark."""
    lines = passage.text.split("\n")
    first = 0
    if passage.has_exact_lines and passage.line > passage.start_line:
        first = max(0, min(passage.line - passage.start_line - _LINES_BEFORE, len(lines) - _MOST_LINES))
    text = "\n".join(lines[first : first + _MOST_LINES])
    start, end = passage.span
    if passage.has_exact_lines:
        start, end = start + first, min(end, start + first + _MOST_LINES - 1)
    place = f"{in_line(passage.path)}:{start}-{end}".replace("`", "'")
    part = f", of {passage.start_line}-{passage.end_line}" if (start, end) != passage.span else ""
    return f"`{place}`{part}\n\n{_fenced(text, passage.language or '')}\n\n[{passage.number}]"


def _fenced(text: str, language: str = "") -> str:
    fence = fence_around(text)
    return f"{fence}{language}\n{text}\n{fence}"
