"""Search requests with a project's settings, for the command line, agents and other programs.

Adds the model and reranker named in the settings, and checks whether the files of the results are unchanged since
indexing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial

from pydantic import ValidationError

from docindex_dagster.core.errors import QueryError, SettingsError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.references import Reference
from docindex_dagster.core.safe_text import well_formed
from docindex_dagster.core.settings import EmbeddingSettings, RerankSettings, Settings
from docindex_dagster.core.traces import spanned
from docindex_dagster.embedding.protocol import Embedder
from docindex_dagster.embedding.providers import embedder_named, shared_embedder
from docindex_dagster.search.candidates import Pool
from docindex_dagster.search.context import Context, add_linked_chunks, pack
from docindex_dagster.search.engine import search
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.freshness import change_notes, original_texts, with_locations
from docindex_dagster.search.lookup import check_filters
from docindex_dagster.search.matches import Matches, find_matches, lines_of
from docindex_dagster.search.model import RETRIEVING, Granularity, Hit, Intent, Mode
from docindex_dagster.search.reranking.protocol import Reranker, ignore_warning
from docindex_dagster.search.reranking.providers import load_reranker
from docindex_dagster.search.similar import similar
from docindex_dagster.search.text_scan import Pattern
from docindex_dagster.search.weights import WEIGHTS, WEIGHTS_OF_CONTEXT, Weights
from docindex_dagster.sources import registry
from docindex_dagster.stores.damage import reading_stores
from docindex_dagster.stores.reader import Reader

_CONTEXT_CANDIDATES = 50  # hits to consider for a context
_TOKENS_PER_HIT = 100  # a larger budget considers more hits


@dataclass(frozen=True, slots=True)
class Request:
    """A search request. `rerank` overrides the reranker in the settings; without `intent`, the query's form decides."""

    query: str
    mode: Mode = Mode.HYBRID
    granularity: Granularity = Granularity.CHUNK
    top_k: int = 10
    filters: Filters = field(default_factory=Filters)
    rerank: str | None = None
    intent: Intent | None = None


def hits_of(
    settings: Settings,
    reader: Reader,
    request: Request,
    warn: Callable[[str], None] = ignore_warning,
    weights: Weights = WEIGHTS,
) -> list[Hit]:
    """Return the best hits, each with whether its file changed since; a warning lists other changes of the sources.

    Raises:
        QueryError: see `search`, or no indexed chunk matches the filters.
        EmbeddingError: see `search`.
        DamagedStoreError: see `search`.
        SettingsError: the requested reranker lacks a setting.
    """
    notes: list[str] = []
    found = search(
        reader,
        request.query,
        lambda: shared_embedder(settings.embedding),
        mode=request.mode,
        granularity=request.granularity,
        top_k=request.top_k,
        filters=request.filters,
        pool=settings.search.candidates,
        weights=weights,
        reranker=_reranker(settings.rerank, request.rerank, warn),
        intent=request.intent,
        former=partial(_previous_embedder, settings.embedding),
        warn=notes.append,
    )
    if not found:
        check_filters(reader, request.filters)  # its error is more specific than the note that nothing is close
    for note in notes:
        warn(note)
    _warn_of_edits(settings, reader, request, [hit.source for hit in found], warn)
    return with_locations(found, registry.sources(settings))


@spanned("matches")
def matches_of(
    settings: Settings, reader: Reader, request: Request, warn: Callable[[str], None] = ignore_warning
) -> Matches:
    """Return every match of an exact text or pattern, the first `request.top_k` with their files; 0 for all.

    A warning lists the changes of the sources since they were indexed.

    Raises:
        QueryError: the text is empty, the pattern is invalid, the search takes too long, or no indexed chunk matches
            the filters.
    """
    if not request.query:
        raise QueryError("the query is empty: say what to search for")
    pattern = Pattern(well_formed(request.query), is_regex=request.mode is Mode.REGEX)
    request.filters.check(reader.index.schema)
    sources = registry.sources(settings)
    with reading_stores():
        pool = Pool(reader, request.filters, request.top_k)
        found = find_matches(pool, pattern, original_texts(Layout(settings.home), sources))
    if not found.total:
        check_filters(reader, request.filters)
    _warn_of_edits(settings, reader, request, [match.source for match in found.matches], warn)
    return replace(found, matches=tuple(with_locations(found.matches, sources)))


