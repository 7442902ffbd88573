"""Numbered passages: what a language model reads and cites.

Numbers run through a conversation. A passage that is found again keeps its number; no number is given twice.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import TypeAlias

from docindex_dagster.core.safe_text import visible
from docindex_dagster.search.context import Context, ContextPassage

_Key: TypeAlias = tuple[str, str, int, int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage(ContextPassage):
    """Lines of a file under a number. In `text` every character can be seen."""

    number: int

    @property
    def span(self) -> tuple[int, int]:
        """Its first and last line."""
        return self.start_line, self.end_line

    @property
    def has_exact_lines(self) -> bool:
        """Whether its text is the lines of the file; not where a document was transformed."""
        return self.text.count("\n") == self.end_line - self.start_line + self.is_cut

    def lines(self, first: int, last: int) -> str:
        """The text of some of its lines, by their numbers in the file; of all where they are not exact."""
        if not self.has_exact_lines:
            return self.text
        return "\n".join(self.text.split("\n")[first - self.start_line : last - self.start_line + 1])


@dataclass(frozen=True, slots=True)
class Passages:
    """The passages of a conversation, in the order of their numbers; `last` is the highest that was ever given."""

    kept: tuple[Passage, ...] = ()
    last: int = 0

    def found(self, context: Context) -> "tuple[Passages, tuple[Passage, ...]]":
        """These with the passages of a context, and the latter by themselves, in the order of the context."""
        known = {_key(passage): passage.number for passage in self.kept}
        last, new = self.last, []
        for one in context.passages:
            passage = _numbered(one, 0)
            number = known.get(_key(passage))
            if number is None:
                number = last = last + 1
            new.append(replace(passage, number=number))
        by_number = {passage.number: passage for passage in (*self.kept, *new)}
        return Passages(tuple(by_number[number] for number in sorted(by_number)), last), tuple(new)

    def numbered(self, numbers: Iterable[int]) -> tuple[Passage, ...]:
        """Those of some numbers, in the order of the numbers; what is not kept is left out."""
        wanted = set(numbers)
        return tuple(passage for passage in self.kept if passage.number in wanted)

    def newest(self, most: int) -> "Passages":
        """The same with so many passages at most, without those of the lowest numbers."""
        return replace(self, kept=self.kept[max(0, len(self.kept) - most) :])


def _key(passage: Passage) -> _Key:
    return (passage.source, passage.path, passage.start_line, passage.end_line, passage.text)


def _numbered(passage: ContextPassage, number: int) -> Passage:
    values = {field.name: getattr(passage, field.name) for field in fields(passage)}
    return Passage(**{**values, "text": visible(passage.text)}, number=number)
