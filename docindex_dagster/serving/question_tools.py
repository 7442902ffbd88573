"""Tools of an agent that answers a question: those of `tools`, limited to what the question may read.

Arguments and descriptions are the same. The results differ: they are numbered passages, which an answer can cite.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import BaseModel, ValidationError

from docindex_dagster.answering.agent import ToolResult
from docindex_dagster.answering.question import Question
from docindex_dagster.core.errors import QueryError, SourceError
from docindex_dagster.core.safe_text import well_formed
from docindex_dagster.core.schemas import COMMIT
from docindex_dagster.core.settings import Settings
from docindex_dagster.graph import queries
from docindex_dagster.llm.chat import Tool
from docindex_dagster.operations.context import ContextRequest
from docindex_dagster.operations.fields import describe_errors
from docindex_dagster.operations.graph import GraphRequest
from docindex_dagster.operations.log import LOG, LogRequest
from docindex_dagster.operations.search import SearchRequest, Where
from docindex_dagster.operations.show import ShowRequest
from docindex_dagster.operations.view import View
from docindex_dagster.render import budget, markdown
from docindex_dagster.search import snippets
from docindex_dagster.search.context import Context, ContextPassage, pack
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.freshness import with_locations
from docindex_dagster.search.hits import hit_of
from docindex_dagster.search.live_index import Live
from docindex_dagster.search.log import CommitFilters, commits_of
from docindex_dagster.search.lookup import find_chunks, node_name
from docindex_dagster.search.matches import Match, excerpt_around
from docindex_dagster.search.model import Granularity, Hit, Intent, Mode, Scored
from docindex_dagster.search.scope import key_of
from docindex_dagster.search.service import Request, context_of, hits_of, matches_of
from docindex_dagster.serving import arguments
from docindex_dagster.serving.tools import Tools
from docindex_dagster.sources import registry
from docindex_dagster.stores.reader import Reader
from docindex_dagster.stores.tantivy_index import rows as rows_by_id

_MAX_COMMITS = 1000  # commits to read if a call narrows the paths of a question
_CONTEXT_SHARE = 0.8  # leaves space for fences, which are longer than the headings that `context_of` counts
_OVERHEAD_TOKENS = 80  # per text, for its fence, location, kind and name
_MAX_LISTED = 20  # sources listed in an error
_FILTERED = ("source", "path", "language", "human_language", "source_type", "symbol_kind")


@dataclass(frozen=True, slots=True)
class Within:
    """One generation, limited by the filters of a question."""

    settings: Settings
    reader: Reader
    filters: Filters

    @property
    def view(self) -> View:
        """The generation without filters."""
        return View(self.settings, self.reader, is_local=False)

    @property
    def sources(self) -> tuple[str, ...]:
        """The keys of all sources that the question may read."""
        return self.filters.sources or tuple(self.reader.generation.sources)

    @property
    def is_unrestricted(self) -> bool:
        """Whether every source is unrestricted."""
        return replace(self.filters, sources=()) == Filters()

    def keys(self, names: Sequence[str] | None) -> tuple[str, ...]:
        """Return the keys of the sources that a call names, or those of the question; empty for all.

        Raises:
            QueryError: the question may not read one of them.
        """
        if not names:
            return self.filters.sources
        return tuple(self._key(name) for name in names)

    def narrowed(self, where: Where) -> Filters:
        """Combine the filters of the question and of a call. Paths are relative to a source, never on the disk.

        Raises:
            QueryError: nothing can pass both, or a value in the call is invalid.
        """
        keys, path = self.keys(where.sources), where.path
        anywhere = where.model_copy(update={"sources": [], "all_sources": True, "path": None})
        call = anywhere.filters(self.view)
        own = self.filters
        found = replace(
            own,
            sources=keys,
            languages=_intersect("languages", own.languages, call.languages),
            human_languages=_intersect("human_languages", own.human_languages, call.human_languages),
            source_types=_intersect("types", own.source_types, call.source_types),
            symbol_kinds=_intersect("kinds", own.symbol_kinds, call.symbol_kinds),
        )
        return self._on_path(found, path.removeprefix("./")) if path else found

    def holds(self, rows: Sequence[Mapping[str, Any]], filters: Filters | None = None) -> NDArray[np.bool_]:
        """Return which chunks pass: booleans of shape (rows,). Commits pass unless the filters are about files."""
        table = pa.table({name: pa.array([row[name] for row in rows], pa.string()) for name in _FILTERED})
        own = filters or self.filters
        of_commits = replace(own, source_types=own.source_types or (COMMIT,))
        return own.to_mask(table) | of_commits.to_mask(table)

    def holds_paths(self, source: str, paths: Sequence[str], filters: Filters) -> NDArray[np.bool_]:
        """Return which paths of a source pass the path filters: booleans of shape (paths,)."""
        on_path = Filters(path_glob=filters.path_glob, places=filters.places)
        rows = [dict.fromkeys(_FILTERED, "") | {"source": source, "path": path} for path in paths]
        return self.holds(rows, on_path)

    def _key(self, name: str) -> str:
        try:
            key = key_of(self.settings, self.reader.generation, name)
        except SourceError:
            key = ""
        if key not in self.sources:
            named = ", ".join(self.sources[:_MAX_LISTED])
            more = f" and {len(self.sources) - _MAX_LISTED} more" if len(self.sources) > _MAX_LISTED else ""
            raise QueryError(f"{name!r} is not a source of this question: {named}{more}")
        return key

    def _on_path(self, filters: Filters, glob: str) -> Filters:
        if filters.path_glob is None:
            return replace(filters, path_glob=glob)
        if filters.places:
            raise QueryError("path: the question is already limited to paths; leave out this argument")
        return replace(filters, places=tuple((key, glob) for key in filters.sources or self.sources))


def _intersect(argument: str, own: tuple[str, ...], call: tuple[str, ...]) -> tuple[str, ...]:
    """Return the values that pass both filters. An empty filter passes everything."""
    if not own or not call:
        return own or call
    if found := tuple(value for value in call if value in own):
        return found
    raise QueryError(f"{argument}: the question is limited to {', '.join(own)}, got {', '.join(call)}")


@dataclass(eq=False)
class QuestionTools:
    """The tools for one question. They search a project, and the question's filters apply to every call."""

    live: Live
    question: Question

    @cached_property
    def tools(self) -> tuple[Tool, ...]:
        """The tool definitions that the model receives."""
        return tuple(
            Tool(name, inspect.getdoc(getattr(Tools, name)) or "", arguments.schema_of(model))
            for name, model in _ARGUMENTS.items()
        )

    def call(self, name: str, arguments: Mapping[str, Any], max_tokens: int) -> ToolResult:
        """Call a tool.

        Raises:
            QueryError: unknown tool or invalid arguments.
            DocindexError: the call failed.
        """
        values, tool = _values(name, arguments), _TOOLS[name]

        def run(reader: Reader) -> ToolResult:
            within = Within(self.live.settings, reader, self.question.filters(reader))
            return tool(within, max_tokens - _OVERHEAD_TOKENS, **values)

        return self.live.reading(run)


