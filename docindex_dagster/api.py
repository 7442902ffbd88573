"""Python API: `open_index`, and the queries of an index. See docs/how-to/search-from-python.md for examples."""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

from docindex_dagster import operations
from docindex_dagster.core.errors import DocindexWarning, QueryError, SourceError
from docindex_dagster.core.safe_text import well_formed
from docindex_dagster.core.settings import Settings, own_home, untrusted_message
from docindex_dagster.core.signatures import parameters_from_keys, with_parameters
from docindex_dagster.core.trust import trust_in
from docindex_dagster.operations.context import ContextRequest
from docindex_dagster.operations.fields import Request
from docindex_dagster.operations.search import MatchesRequest, SearchRequest
from docindex_dagster.operations.similar import SimilarRequest
from docindex_dagster.operations.view import View
from docindex_dagster.search.context import Context
from docindex_dagster.search.live_index import Live
from docindex_dagster.search.matches import Matches
from docindex_dagster.search.model import (
    Granularity,
    GranularityName,
    Hit,
    Intent,
    IntentName,
    Mode,
    ModeName,
    SourceType,
)
from docindex_dagster.search.scope import keys_of
from docindex_dagster.sources.projects import choose
from docindex_dagster.stores.reader import Reader

if TYPE_CHECKING:
    from networkx import MultiDiGraph

    from docindex_dagster.graph.analysis import Statistics
    from docindex_dagster.graph.open_graph import OpenGraph
    from docindex_dagster.graph.queries import Step
    from docindex_dagster.operations.graph import Question
    from docindex_dagster.operations.status import SourceStatus
    from docindex_dagster.stores.published_tables import Tables

_Answer = TypeVar("_Answer")
_Request = TypeVar("_Request", bound=Request)
_LOOK_S = 1.0  # to check whether files have changed
_CONTEXT_TOKENS = 4000
_DEFAULT_IMPACT_DEPTH, _DEFAULT_PATH_DEPTH = 5, 12  # edges
_MOST_HITS = 1000
_FIELDS = {"source_types": "types", "symbol_kinds": "kinds"}  # fields of requests with different names
# One or more names.
Names = str | Sequence[str]


class Where(TypedDict, total=False):
    """Filters of a search; all of them are optional.

    Attributes:
        sources: Search only these sources.
        all_sources: Include secondary branches, and ignore the default source in the settings.
        path: Search only this folder, or paths that match this glob, such as `src/**/*.py`.
        languages: Search only these languages, such as `python`.
        human_languages: Search only documents written in these languages, such as `en`.
        source_types: Search only files of these types; commits are included only if requested here.
        symbol_kinds: Search only chunks of these kinds, such as `function` or `class`.
    """

    sources: Names
    all_sources: bool
    path: str | None
    languages: Names
    human_languages: Names
    source_types: SourceType | Sequence[SourceType]
    symbol_kinds: Names


def open_index(
    path: Path | str | None = None,
    *,
    home: Path | str | None = None,
    warn: Callable[[str], None] | None = None,
) -> "Index":
    """Open the published index of a project for any number of queries.

    Args:
        path: A folder of the project (`docindex.toml` is searched for in it and its parents), or one that a known
            project indexes. None for the value of `DOCINDEX_ROOT` or `DOCINDEX_PROJECT`, or else the working
            directory, as on the command line.
        home: The location of the index. None for the value of `DOCINDEX_HOME`, or else `.docindex` next to
            `docindex.toml`. Unless the project is fully trusted, a home inside the project is a folder in it with a
            secret name.
        warn: Called with a sentence on whatever degraded an answer, such as an unreachable model. None for Python's
            `warnings`, with the category `DocindexWarning`.

    Returns:
        The index, which does not need to be closed.

    Raises:
        SourceError: The folder does not exist, has no project, or is indexed by several projects.
        SettingsError: `docindex.toml` or an environment variable has an invalid value.
        StoreError: Nothing is indexed yet, or the index is damaged (`DamagedStoreError`).
        AccessError: This user may not read the index.

    Example:
        >>> from docindex_dagster import open_index
        >>> index = open_index("~/src/project")
        >>> for hit in index.search("how are sessions signed", top_k=3):
        ...     print(hit.path, hit.start_line, hit.title)
    """
    start = None if path is None else Path(path).expanduser()
    if start is not None and not start.exists():
        raise SourceError(f"path not found: {well_formed(str(start))}")
    settings = choose(start).settings()
    report = warn or (lambda note: warnings.warn(note, DocindexWarning, stacklevel=3))
    if note := untrusted_message(settings):
        report(note)
    if home is not None:
        place = Path(home).expanduser().absolute()
        settings = settings.model_copy(update={"home": own_home(settings.root, place, trust_in(settings.root))})
    if settings.storage.url is not None:
        from docindex_dagster.objects.shared_stores import follow

        follow(settings, report)
    return Index(settings, warn)