def lines_of_files(settings: Settings, reader: Reader, found: Matches) -> dict[tuple[str, str], dict[int, str]]:
    """Return the lines of each matched file by number, by source and path."""
    pool, original = Pool(reader, Filters(), 0), original_texts(Layout(settings.home), registry.sources(settings))
    files = {(match.source, match.path): match for match in found.matches}
    return {key: lines_of(pool, match, original) for key, match in files.items()}


@spanned("similar")
def similar_to(
    settings: Settings,
    reader: Reader,
    readings: Sequence[Reference],
    request: Request,
    warn: Callable[[str], None] = ignore_warning,
    *,
    same_file: bool = False,
) -> list[Hit]:
    """Return the chunks most similar to a location or file.

    `request.query` is the reference; the mode and granularity of the request are ignored.

    Args:
        settings: of the project.
        reader: an open generation.
        readings: possible meanings of the reference; empty for all that `core.references` finds in it.
        request: the reference, the number of hits, and their filters.
        warn: called with the changes of the sources since they were indexed.
        same_file: whether to include other chunks of the file.

    Raises:
        QueryError: see `similar`.
        DamagedStoreError: see `similar`.
    """
    filters, top_k = request.filters, request.top_k
    found = similar(reader, request.query, readings=readings, filters=filters, top_k=top_k, same_file=same_file)
    if not found:
        check_filters(reader, request.filters)
    _warn_of_edits(settings, reader, request, [hit.source for hit in found], warn)
    return with_locations(found, registry.sources(settings))


@spanned("context")
def context_of(
    settings: Settings, reader: Reader, request: Request, budget: int, warn: Callable[[str], None] = ignore_warning
) -> Context:
    """Return passages to read before answering, within a budget of tokens. `request.top_k` is ignored.

    For exact-text modes and file granularity, it contains only the hits themselves.

    Raises:
        QueryError: see `search`.
        DamagedStoreError: see `search`.
        EmbeddingError: see `search`.
        SettingsError: see `hits_of`.
    """
    expanded = replace(request, top_k=max(_CONTEXT_CANDIDATES, budget // _TOKENS_PER_HIT))
    if request.mode not in RETRIEVING or request.granularity is Granularity.FILE:
        return pack(request.query, hits_of(settings, reader, expanded, warn), budget)
    hits = hits_of(settings, reader, expanded, warn, WEIGHTS_OF_CONTEXT)
    if hits:
        pool = Pool(reader, request.filters, expanded.top_k)
        hits = with_locations(add_linked_chunks(pool, request.query, hits, warn), registry.sources(settings))
    return pack(request.query, hits, budget)


@spanned("look for edits")
def _warn_of_edits(
    settings: Settings, reader: Reader, request: Request, found_in: Sequence[str], warn: Callable[[str], None]
) -> None:
    """Warn of changes in the searched sources, checking those with results first."""
    declared = registry.sources(settings)
    searched = request.filters.sources or tuple(reader.generation.sources)
    keys = dict.fromkeys((*found_in, *searched))
    sources = (declared[key] for key in keys if key in declared and key in reader.generation.sources)
    for note in change_notes(Layout(settings.home), sources, settings.search.look_s):
        warn(note)


@cache
def _previous_embedder(settings: EmbeddingSettings, name: str) -> Embedder | None:
    return embedder_named(name, settings)


def _reranker(settings: RerankSettings, name: str | None, warn: Callable[[str], None]) -> Reranker | None:
    return load_reranker(settings if name is None else rerank_settings(settings, name), warn)


def rerank_settings(settings: RerankSettings, name: str) -> RerankSettings:
    """Return the settings with another reranker.

    Raises:
        SettingsError: the reranker does not exist, or lacks a setting.
    """
    try:
        return RerankSettings(**{**dict(settings), "provider": name})
    except ValidationError as error:
        raise SettingsError(error.errors()[0]["msg"].removeprefix("Value error, ")) from error
