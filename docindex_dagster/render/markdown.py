"""Answers as Markdown within a token budget: only what a model needs to continue.

Text from indexed files is untrusted data. It is put into fences that it cannot close, behind a bar at the start of each
line, or on a line of its own without control characters.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, Any

from docindex_dagster.core.safe_text import fence_around, make_visible, on_one_line
from docindex_dagster.documents.model import page_range
from docindex_dagster.graph.analysis import statistics
from docindex_dagster.graph.open_graph import OpenGraph
from docindex_dagster.graph.queries import Step, without_repeats
from docindex_dagster.operations.show import ShownChunk
from docindex_dagster.render import budget
from docindex_dagster.search.context import Context, empty_reason
from docindex_dagster.search.matches import Match, Matches, excerpt_around
from docindex_dagster.search.model import CHANGED, Hit, title
from docindex_dagster.status.catalog import index_limitations

if TYPE_CHECKING:
    from docindex_dagster.operations.status import CheckedSource

ROOM_FOR_NOTES = 150  # tokens that an answer with passages reserves for notes
_ROOM_FOR_MORE = 60  # tokens reserved for the sentence with the cursor
_LANGUAGES = 4
_PLACES = 8  # per edge
_DAY = len("2026-01-01")
_FILES = 10  # per commit
_SHORT_HASH = 10
_NO_MATCH = "No matches. Mode hybrid also searches by meaning."


def of_list(
    found: Sequence[Hit | Mapping[str, Any]],
    top_k: int,
    start: int,
    warnings: Sequence[str],
    max_tokens: int,
    *,
    nothing: str = "Nothing found. Try other words, fewer filters, or mode 'literal' for exact text.",
) -> str:
    """Format a page of hits, or of rows of the schema `COMMITS`, best first.

    Args:
        found: all results from the first one; one more than needed shows that there are further ones.
        top_k: the number of results on the page.
        start: the number of results on earlier pages.
        warnings: printed as notes.
        max_tokens: the budget.
        nothing: what to print if there are no results.
    """
    notes = [f"Note: {on_one_line(warning)}" for warning in warnings]
    if not found:
        notes.append(nothing)
    page = enumerate(found[start : start + top_k], start=start + 1)
    parts = [of_hit(rank, one) if isinstance(one, Hit) else _commit(one) for rank, one in page]
    left = None if len(found) > start + top_k else 0
    return budget.fit_page(parts, "results", start if found else 0, max_tokens, notes=notes, left=left)


def of_hit(rank: int, hit: Hit) -> str:
    """Format a result: its location, its symbol, and the matching lines."""
    name = on_one_line(hit.title)
    about = ", ".join(filter(None, (hit.chunk_type, hit.language, hit.source_type)))
    about += f", lines {hit.start_line}-{hit.end_line}" + (f", page {hit.page}" if hit.page is not None else "")
    about += f", score {hit.score:.3f}"
    notes = f"; {CHANGED}" if hit.stale else ""
    head = f"{rank}. {hit.source} {on_one_line(hit.path)}:{hit.line} ({about}{notes})"
    lines = [f"   | {line}" for line in make_visible(hit.snippet.text).split("\n") if line.strip()]
    about_it = [f"   {name}"] if name else []
    about_it += [f"   file: {on_one_line(hit.file)}:{hit.line}"] if hit.file else []
    about_it += [f"   summary: {on_one_line(hit.summary)}"] if hit.summary else []
    return "\n".join([head, *about_it, *lines])


def of_matches(found: Matches, top_k: int, start: int, warnings: Sequence[str], max_tokens: int) -> str:
    """Format the matches of a literal text or regular expression, below their files, with the total.

    The arguments are those of `of_list`.
    """
    notes = [f"Note: {on_one_line(warning)}" for warning in warnings]
    if not found.total:
        return budget.fit_parts([*notes, _NO_MATCH], (), max_tokens, lambda _: "")
    notes.append(f"{_number(found.total, 'match', 'es')} in {_number(found.files, 'file', 's')}.")
    page = found.matches[start : start + top_k]
    parts = []
    for _, of_file in groupby(page, key=lambda match: (match.source, match.path)):
        first, *others = of_file
        parts += [f"{_file(first)}\n{_match(first)}", *map(_match, others)]
    left = found.total - start - len(page)
    return budget.fit_page(parts, "matches", start, max_tokens, notes=notes, left=left, separator="\n")


def _number(count: int, noun: str, plural: str) -> str:
    return f"{count:,} {noun}{plural if count != 1 else ''}"


def _file(match: Match) -> str:
    stale = f" ({CHANGED})" if match.stale else ""
    file = f"\n   file: {on_one_line(match.file)}" if match.file else ""
    return f"{match.source} {on_one_line(match.path)}{stale}{file}"


def _match(match: Match) -> str:
    page = f" (page {match.page})" if match.page is not None else ""
    return f"   {match.line}:{match.column}{page} | {on_one_line(excerpt_around(match)[0])}"


def of_context(context: Context, notes: Sequence[str]) -> str:
    """Format the passages that fit, after the notes, and the number of results that did not fit."""
    left = context.found - sum(len(passage.chunk_ids) for passage in context.passages)
    notes = [*map(on_one_line, notes)]
    if left > 0 and context.passages:
        notes.append(f"{left} more results did not fit. Request more tokens, or use `search` to list them.")
    head = budget.cut("\n".join(notes), ROOM_FOR_NOTES - 10)
    return "\n\n".join(filter(None, (head, context.markdown or empty_reason(context))))


def _commit(row: Mapping[str, Any]) -> str:
    """Format hash, date, author, subject and files of a commit."""
    day = f"{row['committed_at']:%Y-%m-%d}" if row["committed_at"] else "no date"
    about = f"{_number(row['file_count'], 'file', 's')}{_lines_changed(row)}"
    files = [f"   {file['status']} {on_one_line(_name(file))}{_lines_changed(file)}" for file in row["files"][:_FILES]]
    more = row["file_count"] - len(files)
    files += [f"   and {_number(more, 'more file', 's')}"] if more > 0 else []
    head = f"{row['source']} {row['commit'][:_SHORT_HASH]} {day} by {on_one_line(row['author'])} ({about})"
    return "\n".join([head, f"   | {on_one_line(row['subject'])}", *files])


def _name(file: Mapping[str, Any]) -> str:
    return f"{file['path']} (was {file['renamed_from']})" if file["renamed_from"] else str(file["path"])


def _lines_changed(row: Mapping[str, Any]) -> str:
    """Format the line counts of a commit or of a file in it; empty if unknown."""
    return "" if row["insertions"] is None else f" +{row['insertions']:,} -{row['deletions']:,}"


def sentence(text: str) -> str:
    """Return a message of docindex as a sentence on one line."""
    return f"{on_one_line(text[:1].upper() + text[1:])}."


def of_steps(steps: Sequence[Step], notes: Sequence[str], start: int, max_tokens: int, *, is_backward: bool) -> str:
    """Format edges of the graph, one per line and nearest first, with their locations and resolution.

    Args:
        steps: edges; those that differ only in their location share a line.
        notes: printed first.
        start: the number of lines in earlier answers.
        max_tokens: the budget.
        is_backward: whether the edges are followed backward.
    """
    lines = [_line(same, is_backward=is_backward) for same in _grouped(steps)]
    return budget.fit_page(lines[start:], "edges", start, max_tokens, notes=notes, separator="\n")


def _grouped(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """Group steps that differ only in their location."""
    groups: dict[tuple[object, ...], list[Step]] = {}
    for step in without_repeats(steps):
        key = (step.symbol, step.depth, step.subject, step.predicate, step.object, step.resolution)
        groups.setdefault(key, []).append(step)
    yield from groups.values()


def _line(steps: Sequence[Step], *, is_backward: bool) -> str:
    first = steps[0]
    here, there = (first.object, first.subject) if is_backward else (first.subject, first.object)
    arrow = f"<-{first.predicate}-" if is_backward else f"-{first.predicate}->"
    indent = "  " * (first.depth - 1)
    return (
        f"{indent}{on_one_line(here)} {arrow} {on_one_line(there)} ({on_one_line(_places(steps))}; {first.resolution})"
    )


def _places(steps: Sequence[Step]) -> str:
    """Format locations as `a.py:3,8 b.py:2`; if there are too many, the first ones and the number of the rest."""
    shown = []
    for path, of_file in groupby(steps[:_PLACES], key=lambda step: step.path):
        lines = dict.fromkeys(str(step.line) for step in of_file if step.line)
        shown.append(f"{path}:{','.join(lines)}" if lines else path)
    more = len(steps) - _PLACES
    return " ".join(shown) + (f" and {more} more places" if more > 0 else "")


def of_statistics(graph: OpenGraph, max_tokens: int) -> str:
    """Format the statistics of the graph, and what is not linked yet."""
    found, unlinked = statistics(graph), graph.unlinked_files
    lines = [
        f"nodes: {_counts(found.nodes)}",
        f"edges: {_counts(found.edges)}",
        f"calls: {found.resolved:.1%} resolved; {_counts(found.calls)}",
        f"components: {found.components}",
        *(f"called by {count}: {on_one_line(name)}" for name, count in found.hubs),
        *([sentence(unlinked)] if unlinked else ()),
    ]
    return budget.cut("\n".join(lines), max_tokens)


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def of_chunks(chunks: Sequence[ShownChunk], start: int, max_tokens: int) -> str:
    """Format the full text of chunks in fences, line by line as far as the budget allows.

    Args:
        chunks: the chunks in line order; a file on disk that several share is named once.
        start: the number of their lines in earlier answers.
        max_tokens: the budget.
    """
    total = sum(_text(one.row).count("\n") + 1 for one in chunks)
    before, shown, room = start, 0, max_tokens - _ROOM_FOR_MORE
    parts: list[str] = []
    last_file = None
    for one in chunks:
        lines = _text(one.row).split("\n")
        first = min(before, len(lines))
        before -= first
        if first == len(lines):
            continue
        about = _about(one, first, None if one.file == last_file else one.file)
        last_file = one.file
        part, fitting = _fenced(about, lines[first:], one.row["language"] or "", room)
        if parts and not fitting:
            break
        parts.append(part)
        shown, room = shown + max(1, fitting), room - budget.tokens(part) - 2
        if fitting < len(lines) - first:
            break
    left = total - start - shown
    if left > 0:
        parts.append(budget.more(left, start + shown, "lines"))
    return "\n\n".join(parts) or "There are no more lines."


def _text(row: Mapping[str, Any]) -> str:
    return make_visible(row["text"])


def _about(shown: ShownChunk, first: int, file: str | None) -> str:
    """Format the heading of a chunk from its line `first` on, with its file on disk unless it was named before."""
    row = shown.row
    name = title(row["qualified_name"], row["heading_path"])
    what = on_one_line(", ".join(filter(None, (row["chunk_type"], page_range(row), name, row["signature"]))))
    place = f"{row['source']} {on_one_line(row['path'])}:{row['start_line'] + first}-{row['end_line']}"
    notes = f"; {CHANGED}" if shown.is_changed else ""
    about = f"{place} ({what}), chunk {row['chunk_index'] + 1} of {row['total_chunks']}{notes}"
    about += f"\nfile: {on_one_line(file)}" if file else ""
    return f"{about}\nsummary: {on_one_line(row['summary'])}" if row["summary"] else about


def _fenced(about: str, lines: Sequence[str], language: str, room: int) -> tuple[str, int]:
    """Return as many lines as fit in a fence, or the start of the first if none does, and the number that fit."""
    fence = fence_around("\n".join(lines))
    about = budget.cut(about, room // 2)
    inside = room - budget.tokens(f"{about}\n\n{fence}{language}\n\n{fence}")
    sizes = budget.sizes([f"{line}\n" for line in lines])
    fitting = sum(1 for size in accumulate(sizes) if size <= inside)
    text = "\n".join(lines[:fitting]) if fitting else budget.cut(lines[0], max(1, inside))
    return f"{about}\n\n{fence}{language}\n{text}\n{fence}", fitting


def of_sources(sources: "Sequence[CheckedSource]", warnings: Sequence[str], start: int, max_tokens: int) -> str:
    """Format the state and size of each source, one per line; first those that need attention."""
    if not sources:
        return "No sources are declared, and nothing is indexed."
    ordered = sorted(sources, key=lambda present: present.status.state == "ok")
    notes = [f"Note: {warning}" for warning in warnings]
    parts = [*map(_source, ordered)][start:]
    return budget.fit_page(parts, "sources", start, max_tokens, notes=notes, separator="\n")


def _source(present: "CheckedSource") -> str:
    one, entry = present.status, present.status.entry
    doubt = ["may be out of date: its files or settings have changed, or this could not be determined"]
    notes = [one.state, *(doubt if present.is_current is False else ())]
    why = [on_one_line(one.problem)] if one.problem else []
    if entry is None:
        return f"- {one.source}: {'; '.join([', '.join(notes), *why])}"
    why += index_limitations(entry) if one.state != "degraded" else ()
    languages = sorted(entry.languages, key=lambda name: (-entry.languages[name], name))[:_LANGUAGES]
    figures = f"{entry.files:,} files, {entry.chunks:,} chunks, {', '.join(languages)}"
    revision = f", revision {entry.revision}" if entry.revision else ""
    dated = f"content from {entry.changed_at[:_DAY]}{revision}"
    return f"- {one.source}: {'; '.join([', '.join(notes), *why, figures, dated])}"
