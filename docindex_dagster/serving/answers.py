"""Answers as Markdown, short enough for a model to read: what it needs to go on, and no more."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from docindex_dagster.core.printable import in_line
from docindex_dagster.graph.analysis import Statistics
from docindex_dagster.graph.ask import Step
from docindex_dagster.search.context import Context, nothing_in
from docindex_dagster.search.model import Hit, title
from docindex_dagster.status.catalog import lacks

if TYPE_CHECKING:
    from docindex_dagster.status.freshness import Present

_MOST_CHARACTERS = 60_000  # of what `show` gives: some 15,000 tokens
_MOST_STEPS = 200
_LANGUAGES = 4
_DAY = len("2026-01-01")


def of_hits(hits: Sequence[Hit], warnings: Sequence[str]) -> str:
    """Results, best first: where each is, what it is, and the lines that match."""
    notes = [f"Note: {warning}" for warning in warnings]
    if not hits:
        return "\n".join([*notes, "Nothing found. Try other words, fewer filters, or mode 'literal' for exact text."])
    return "\n\n".join([*notes, *(_hit(rank, hit) for rank, hit in enumerate(hits, start=1))])


def _hit(rank: int, hit: Hit) -> str:
    name = in_line(hit.title)
    about = ", ".join(filter(None, (hit.chunk_type, hit.language, hit.source_type)))
    about += f", lines {hit.start_line}-{hit.end_line}"
    notes = "; the file was changed since it was indexed" if hit.stale else ""
    head = f"{rank}. {hit.source} {in_line(hit.path)}:{hit.line} ({about}{notes})"
    lines = [f"   | {line}" for line in hit.snippet.text.split("\n") if line.strip()]
    about_it = [f"   {name}"] if name else []
    about_it += [f"   file: {in_line(hit.file)}:{hit.line}"] if hit.file else []
    about_it += [f"   summary: {in_line(hit.summary)}"] if hit.summary else []
    return "\n".join([head, *about_it, *lines])


def of_context(context: Context, warnings: Sequence[str]) -> str:
    """The passages that fit."""
    notes = [f"Note: {warning}\n" for warning in warnings]
    return "\n".join([*notes, context.markdown or nothing_in(context)])


def sentence(text: str) -> str:
    """A text of ours that names what is indexed, as a sentence."""
    return f"{in_line(text[:1].upper() + text[1:])}."


def of_steps(steps: Sequence[Step], *, is_backward: bool) -> str:
    """Edges of the graph, a line each: the nearest first, with their places and how they were resolved."""
    lines = [_step(step, is_backward=is_backward) for step in steps[:_MOST_STEPS]]
    if len(steps) > _MOST_STEPS:
        lines.append(f"… {len(steps) - _MOST_STEPS} more; ask for a smaller depth, or one of the names above")
    return "\n".join(lines)


def _step(step: Step, *, is_backward: bool) -> str:
    here, there = (step.object, step.subject) if is_backward else (step.subject, step.object)
    arrow = f"<-{step.predicate}-" if is_backward else f"-{step.predicate}->"
    return (
        f"{'  ' * (step.depth - 1)}{in_line(here)} {arrow} {in_line(there)} ({in_line(step.place)}; {step.resolution})"
    )


def of_statistics(found: Statistics) -> str:
    """How much is in the graph."""
    lines = [
        f"nodes: {_counts(found.nodes)}",
        f"edges: {_counts(found.edges)}",
        f"calls: {found.resolved:.1%} resolved; {_counts(found.calls)}",
        f"components: {found.components}",
        *(f"called by {count}: {in_line(name)}" for name, count in found.hubs),
    ]
    return "\n".join(lines)


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def of_chunks(rows: Sequence[Mapping[str, Any]]) -> str:
    """Chunks whole, as long as there is room."""
    parts: list[str] = []
    length = 0
    for row in rows:
        part = _chunk(row)
        length += len(part)
        if length > _MOST_CHARACTERS and parts:
            parts.append(f"… {len(rows) - len(parts)} more chunks; ask for PATH:LINE to see one of them")
            break
        parts.append(part)
    return "\n".join(parts)


def _chunk(row: Mapping[str, Any]) -> str:
    name = title(row["qualified_name"], row["heading_path"])
    about = in_line(", ".join(filter(None, (row["chunk_type"], name, row["signature"]))))
    place = f"{row['source']} {in_line(row['path'])}:{row['start_line']}-{row['end_line']}"
    summary = f"summary: {in_line(row['summary'])}\n" if row["summary"] else ""
    return f"{place} ({about}), chunk {row['chunk_index'] + 1} of {row['total_chunks']}\n{summary}{row['text']}\n"


def of_sources(sources: "Sequence[Present]", warnings: Sequence[str]) -> str:
    """How each source stands and what is indexed of it, a line each."""
    if not sources:
        return "No source is declared, and nothing is indexed."
    return "\n".join([*(f"Note: {warning}" for warning in warnings), *map(_source, sources)])


def _source(present: "Present") -> str:
    one, entry = present.status, present.status.entry
    doubt = ["may be out of date: its files or settings changed, or that is unknown"]
    notes = [one.state, *(doubt if present.is_current is False else ())]
    why = [in_line(one.problem)] if one.problem else []
    if entry is None:
        return f"- {one.source}: {'; '.join([', '.join(notes), *why])}"
    why += lacks(entry) if one.state != "degraded" else ()
    languages = sorted(entry.languages, key=lambda name: (-entry.languages[name], name))[:_LANGUAGES]
    figures = f"{entry.files:,} files, {entry.chunks:,} chunks, {', '.join(languages)}"
    revision = f", revision {entry.revision}" if entry.revision else ""
    dated = f"content of {entry.changed_at[:_DAY]}{revision}"
    return f"- {one.source}: {'; '.join([', '.join(notes), *why, figures, dated])}"
