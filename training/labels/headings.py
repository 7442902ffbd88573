"""Questions that documents answer: the heading of a section, which is cut out of the document."""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate

from docindex_dagster.documents.load import load_document
from docindex_dagster.documents.model import Block
from training.labels.checkout import Checkout
from training.labels.holding import Cut, Held
from training.labels.questions import Question, is_worth_asking, normalised

_LOADERS = frozenset({"markdown", "mdx", "rst", "asciidoc"})
_AROUND = 3  # lines in which a heading is looked for: docutils names the line of its underline
_LEAST_TEXT = 100  # characters of a section
_RULE = re.compile(r"\s*([=\-~^\"'*+#`:.])\1{2,}\s*")
_NO_QUESTION = re.compile(
    r"\d+\.\d+|\b(?:changes?|changelog|releases?|version|thanks|license|contribut\w+|20[0-2]\d)\b|[{};=<>]",
    re.IGNORECASE,
)


def heading_questions(checkout: Checkout) -> Iterator[Held]:
    """What the headings of all documents ask for."""
    for file in checkout.files.values():
        if file.source_type != "doc" or file.loader not in _LOADERS or not checkout.is_content(file.path):
            continue
        text = checkout.text(file.path)
        lines = text.split("\n")
        for section in load_document(text, file.path, file.loader).sections:
            if not section.heading_path or sum(len(block.text) for block in section.blocks[1:]) < _LEAST_TEXT:
                continue
            title = section.heading_path[-1].strip(" .:#")
            question = Question(title, "heading", (file.path,))
            cut = _cut(lines, section.blocks[0])
            if cut and not _NO_QUESTION.search(title) and is_worth_asking(question):
                yield Held(question, file.path, (cut,))


def _cut(lines: Sequence[str], heading: Block) -> Cut | None:
    """The bytes of the line that has the words of a heading, with the rules above and below it."""
    words = normalised(heading.title)
    near = range(max(0, heading.start_line - 1 - _AROUND), min(len(lines), heading.end_line + _AROUND))
    at = next((number for number in near if normalised(lines[number]) == words), None)
    if at is None or heading.kind != "heading":
        return None
    first = at - 1 if at > 0 and _RULE.fullmatch(lines[at - 1]) and _is_underlined(lines, at) else at
    last = at + 1 if _is_underlined(lines, at) else at
    begins = [0, *accumulate(len(line.encode()) + 1 for line in lines)]
    return Cut(begins[first], begins[last + 1] - 1)


def _is_underlined(lines: Sequence[str], at: int) -> bool:
    return not lines[at].startswith("#") and at + 1 < len(lines) and _RULE.fullmatch(lines[at + 1]) is not None
