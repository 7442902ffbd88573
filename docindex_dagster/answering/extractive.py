"""An answer without a model: the best passages, and how to set a model."""

import re
from collections.abc import Sequence

from docindex_dagster.answering.passages import Passage
from docindex_dagster.core.printable import in_line

_BEST = 5
_MOST_LINES = 12  # of each
_LINES_BEFORE = 3  # the one that matches best
_FENCE = re.compile(r"`{3,}")
NO_MODEL = "No language model is set, so these are the best passages as they are."
HOW_TO_SET = """\
[llm]
provider = "ollama"
model = "NAME"
"""


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
    """Its place and the lines around the one that matches best, and then its mark, which so stands for a quote."""
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
    fence = "`" * (max((len(run) for run in _FENCE.findall(text)), default=2) + 1)
    return f"{fence}{language}\n{text}\n{fence}"
