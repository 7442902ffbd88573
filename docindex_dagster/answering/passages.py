"""Numbered passages, which a language model reads and cites.

Numbers run through a conversation. A passage that is found again keeps its number, and no number is reused.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import TypeAlias

from docindex_dagster.core.safe_text import make_visible
from docindex_dagster.search.context import Context, ContextPassage

_Key: TypeAlias = tuple[str, str, int, int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage(ContextPassage):
    """Lines of a file under a number. Invisible characters in `text` are replaced with visible ones."""

    number: int

    @property
    def span(self) -> tuple[int, int]:
        """The first and last line."""
        return self.start_line, self.end_line

    @property
    def has_exact_lines(self) -> bool:
        """Whether the text equals the lines of the file. It does not if the document was converted."""
        return self.text.count("\n") == self.end_line - self.start_line + self.is_cut

    def lines(self, first: int, last: int) -> str:
        """Return the text of the lines `first` to `last` of the file; the full text if the lines are not exact."""
        if not self.has_exact_lines:
            return self.text
        return "\n".join(self.text.split("\n")[first - self.start_line : last - self.start_line + 1])


@dataclass(frozen=True, slots=True)
class Passages:
    """The passages of a conversation, ordered by number. `last` is the highest number ever assigned."""

    kept: tuple[Passage, ...] = ()
    last: int = 0

    def found(self, context: Context) -> "tuple[Passages, tuple[Passage, ...]]":
        """Return the passages with those of a context added, and the latter alone, in the order of the context."""
        known = {_key(passage): passage.number for passage in self.kept}
        last, new = self.last, []
        for found in context.passages:
            passage = _numbered(found, 0)
            number = known.get(_key(passage))
            if number is None:
                number = last = last + 1
            new.append(replace(passage, number=number))
        by_number = {passage.number: passage for passage in (*self.kept, *new)}
        return Passages(tuple(by_number[number] for number in sorted(by_number)), last), tuple(new)

    def numbered(self, numbers: Iterable[int]) -> tuple[Passage, ...]:
        """Return the passages with these numbers, in order of number, without those that are not kept."""
        wanted = set(numbers)
        return tuple(passage for passage in self.kept if passage.number in wanted)

    def newest(self, most: int) -> "Passages":
        """Return the passages without those of the lowest numbers, limited to `most`."""
        return replace(self, kept=self.kept[max(0, len(self.kept) - most) :])


def _key(passage: Passage) -> _Key:
    return (passage.source, passage.path, passage.start_line, passage.end_line, passage.text)


def _numbered(passage: ContextPassage, number: int) -> Passage:
    values = {field.name: getattr(passage, field.name) for field in fields(passage)}
    return Passage(**{**values, "text": make_visible(passage.text)}, number=number)
