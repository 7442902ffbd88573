"""How answers are shown: the text as it comes, then its sources with what their checks say."""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.text import Text

from docindex_dagster.answering.citations import CheckedCitation, Citation, State
from docindex_dagster.answering.events import Answer, Event, Found, Spent, Step
from docindex_dagster.answering.passages import Passage
from docindex_dagster.answering.rendering import as_text
from docindex_dagster.core.safe_text import in_line, shortened, visible
from docindex_dagster.llm.chat import Delta
from docindex_dagster.render import console
from docindex_dagster.search.model import CHANGED

FileOf = Callable[[str, str], str | None]
"""The file on disk of a path of a source; None where there is none."""

_LONGEST_CLAIM = 100
_LONGEST_ARGUMENTS = 200
_WORST_FIRST = (State.MISSING, State.DOUBTFUL, State.UNCHECKED, State.SUPPORTED)
_SIGNS = {
    State.SUPPORTED: ("✓", "green"),
    State.DOUBTFUL: ("?", "yellow"),
    State.UNCHECKED: ("·", "dim"),
    State.MISSING: ("✗", "red"),
}


@dataclass(slots=True)
class Shown:
    """Shows what happens while a question is answered.

    Attributes:
        home: where the index is.
        file_of: says where the files of passages are.
        is_streaming: whether the text is shown as it comes; else once it is checked, with the checks in its marks.
        is_in_line: whether the text that was shown has not ended its line.
    """

    home: Path
    file_of: FileOf
    is_streaming: bool
    is_in_line: bool = False

    def take(self, event: Event) -> None:
        """Show what has happened."""
        match event:
            case Found(warnings=warnings):
                for warning in warnings:
                    console.warning(warning)
            case Delta(text) if self.is_streaming:
                self._write(visible(text))
            case Step():
                self._step(event)
            case Answer():
                self._answer(event)
            case Spent():
                console.err.print(Text(_spent(event), "dim"))

    def _step(self, step: Step) -> None:
        self._end_line()
        arguments = shortened(in_line(step.arguments), _LONGEST_ARGUMENTS)
        style = "yellow" if step.is_error else "dim"
        console.err.print(Text(f"{in_line(step.tool)} {arguments}: {in_line(step.outcome)}", style))

    def _answer(self, answer: Answer) -> None:
        if not self.is_streaming:
            self._write(as_text(answer.text, answer.citations).strip("\n"))
        self._end_line()
        self.sources(answer.citations)
        for note in _notes(answer):
            console.warning(note)

    def _write(self, text: str) -> None:
        sys.stdout.write(text.encode("utf-8", "replace").decode())
        sys.stdout.flush()
        self.is_in_line = not text.endswith("\n") if text else self.is_in_line

    def _end_line(self) -> None:
        if self.is_in_line:
            self._write("\n")

    def sources(self, citations: Sequence[Citation]) -> None:
        """Print what is cited, in the order of the numbers, each with the worst that a check says of it."""
        if not citations:
            return
        console.out.print()
        for number in sorted({citation.number for citation in citations}):
            of_number = [citation for citation in citations if citation.number == number]
            worst = min(of_number, key=lambda citation: _WORST_FIRST.index(citation.state))
            console.out.print(self._source(worst, of_number))
            if worst.state in {State.DOUBTFUL, State.MISSING}:
                claim = shortened(in_line(worst.claim), _LONGEST_CLAIM)
                console.out.print(Text(f"      “{claim}”", "dim"))

    def passages(self, passages: Iterable[Passage]) -> None:
        """Print passages under their numbers."""
        for one in passages:
            line = self._place(one, [one.span]).append(in_line(f"  {one.kind} {one.name or ''}".rstrip()), "default")
            console.out.print(Text(f"{one.number:3} ", "dim").append_text(line))

    def _source(self, worst: Citation, of_number: Sequence[Citation]) -> Text:
        sign, style = _SIGNS[worst.state]
        line = Text.assemble((f"{worst.number:3} ", "dim"), (f"{sign} ", style))
        if worst.passage is None:
            return line.append(f"there is no passage {worst.number}", style)
        spans = sorted({(citation.start_line, citation.end_line) for citation in of_number})
        line.append_text(self._place(worst.passage, spans))
        line.append(in_line(f"  {worst.passage.name or worst.passage.kind}"), "default")
        if worst.state is State.DOUBTFUL:
            better = f"; [{worst.better}] has more" if worst.better else ""
            line.append(f"  doubtful: the lines have hardly any of it{better}", style)
        if any(citation.stale for citation in of_number):
            line.append(f"  {CHANGED}", "yellow")
        return line

    def _place(self, passage: Passage, spans: Sequence[tuple[int, int]]) -> Text:
        file = self.file_of(passage.source, passage.path)
        at = console.Place(passage.source, passage.path, None, file, passage.page)
        lines = ", ".join(f"{first}-{last}" if last > first else str(first) for first, last in spans)
        return console.place(at, self.home).append(f":{lines}", "cyan")


def as_json(question: str, events: Sequence[Event]) -> dict[str, Any]:
    """All of an answer, by what happened until it was there."""
    answer = next(event for event in events if isinstance(event, Answer))
    found = next(event for event in events if isinstance(event, Found))
    steps = [event for event in events if isinstance(event, Step)]
    read = {one.number: one for passages in (found.passages, *(step.passages for step in steps)) for one in passages}
    return {
        "question": question,
        "answer": answer.text,
        "citations": [CheckedCitation.of(citation) for citation in answer.citations],
        "passages": [read[number] for number in sorted(read)],
        "steps": [
            {"tool": step.tool, "arguments": step.arguments, "outcome": step.outcome, "is_error": step.is_error}
            for step in steps
        ],
        "commits": found.commits,
        "model": answer.model,
        "is_cut": answer.is_cut,
        "is_prompt_cut": answer.is_prompt_cut,
        "usage": next((event for event in events if isinstance(event, Spent)), None),
        "generation": found.generation,
        "warnings": found.warnings,
    }


def _notes(answer: Answer) -> list[str]:
    notes = []
    if answer.is_cut:
        notes.append("the answer stopped at its limit of tokens (llm.max_answer_tokens)")
    if answer.is_prompt_cut:
        notes.append("the model seems to have read a part of the passages alone: set llm.context_tokens, or --tokens")
    return notes


def _spent(spent: Spent) -> str:
    times = f"search {spent.search_s:.2f} s, {spent.total_s:.1f} s in all"
    if not spent.completion_tokens:
        return times
    dollars = "" if spent.dollars is None else f", ${spent.dollars:.4f}"
    return f"{spent.prompt_tokens:,} + {spent.completion_tokens:,} tokens{dollars}; {times}"