def _values(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    if name not in _ARGUMENTS:
        raise QueryError(arguments.unknown_tool(name, _ARGUMENTS))
    model = _ARGUMENTS[name]
    if problem := arguments.unknown_arguments(name, given, model.model_fields):
        raise QueryError(problem)
    try:
        values = model.model_validate(given)
    except ValidationError as error:
        raise QueryError(describe_errors(error)) from None
    return {field: getattr(values, field) for field in model.model_fields}


def _search(within: Within, max_tokens: int, *, top_k: int, cursor: str | None, **given: Any) -> ToolResult:
    start = budget.start_of(cursor)
    end = start + top_k
    asked = SearchRequest(**given)
    mode, granularity = Mode(asked.mode), Granularity(asked.granularity)
    intent = Intent(asked.intent) if asked.intent else None
    request = Request(asked.query, mode, granularity, end + 1, within.narrowed(asked), intent=intent)
    if asked.is_listing:
        return _matches(within, request, start, max_tokens)
    hits = hits_of(within.settings, within.reader, request)
    passages = _fit([_best_lines(hit) for hit in hits[start:end]], max_tokens)
    notes = ["No result is close to the query."] if hits and hits[0].is_weak else []
    notes += _more(start + len(passages), len(hits))
    return ToolResult(_counts(passages), "\n".join(notes), _context(asked.query, passages))


def _matches(within: Within, request: Request, start: int, max_tokens: int) -> ToolResult:
    found = matches_of(within.settings, within.reader, request)
    page = found.matches[start : request.top_k - 1]
    passages = _fit([_line(within.reader, match) for match in page], max_tokens)
    notes = [f"Matches in all: {found.total:,}, in files: {found.files:,}."]
    notes += _more(start + len(passages), found.total)
    return ToolResult(_counts(passages), "\n".join(notes), _context(request.query, passages))


def _read_context(within: Within, max_tokens: int, **given: Any) -> ToolResult:
    asked = ContextRequest(**given)
    intent = Intent(asked.intent) if asked.intent else None
    request = Request(asked.query, filters=within.narrowed(asked), intent=intent)
    context = context_of(within.settings, within.reader, request, int(max_tokens * _CONTEXT_SHARE))
    return ToolResult(_counts(context.passages), context=context)


def _show(within: Within, max_tokens: int, *, cursor: str | None, **given: Any) -> ToolResult:
    request, start = ShowRequest(**given), budget.start_of(cursor)
    rows = _rows(within, well_formed(request.reference), within.keys(request.sources))
    hits = [hit_of(row, Scored.of(row["chunk_id"], ()), snippets.of_words(frozenset())) for row in rows[start:]]
    fitting = hits[: _count([hit.token_count for hit in hits], max_tokens)]
    context = pack(request.reference, with_locations(fitting, registry.sources(within.settings)), max_tokens)
    return ToolResult(_counts(context.passages), "\n".join(_more(start + len(fitting), len(rows))), context)


def _rows(within: Within, reference: str, keys: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the chunks of a reference that the question may read, without a hint at any others."""
    try:
        found = find_chunks(within.reader, reference, keys)
    except QueryError:
        if within.is_unrestricted:
            raise
        found = []
    if rows := [row for row, is_held in zip(found, within.holds(found), strict=True) if is_held]:
        return rows
    raise QueryError(f"no indexed chunk in the scope of this question is named {reference!r}")


def _graph(within: Within, max_tokens: int, *, question: str, cursor: str | None, **given: Any) -> ToolResult:
    request, start = GraphRequest(**given), budget.start_of(cursor)
    keys = within.keys(request.sources)
    opened = within.reader.graph_of(keys) if keys else within.reader.graph
    if question == "stats":
        if not within.is_unrestricted:
            raise QueryError("stats cover entire sources, but this question may read only parts of them")
        return ToolResult("graph statistics", markdown.of_statistics(opened, max_tokens))
    symbol, to = (
        node_name(within.reader, opened, well_formed(end)) if end else "" for end in (request.symbol, request.to)
    )
    known = queries.answer_query(opened, question, symbol, to, request.depth)
    steps = _visible_steps(within, known)
    notes = [markdown.sentence(text) for text in queries.notes(opened, question, symbol, to, known)]
    notes += ["Edges outside the scope of the question are left out."] if len(steps) < len(known) else []
    text = markdown.of_steps(steps, notes, start, max_tokens, is_backward=question in queries.BACKWARD)
    return ToolResult(f"edges: {len(steps)}", text)


def _visible_steps(within: Within, steps: Sequence[queries.Step]) -> list[queries.Step]:
    """Return the edges whose evidence the question may read."""
    if within.is_unrestricted:
        return [*steps]
    reader = within.reader
    rows = rows_by_id(reader.searcher, reader.index.schema, {step.chunk_id for step in steps})
    held = {
        row["chunk_id"] for row, is_held in zip(rows.values(), within.holds([*rows.values()]), strict=True) if is_held
    }
    return [step for step in steps if step.chunk_id in held]


def _log(within: Within, max_tokens: int, *, top_k: int, cursor: str | None, **given: Any) -> ToolResult:
    request, start = LogRequest(**given), budget.start_of(cursor)
    end = start + top_k
    narrowed = within.narrowed(Where(sources=request.sources, path=request.path))
    limit = _MAX_COMMITS if narrowed.places else end + 1
    filters = CommitFilters(narrowed.sources, request.author, request.since, narrowed.path_glob)
    found = commits_of(within.settings, within.reader, request.query, top_k=limit, filters=filters)
    rows = [row for commit in found if (row := _on_path(within, commit, narrowed))]
    return ToolResult(
        f"commits: {len(rows[start:end])}", markdown.of_list(rows, top_k, start, (), max_tokens, nothing=LOG.nothing)
    )


def _on_path(within: Within, commit: Mapping[str, Any], filters: Filters) -> dict[str, Any] | None:
    """Return a commit with only those files that the question may read; None if there are none."""
    if filters.path_glob is None and not filters.places:
        return {**commit}
    is_held = within.holds_paths(commit["source"], [file["path"] for file in commit["files"]], filters)
    files = [file for file, held in zip(commit["files"], is_held, strict=True) if held]
    counts = {"file_count": len(files), "insertions": None, "deletions": None}
    return {**commit, **counts, "files": files} if files else None


def _best_lines(hit: Hit) -> ContextPassage:
    first = min(hit.start_line + hit.snippet.offset, hit.end_line)
    text = hit.snippet.text
    return ContextPassage(
        source=hit.source,
        path=hit.path,
        start_line=first,
        end_line=min(first + text.count("\n"), hit.end_line),
        kind=hit.chunk_type,
        name=hit.title or None,
        language=hit.language,
        text=text,
        tokens=0,
        chunk_ids=(hit.chunk_id,),
        stale=hit.stale,
        page=hit.page,
        score=hit.score,
    )


def _line(reader: Reader, match: Match) -> ContextPassage:
    of_file = find_chunks(reader, match.path, (match.source,))
    row = next((row for row in of_file if row["start_line"] <= match.line <= row["end_line"]), of_file[0])
    return ContextPassage(
        source=match.source,
        path=match.path,
        start_line=match.line,
        end_line=match.line,
        kind="line",
        name=None,
        language=row["language"],
        text=excerpt_around(match)[0],
        tokens=0,
        chunk_ids=(row["chunk_id"],),
        stale=match.stale,
        page=match.page,
    )


def _context(query: str, passages: Sequence[ContextPassage]) -> Context:
    """Return a context of passages of one or a few lines, without merging overlapping ones."""
    return Context(query, len(passages), 0, 0, tuple(dict.fromkeys(passages)))


def _fit(passages: Sequence[ContextPassage], max_tokens: int) -> Sequence[ContextPassage]:
    return passages[: _count(budget.sizes([passage.text for passage in passages]), max_tokens)]


def _count(sizes: Sequence[int], max_tokens: int) -> int:
    """Return how many texts fit, each with its surroundings; at least one, which is cut if needed."""
    ends = accumulate(size + _OVERHEAD_TOKENS for size in sizes)
    return max(1, sum(1 for end in ends if end <= max_tokens))


def _more(shown: int, found: int) -> list[str]:
    return [*filter(None, [budget.more(None if shown < found else 0, shown, "results")])]


def _counts(passages: Sequence[ContextPassage]) -> str:
    files = {(passage.source, passage.path) for passage in passages}
    return f"passages: {len(passages)}, files: {len(files)}"


_TOOLS: Mapping[str, Callable[..., ToolResult]] = {
    "search": _search,
    "context": _read_context,
    "show": _show,
    "graph": _graph,
    "log": _log,
}
_ARGUMENTS: Mapping[str, type[BaseModel]] = {
    name: arguments.model_of(getattr(Tools, name), without=("max_tokens",)) for name in _TOOLS
}