class Index:
    """Published index, returned by `open_index`; safe to use from several threads.

    Each answer comes from the generation that is published at the time of the query. So an open index finds what is
    published later, and changes to `docindex.toml` take effect immediately.

    Sources are named as `docindex source list` shows them, such as `library/docs`, or by a unique short name, such as
    `docs`. If none is named, `search` and `context` use the default source in the settings (`search.default_source`),
    or else all sources except secondary branches.
    """

    def __init__(self, settings: Settings, warn: Callable[[str], None] | None = None) -> None:
        """See `open_index`."""
        self._live = Live(settings)
        self._warn = warn
        self._live.reading(lambda reader: reader.generation)  # raises if the index cannot be read

    def __repr__(self) -> str:
        return f"Index({str(self._live.settings.root)!r})"

    @property
    def generation(self) -> int:
        """Number of the currently published generation.

        Raises:
            StoreError: As for `open_index`.
        """
        return self._live.reading(lambda reader: reader.generation.number)

    @property
    def graph(self) -> "Graph":
        """Knowledge graph of the index: callers, impact of changes, paths between symbols."""
        return Graph(self._live, self._report)

    @with_parameters(parameters_from_keys(Where))
    def search(
        self,
        query: str,
        *,
        top_k: int | None = None,
        mode: Mode | ModeName = Mode.HYBRID,
        granularity: Granularity | GranularityName = Granularity.CHUNK,
        intent: Intent | IntentName | None = None,
        rerank: str | None = None,
        **where: Unpack[Where],
    ) -> list[Hit]:
        """Return the best chunks for a query, like `docindex search`.

        Args:
            query: Any text: a question, keywords, a name, a path, an error message.
            top_k: The maximum number of hits, 1 to 1,000. None for `search.top_k` in the settings, 10 by default.
            mode: The retrievers to use. `literal` and `regex` (RE2) read every text.
            granularity: Whether to return the best chunks, or the best chunk of each file.
            intent: The purpose of the query, such as `change` for a bug report; None to decide by its form.
            rerank: The reranker for the best hits, such as `mmr`; None for the one in the settings.
            **where: Filters, see `Where`.

        Returns:
            Hits, best first. `score` is unitless, and is the sum of the `contribution` of all `signals`. Lines count
            from 1, and bytes of the UTF-8 text from 0. Empty if nothing is found.

        Raises:
            QueryError: The query is empty, or a filter refers to something that does not exist.
            SourceError: A source is unknown or not indexed.
            SettingsError: The reranker does not exist, or lacks a setting.
            EmbeddingError: The mode uses only vectors, and the model failed. The mode `hybrid` warns instead.
            StoreError: As for `open_index`.

        Example:
            >>> index.search("valve", mode="bm25", languages="python", path="src")
        """
        request = _request(
            SearchRequest, where, query=query, mode=mode, granularity=granularity, intent=intent, rerank=rerank
        )
        return self._query(lambda view: operations.search.search(view, request, self._limit(top_k)))

    @with_parameters(parameters_from_keys(Where))
    def matches(
        self,
        text: str,
        *,
        regex: bool = False,
        limit: int = 100,
        **where: Unpack[Where],
    ) -> Matches:
        """Return all occurrences of a text or a pattern, like `docindex search --mode literal`.

        Args:
            text: The literal text or, with `regex`, a regular expression in RE2 syntax, where `^` and `$` match at
                line boundaries.
            regex: Whether the text is a pattern.
            limit: The maximum number of matches, in order of source, path and position; 0 for all.
            **where: Filters, see `Where`.

        Returns:
            The matches, and their total number. Lines and columns count from 1, columns in characters.

        Raises:
            QueryError: The text is empty or an invalid pattern, the search takes too long, or a filter refers to
                something that does not exist.
            SourceError: A source is unknown or not indexed.
            StoreError: As for `open_index`.

        Example:
            >>> index.matches("TODO", path="src").total
        """
        request = _request(MatchesRequest, where, query=text, mode="regex" if regex else "literal")
        most = limit and _check_range("limit", limit)
        return self._query(lambda view: operations.search.matches(view, request, most))

    @with_parameters(parameters_from_keys(Where))
    def similar(
        self,
        place: str,
        *,
        top_k: int | None = None,
        same_file: bool = False,
        **where: Unpack[Where],
    ) -> list[Hit]:
        """Return chunks that resemble a location or a file, like `docindex similar`, without calling a model.

        Args:
            place: A path on disk or in a source, optionally with `:LINE`, or the id of a chunk.
            top_k: As for `search`.
            same_file: Whether to include other chunks of the same file.
            **where: Filters for the hits, see `Where`.

        Returns:
            Hits, nearest first; `score` is the cosine of the vectors, -1 to 1.

        Raises:
            QueryError: The place is not indexed, or is in several sources; or as for `search`.
            SourceError: As for `search`.
            StoreError: As for `open_index`.

        Example:
            >>> index.similar("src/station.py:12", source_types="doc")
        """
        request = _request(SimilarRequest, where, place=place, same_file=same_file)
        return self._query(lambda view: operations.similar.similar(view, request, self._limit(top_k)))

    @with_parameters(parameters_from_keys(Where))
    def context(
        self,
        query: str,
        *,
        budget: int = _CONTEXT_TOKENS,
        mode: Mode | ModeName = Mode.HYBRID,
        intent: Intent | IntentName | None = None,
        rerank: str | None = None,
        **where: Unpack[Where],
    ) -> Context:
        """Return the best passages for a query that fit a token budget, for use in a prompt.

        Args:
            query: As for `search`.
            budget: The maximum number of tokens in `Context.markdown`, as docindex counts them; language models count
                about as many.
            mode: As for `search`.
            intent: As for `search`.
            rerank: As for `search`.
            **where: Filters, see `Where`.

        Returns:
            Passages in reading order, without repeats. `markdown` has all of them as one text, `tokens` its length.

        Raises:
            QueryError: As for `search`.
            SourceError: As for `search`.
            SettingsError: As for `search`.
            EmbeddingError: As for `search`.
            StoreError: As for `open_index`.

        Example:
            >>> prompt = index.context("how are sessions signed", budget=2000).markdown
        """
        most = _check_range("budget", budget)
        values = {"mode": mode, "intent": intent, "rerank": rerank, "tokens": most}
        request = _request(ContextRequest, where, query=query, **values)
        return self._query(lambda view: operations.context.context(view, request))

    def sources(self, *, look_s: float | None = _LOOK_S) -> "list[SourceStatus]":
        """Return the state of each source that is declared or indexed, like `docindex status --json`.

        Dagster records the outcomes of runs, which are unknown here: no state is `failed` or `not checked lately`, and
        `checked_at`, `last_run`, `run_id` and `failure` are None.

        Args:
            look_s: Seconds to spend on checking whether files have changed; None for no limit. `is_current` is None for
                sources that were not checked.

        Returns:
            The sources, by key. `files`, `chunks` and `commits` count searchable items, `megabytes` are 10^6 bytes of
            text, and times are UTC in ISO 8601.

        Raises:
            QueryError: `look_s` is negative.
            SettingsError: Two sources have the same key.
            EmbeddingError: The configured model is not available.
            StoreError: The published index cannot be read.
        """
        from docindex_dagster.operations.status import StatusRequest, status

        notes: list[str] = []
        found = status(self._live.settings, StatusRequest.parse(look_s=look_s), lambda _: None, notes.append)
        self._report(notes)
        return found.rows()

    def tables(self, sources: Names = ()) -> "Tables":
        """Return the tables of the published index: chunks, embeddings, graph and commits, as Arrow, pandas and NumPy.

        Args:
            sources: The sources to include. By default all, including secondary branches.

        Returns:
            Tables of one generation, which do not change with later ones.

        Raises:
            SourceError: A source is unknown or not indexed.
            StoreError: As for `open_index`, or another version of docindex made the index.

        Example:
            >>> tables = index.tables()
            >>> tables.chunks.to_pandas(["path", "language", "token_count"]).groupby("language").sum("token_count")
            >>> tables.vectors().shape
        """
        from docindex_dagster.stores.published_tables import open_tables

        names = _names(sources)

        def opened(reader: Reader) -> "Tables":
            keys = keys_of(self._live.settings, reader.generation, names, all_sources=not names)
            return open_tables(reader, keys or tuple(reader.generation.sources))

        return self._live.reading(opened)

    def _limit(self, top_k: int | None) -> int:
        return self._live.settings.search.top_k if top_k is None else _check_range("top_k", top_k, _MOST_HITS)

    def _query(self, ask: Callable[[View], _Answer]) -> _Answer:
        """Run a query on one generation, and report its warnings."""
        notes: list[str] = []
        found = self._live.reading(lambda reader: ask(View(self._live.settings, reader, notes.append)))
        self._report(notes, stacklevel=4)
        return found

    def _report(self, notes: Sequence[str], *, stacklevel: int = 3) -> None:
        """Report warnings to `warn` or, for the caller's line, to Python's `warnings`."""
        for note in dict.fromkeys(notes):
            if self._warn is not None:
                self._warn(note)
            else:
                warnings.warn(note, DocindexWarning, stacklevel=stacklevel)


