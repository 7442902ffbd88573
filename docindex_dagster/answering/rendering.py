"""Rendering of checked answers as text and HTML, and answers without a model: the best passages and setup hints.

In HTML, only marks that name a passage become links.
"""

from collections.abc import Callable, Sequence
from html import escape
from itertools import groupby

from docindex_dagster.answering.citations import Citation, State
from docindex_dagster.answering.markdown import blocks, parser, plain_lines
from docindex_dagster.answering.passages import Passage
from docindex_dagster.core.safe_text import fence_around, make_visible, on_one_line

_MARK_SUFFIXES = {State.SUPPORTED: "", State.DOUBTFUL: "?", State.UNCHECKED: "", State.MISSING: " missing"}
_MAX_PASSAGES = 5
_MAX_LINES = 12  # per passage
_LINES_BEFORE = 3  # the best match
NO_MODEL = "No language model is configured, so these are the best passages."
HOW_TO_SET = """\
[llm]
provider = "ollama"
model = "NAME"
"""


def as_text(answer: str, citations: Sequence[Citation]) -> str:
    """Return the answer with the check results in its marks: `[1]`, `[2?]` if doubtful, `[3 missing]`."""
    shown, end = [], 0
    for (start, until), same_mark in groupby(citations, key=lambda citation: (citation.start, citation.end)):
        shown += [answer[end:start], "".join(map(_text_mark, same_mark))]
        end = until
    return make_visible("".join([*shown, answer[end:]]))


def as_html(answer: str, citations: Sequence[Citation], href: Callable[[Citation], str]) -> str:
    """Return the answer as HTML. Its text may contain anything, but only marks become links.

    Args:
        answer: the answer in Markdown.
        citations: all of its citations, as `check` returns them.
        href: returns the URL of a citation's lines; called only if the passage exists.
    """
    markdown = parser()
    text = make_visible(plain_lines(answer))
    tokens = markdown.parse(text)
    at = {start: list(same_mark) for start, same_mark in groupby(citations, key=lambda citation: citation.start)}
    for mark in (mark for block in list(blocks(tokens, text)) for mark in block.marks):
        mark.token.type = "html_inline"
        mark.token.content = "".join(_html_mark(citation, href) for citation in at.get(mark.position, ()))
    return str(markdown.renderer.render(tokens, markdown.options, {}))


def _text_mark(citation: Citation) -> str:
    return f"[{citation.number}{_MARK_SUFFIXES[citation.state]}]"


def _html_mark(citation: Citation, href: Callable[[Citation], str]) -> str:
    shown = f"[{citation.number}]"
    if citation.passage is None:
        return f'<s class="citation missing">{shown}</s>'
    return f'<a class="citation {citation.state}" href="{escape(href(citation))}">{shown}</a>'


def extractive(passages: Sequence[Passage], history: str = "", *, is_model_set: bool = False) -> str:
    """Return the best passages as Markdown, each with its mark.

    Args:
        passages: the passages found.
        history: the commits that the question is about; they come first.
        is_model_set: whether a model is configured but was not used; if not, setup instructions are appended.
    """
    best = sorted(passages, key=lambda passage: -passage.score)[:_MAX_PASSAGES]
    commits = [_fence(history)] if history else []
    shown = [*commits, *map(_render_passage, best)] or ["Nothing was found."]
    if is_model_set:
        return "\n\n".join(["The best passages:" if best else "", *shown]).strip() + "\n"
    see = "docs/how-to/ask-questions.md"
    how = f"For written answers, add this to `docindex.toml` (see {see}):\n\n```toml\n{HOW_TO_SET}```"
    return "\n\n".join([NO_MODEL if best else "No language model is configured.", *shown, how]) + "\n"


def _render_passage(passage: Passage) -> str:
    """Return the location of a passage, the lines around its best match, and its citation mark."""
    lines = passage.text.split("\n")
    first = 0
    if passage.has_exact_lines and passage.line > passage.start_line:
        first = max(0, min(passage.line - passage.start_line - _LINES_BEFORE, len(lines) - _MAX_LINES))
    text = "\n".join(lines[first : first + _MAX_LINES])
    start, end = passage.span
    if passage.has_exact_lines:
        start, end = start + first, min(end, start + first + _MAX_LINES - 1)
    location = f"{on_one_line(passage.path)}:{start}-{end}".replace("`", "'")
    total = f", of {passage.start_line}-{passage.end_line}" if (start, end) != passage.span else ""
    return f"`{location}`{total}\n\n{_fence(text, passage.language or '')}\n\n[{passage.number}]"


def _fence(text: str, language: str = "") -> str:
    fence = fence_around(text)
    return f"{fence}{language}\n{text}\n{fence}"
