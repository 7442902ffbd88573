"""Terminal output of answers: the text as it arrives, then its sources with the results of their checks."""

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
from docindex_dagster.core.safe_text import make_visible, on_one_line, truncate_middle
from docindex_dagster.llm.chat import Delta
from docindex_dagster.render import console
from docindex_dagster.search.model import CHANGED

FileOf = Callable[[str, str], str | None]
"""Returns the file on disk for a path of a source; None if there is none."""

_MAX_CLAIM = 100
_MAX_ARGUMENTS = 200
_WORST_FIRST = (State.MISSING, State.DOUBTFUL, State.UNCHECKED, State.SUPPORTED)
_MARKS = {
    State.SUPPORTED: ("✓", "green"),
    State.DOUBTFUL: ("?", "yellow"),
    State.UNCHECKED: ("·", "dim"),
    State.MISSING: ("✗", "red"),
}


@dataclass(slots=True)
class AnswerPrinter:
    """Prints the events of an answer.

    Attributes:
        home: the home of the index.
        file_of: locates the files of passages.
        is_streaming: whether to print the text as it arrives, and not after the check, with the results in its marks.
        is_in_line: whether the printed text has not ended its line.
    """

    home: Path
    file_of: FileOf
    is_streaming: bool
    is_in_line: bool = False

    def take(self, event: Event) -> None:
        """Print an event."""
        match event:
            case Found(warnings=warnings):
                for warning in warnings:
                    console.warning(warning)
            case Delta(text) if self.is_streaming:
                self._write(make_visible(text))
            case Step():
                self._step(event)
            case Answer():
                self._answer(event)
            case Spent():
                console.err.print(Text(_spent(event), "dim"))

    def _step(self, step: Step) -> None:
        self._end_line()
        arguments = truncate_middle(on_one_line(step.arguments), _MAX_ARGUMENTS)
        style = "yellow" if step.is_error else "dim"
        console.err.print(Text(f"{on_one_line(step.tool)} {arguments}: {on_one_line(step.outcome)}", style))

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
        """Print the cited sources by number, each with its worst check result."""
        if not citations:
            return
        console.out.print()
        for number in sorted({citation.number for citation in citations}):
            of_number = [citation for citation in citations if citation.number == number]
            worst = min(of_number, key=lambda citation: _WORST_FIRST.index(citation.state))
            console.out.print(self._source(worst, of_number))
            if worst.state in {State.DOUBTFUL, State.MISSING}:
                claim = truncate_middle(on_one_line(worst.claim), _MAX_CLAIM)
                console.out.print(Text(f"      “{claim}”", "dim"))

    def passages(self, passages: Iterable[Passage]) -> None:
        """Print passages with their numbers."""
        for one in passages:
            line = self._place(one, [one.span]).append(
                on_one_line(f"  {one.kind} {one.name or ''}".rstrip()), "default"
            )
            console.out.print(Text(f"{one.number:3} ", "dim").append_text(line))

    def _source(self, worst: Citation, of_number: Sequence[Citation]) -> Text:
        mark, style = _MARKS[worst.state]
        line = Text.assemble((f"{worst.number:3} ", "dim"), (f"{mark} ", style))
        if worst.passage is None:
            return line.append(f"passage {worst.number} does not exist", style)
        spans = sorted({(citation.start_line, citation.end_line) for citation in of_number})
        line.append_text(self._place(worst.passage, spans))
        line.append(on_one_line(f"  {worst.passage.name or worst.passage.kind}"), "default")
        if worst.state is State.DOUBTFUL:
            better = f"; [{worst.better}] is a better match" if worst.better else ""
            line.append(f"  doubtful: the lines hardly support it{better}", style)
        if any(citation.stale for citation in of_number):
            line.append(f"  {CHANGED}", "yellow")
        return line

    def _place(self, passage: Passage, spans: Sequence[tuple[int, int]]) -> Text:
        file = self.file_of(passage.source, passage.path)
        at = console.ResultLocation(passage.source, passage.path, None, file, passage.page)
        lines = ", ".join(f"{first}-{last}" if last > first else str(first) for first, last in spans)
        return console.place(at, self.home).append(f":{lines}", "cyan")


def as_json(question: str, events: Sequence[Event]) -> dict[str, Any]:
    """Return an answer and everything it is based on."""
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
        notes.append("the answer reached its token limit (llm.max_answer_tokens) and was cut off")
    if answer.is_prompt_cut:
        notes.append("the model probably read only part of the passages: set llm.context_tokens, or lower --tokens")
    return notes


def _spent(spent: Spent) -> str:
    times = f"search {spent.search_s:.2f} s, total {spent.total_s:.1f} s"
    if not spent.completion_tokens:
        return times
    dollars = "" if spent.dollars is None else f", ${spent.dollars:.4f}"
    return f"{spent.prompt_tokens:,} + {spent.completion_tokens:,} tokens{dollars}; {times}"