class Graph:
    """Knowledge graph of an index, returned by `Index.graph`; like `Index`, it follows what is published.

    A symbol is named by its qualified name or the end of it, such as `Store.add`, or by `PATH::Store.add`; a file is
    named by its path. Steps name nodes as `SOURCE!NODE`; lines count from 1, and `confidence` is 1 for edges that were
    not guessed.
    """

    def __init__(self, live: Live, warn: Callable[[Sequence[str]], None]) -> None:
        """See `Index.graph`."""
        self._live = live
        self._warn = warn

    def callers(self, symbol: str, *, depth: int = 1, sources: Names = ()) -> "list[Step]":
        """Return the callers of a function, method or class, and their callers, up to a depth.

        Args:
            symbol: The callee.
            depth: The maximum number of calls to follow.
            sources: Use only the graphs of these sources.

        Returns:
            Calls, nearest first: `subject` calls `object`. If there are none, a warning says what was not searched.

        Raises:
            QueryError: No symbol matches, or too many do; the error suggests names or lists the matches.
            SourceError: A source is unknown or not indexed.
            StoreError: As for `open_index`.

        Example:
            >>> [step.subject for step in index.graph.callers("prime_pump")]
        """
        return self._query_graph("callers", symbol=symbol, depth=depth, sources=sources)

    def callees(self, symbol: str, *, depth: int = 1, sources: Names = ()) -> "list[Step]":
        """Return what a function or method calls; for a class, what its methods call.

        Args:
            symbol: The caller.
            depth: As for `callers`.
            sources: As for `callers`.

        Returns:
            Calls, nearest first: `subject` calls `object`, including unresolved callees.

        Raises:
            DocindexError: As for `callers`.
        """
        return self._query_graph("callees", symbol=symbol, depth=depth, sources=sources)

    def impact(self, symbol: str, *, depth: int = _DEFAULT_IMPACT_DEPTH, sources: Names = ()) -> "list[Step]":
        """Return what may break if a symbol changes: direct and indirect callers, subclasses, users and importers.

        Args:
            symbol: The symbol that changes.
            depth: The maximum number of edges to follow.
            sources: As for `callers`.

        Returns:
            Edges, nearest first: `subject` depends on `object`.

        Raises:
            DocindexError: As for `callers`.
        """
        return self._query_graph("impact", symbol=symbol, depth=depth, sources=sources)

    def neighbors(self, symbol: str, *, predicates: Names = (), sources: Names = ()) -> "list[Step]":
        """Return all edges of a node: what it contains, calls, imports and inherits, and what documents it.

        Args:
            symbol: The symbol or other node.
            predicates: Return only these edges, such as `imports`; by default, all.
            sources: As for `callers`.

        Returns:
            Edges, outgoing ones first.

        Raises:
            DocindexError: As for `callers`.
        """
        return self._query_graph("neighbors", symbol=symbol, edges=predicates, sources=sources)

    def path(self, start: str, end: str, *, depth: int = _DEFAULT_PATH_DEPTH, sources: Names = ()) -> "list[Step]":
        """Return a short path from one node to another, along the edges or, failing that, in either direction.

        Args:
            start: The first node.
            end: The last node.
            depth: The maximum number of edges.
            sources: As for `callers`.

        Returns:
            The edges of the path; empty if there is none.

        Raises:
            DocindexError: As for `callers`.
        """
        return self._query_graph("path", symbol=start, to=end, depth=depth, sources=sources)

    def cycles(self, *, sources: Names = ()) -> list[list[str]]:
        """Return the groups of files that import each other, directly or indirectly.

        Args:
            sources: As for `callers`.

        Returns:
            Groups of nodes, each sorted, largest group first.

        Raises:
            SourceError: As for `callers`.
            StoreError: As for `open_index`.
        """
        from docindex_dagster.graph.analysis import module_cycles

        return self._analyze(module_cycles, sources)

    def statistics(self, *, sources: Names = ()) -> "Statistics":
        """Return the size of the graph, the share of resolved calls, and the most called symbols.

        Args:
            sources: As for `callers`.

        Returns:
            Counts; `resolved` is a share, 0 to 1.

        Raises:
            SourceError: As for `callers`.
            StoreError: As for `open_index`.
        """
        from docindex_dagster.graph.analysis import statistics

        return self._analyze(statistics, sources)

    def to_networkx(self, *, sources: Names = ()) -> "MultiDiGraph[str]":
        """Return the complete graph for networkx, including edges between sources, as objects in memory.

        Args:
            sources: As for `callers`.

        Returns:
            A graph with node names as nodes and predicates as edge keys; columns become attributes.

        Raises:
            SourceError: As for `callers`.
            StoreError: As for `open_index`.
        """
        from docindex_dagster.graph.analysis import as_networkx

        return self._analyze(as_networkx, sources)

    def _view(self, reader: Reader) -> View:
        return View(self._live.settings, reader, is_local=False)

    def _query_graph(self, question: "Question", **arguments: Any) -> "list[Step]":
        """Return the steps of an answer, with a warning for each symbol that has none."""
        from docindex_dagster.operations.graph import GraphRequest, graph

        request = GraphRequest.parse(**arguments)
        found = self._live.reading(lambda reader: graph(self._view(reader), question, request))
        self._warn(found.notes)
        return found.steps

    def _analyze(self, question: "Callable[[OpenGraph], _Answer]", sources: Names) -> _Answer:
        names = _names(sources)

        def answer(reader: Reader) -> "tuple[_Answer, str]":
            graph = self._view(reader).graph(names)
            return question(graph), graph.unlinked_files

        found, unlinked = self._live.reading(answer)
        self._warn([unlinked] if unlinked else [])
        return found


def _request(request: type[_Request], where: Where, **arguments: object) -> _Request:
    """Return a request with filters; None means the default of the field."""
    if unknown := where.keys() - Where.__annotations__.keys():
        raise TypeError(f"unexpected keyword argument {min(unknown)!r}")
    named = {_FIELDS.get(name, name): value for name, value in where.items()}
    return request.parse(**{name: value for name, value in {**arguments, **named}.items() if value is not None})


def _names(arguments: Names) -> list[str]:
    return [well_formed(name) for name in ([arguments] if isinstance(arguments, str) else arguments)]


def _check_range(name: str, number: int, most: int | None = None) -> int:
    if number < 1 or (most is not None and number > most):
        raise QueryError(f"{name} must be {'at least 1' if most is None else f'1 to {most:,}'}, not {number}")
    return number
