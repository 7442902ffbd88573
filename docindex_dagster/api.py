"""The Python API: `open_index`, and what can be asked of an index. docs/python.md shows it."""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

from docindex_dagster import operations
from docindex_dagster.core.errors import DocindexWarning, QueryError, SourceError
from docindex_dagster.core.safe_text import well_formed
from docindex_dagster.core.settings import Settings, own_home, untrusted
from docindex_dagster.core.signatures import of_keys, with_parameters
from docindex_dagster.core.trust import trust_in
from docindex_dagster.operations.context import ContextRequest
from docindex_dagster.operations.fields import Request
from docindex_dagster.operations.search import MatchesRequest, SearchRequest
from docindex_dagster.operations.similar import SimilarRequest
from docindex_dagster.operations.view import View
from docindex_dagster.search.context import Context
from docindex_dagster.search.live_index import Live
from docindex_dagster.search.matches import Matches
from docindex_dagster.search.model import Granularity, GranularityName, Hit, Mode, ModeName, SourceType
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
_LOOK_S = 1.0  # for looking whether files have changed
_CONTEXT_TOKENS = 4000
_FAR, _FARTHEST = 5, 12  # edges
_MOST_HITS = 1000
_FIELDS = {"source_types": "types", "symbol_kinds": "kinds"}  # of requests, where they have other names
# One name, or several.
Names = str | Sequence[str]


class Where(TypedDict, total=False):
    """The filters of a search; every part is optional.

    Attributes:
        sources: only these.
        all_sources: also further branches, and not the source alone that the settings choose.
        path: only paths in this folder, or that match this glob, such as `src/**/*.py`.
        languages: only these, such as `python`.
        human_languages: only documents that are written in these, such as `en`.
        source_types: only files for this purpose; commits are found only where they are asked for.
        symbol_kinds: only chunks of these, such as `function` or `class`.
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
    """Open the published index of a project, to ask it many times.

    Args:
        path: a folder of the project, one below it (`docindex.toml` is looked for from there upwards), or one that a
            known project indexes. None for what `DOCINDEX_ROOT` or `DOCINDEX_PROJECT` says, else the working
            directory, as on the command line.
        home: where the index lies. None for what `DOCINDEX_HOME` says, else `.docindex` beside `docindex.toml`. Inside
            the project, that is a folder with a secret name in it, unless the project is fully trusted.
        warn: called with a sentence on what made an answer worse, such as a model that cannot be reached. None for
            Python's `warnings`, as a `DocindexWarning`.

    Returns:
        The index; there is nothing to close.

    Raises:
        SourceError: there is no such folder, or no project there; or several index it.
        SettingsError: `docindex.toml`, or a variable of the environment, holds what cannot be used.
        StoreError: nothing is indexed yet, or it is damaged (`DamagedStoreError`).
        AccessError: this user may not read the index.

    Example:
        >>> from docindex_dagster import open_index
        >>> index = open_index("~/src/project")
        >>> for hit in index.search("how are sessions signed", top_k=3):
        ...     print(hit.path, hit.start_line, hit.title)
    """
    start = None if path is None else Path(path).expanduser()
    if start is not None and not start.exists():
        raise SourceError(f"there is no {well_formed(str(start))}")
    settings = choose(start).settings()
    report = warn or (lambda note: warnings.warn(note, DocindexWarning, stacklevel=3))
    if note := untrusted(settings):
        report(note)
    if home is not None:
        place = Path(home).expanduser().absolute()
        settings = settings.model_copy(update={"home": own_home(settings.root, place, trust_in(settings.root))})
    if settings.storage.url is not None:
        from docindex_dagster.objects.shared_stores import follow

        follow(settings, report)
    return Index(settings, warn)


class Index:
    """A published index. `open_index` makes one; it may be asked by several threads.

    Each answer is of one generation: the one that is published when the question is asked. So an index that stays open
    finds what is published later, and settings that are changed in `docindex.toml` hold from then on.

    Sources are named as `docindex source list` shows them, such as `library/docs`, or by their name alone where it is
    plain, such as `docs`. Where none is named, `search` and `context` look at the source that the settings choose
    (`search.default_source`), else at all but further branches.
    """

    def __init__(self, settings: Settings, warn: Callable[[str], None] | None = None) -> None:
        """See `open_index`."""
        self._live = Live(settings)
        self._warn = warn
        self._live.reading(lambda reader: reader.generation)  # raises what is wrong with it

    def __repr__(self) -> str:
        return f"Index({str(self._live.settings.root)!r})"

    @property
    def generation(self) -> int:
        """The number of the generation that is published now.

        Raises:
            StoreError: as `open_index`.
        """
        return self._live.reading(lambda reader: reader.generation.number)

    @property
    def graph(self) -> "Graph":
        """Who calls what, what may break, how things hang together."""
        return Graph(self._live, self._give)

    @with_parameters(of_keys(Where))
    def search(
        self,
        query: str,
        *,
        top_k: int | None = None,
        mode: Mode | ModeName = Mode.HYBRID,
        granularity: Granularity | GranularityName = Granularity.CHUNK,
        rerank: str | None = None,
        **where: Unpack[Where],
    ) -> list[Hit]:
        """The best chunks for a query, as `docindex search` finds them.

        Args:
            query: any text: a question, words, a name, a path, an error message.
            top_k: how many hits at most, 1 to 1,000. None for `search.top_k` of the settings, which is 10.
            mode: which retrievers answer. `literal` and `regex` (RE2) read every text.
            granularity: the best chunks, or the best chunk of each file.
            rerank: what looks at the best once more, such as `mmr`; None for what the settings name.
            **where: the filters, see `Where`.

        Returns:
            Hits, best first. `score` has no unit, and is the sum of the `contribution` of all `signals`; lines count
            from 1 and bytes from 0, in the text as UTF-8. It is empty where nothing is found.

        Raises:
            QueryError: the query is empty, or what it is to be narrowed to is not there.
            SourceError: a source is not known, or not indexed.
            SettingsError: there is no such reranker, or it lacks a setting.
            EmbeddingError: vectors alone were asked for, and the model failed. In the mode `hybrid`, a warning says so.
            StoreError: as `open_index`.

        Example:
            >>> index.search("valve", mode="bm25", languages="python", path="src")
        """
        request = _request(SearchRequest, where, query=query, mode=mode, granularity=granularity, rerank=rerank)
        return self._asked(lambda view: operations.search.search(view, request, self._most(top_k)))

    @with_parameters(of_keys(Where))
    def matches(
        self,
        text: str,
        *,
        regex: bool = False,
        limit: int = 100,
        **where: Unpack[Where],
    ) -> Matches:
        """Every place of an exact text or a pattern, as `docindex search --mode literal` lists them.

        Args:
            text: the text as it is, or with `regex` a regular expression in RE2's syntax; `^` and `$` are of lines.
            regex: whether it is a pattern.
            limit: how many matches are given, in the order of source, path and place; 0 for all.
            **where: the filters, see `Where`.

        Returns:
            The matches, and how many there are in all. Lines and columns count from 1, columns in characters.

        Raises:
            QueryError: the text is empty or no pattern, looking for it takes too long, or what it is to be narrowed to
                is not there.
            SourceError: a source is not known, or not indexed.
            StoreError: as `open_index`.

        Example:
            >>> index.matches("TODO", path="src").total
        """
        request = _request(MatchesRequest, where, query=text, mode="regex" if regex else "literal")
        most = limit and _within("limit", limit)
        return self._asked(lambda view: operations.search.matches(view, request, most))

    @with_parameters(of_keys(Where))
    def similar(
        self,
        place: str,
        *,
        top_k: int | None = None,
        same_file: bool = False,
        **where: Unpack[Where],
    ) -> list[Hit]:
        """What is like a place, or like a file, as `docindex similar` finds it; no model is asked.

        Args:
            place: a path on disk or in a source, with `:LINE` or without; the id of a chunk.
            top_k: as `search`.
            same_file: whether other chunks of the same file count.
            **where: the filters of the hits, see `Where`.

        Returns:
            Hits, nearest first; `score` is the cosine between the vectors, -1 to 1.

        Raises:
            QueryError: the place is not indexed, or in several sources; or as `search`.
            SourceError: as `search`.
            StoreError: as `open_index`.

        Example:
            >>> index.similar("src/station.py:12", source_types="doc")
        """
        request = _request(SimilarRequest, where, place=place, same_file=same_file)
        return self._asked(lambda view: operations.similar.similar(view, request, self._most(top_k)))

    @with_parameters(of_keys(Where))
    def context(
        self,
        query: str,
        *,
        budget: int = _CONTEXT_TOKENS,
        mode: Mode | ModeName = Mode.HYBRID,
        rerank: str | None = None,
        **where: Unpack[Where],
    ) -> Context:
        """The best passages for a query that fit into a budget, to put into a prompt.

        Args:
            query: as `search`.
            budget: tokens, at most, of `Context.markdown`: those that docindex counts, about as many as
                language models do.
            mode: as `search`.
            rerank: as `search`.
            **where: the filters, see `Where`.

        Returns:
            Passages in reading order, without repeats. `markdown` is all of them as one text, `tokens` its length.

        Raises:
            QueryError: as `search`.
            SourceError: as `search`.
            SettingsError: as `search`.
            EmbeddingError: as `search`.
            StoreError: as `open_index`.

        Example:
            >>> prompt = index.context("how are sessions signed", budget=2000).markdown
        """
        most = _within("budget", budget)
        request = _request(ContextRequest, where, query=query, mode=mode, rerank=rerank, tokens=most)
        return self._asked(lambda view: operations.context.context(view, request))

    def sources(self, *, look_s: float | None = _LOOK_S) -> "list[SourceStatus]":
        """How each source stands that is declared or indexed, as `docindex status --json` says it.

        How runs ended is recorded by Dagster, and not known here: no state is `failed` or `not checked lately`, and
        `checked_at`, `last_run`, `run_id` and `failure` are None.

        Args:
            look_s: seconds for looking whether files have changed since; None for as long as it takes. `is_current` is
                None for a source that was not looked at.

        Returns:
            By key. `files`, `chunks` and `commits` count what can be found, `megabytes` are 10^6 bytes of text, times
            are UTC in ISO 8601.

        Raises:
            QueryError: `look_s` is negative.
            SettingsError: two sources have one key.
            EmbeddingError: the settings name a model that is not there.
            StoreError: what is published cannot be read.
        """
        from docindex_dagster.operations.status import StatusRequest, status

        notes: list[str] = []
        found = status(self._live.settings, StatusRequest.parse(look_s=look_s), lambda _: None, notes.append)
        self._give(notes)
        return found.rows()

    def tables(self, sources: Names = ()) -> "Tables":
        """The tables of what is published now: chunks, embeddings, graph and commits, as Arrow, pandas and NumPy.

        Args:
            sources: only these. None named: all, also further branches.

        Returns:
            Tables of one generation, which do not follow later ones.

        Raises:
            SourceError: a source is not known, or not indexed.
            StoreError: as `open_index`, or another version of docindex made the index.

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

    def _most(self, top_k: int | None) -> int:
        return self._live.settings.search.top_k if top_k is None else _within("top_k", top_k, _MOST_HITS)

    def _asked(self, ask: Callable[[View], _Answer]) -> _Answer:
        """The answer of one generation, with its warnings."""
        notes: list[str] = []
        found = self._live.reading(lambda reader: ask(View(self._live.settings, reader, notes.append)))
        self._give(notes, stacklevel=4)
        return found

    def _give(self, notes: Sequence[str], *, stacklevel: int = 3) -> None:
        """Pass warnings to `warn`, or to Python's, for the line that asked."""
        for note in dict.fromkeys(notes):
            if self._warn is not None:
                self._warn(note)
            else:
                warnings.warn(note, DocindexWarning, stacklevel=stacklevel)


class Graph:
    """The knowledge graph of an index, which follows what is published as `Index` does. `Index.graph` is one.

    A symbol is given by its qualified name or the end of it, as `Store.add`; by `PATH::Store.add`; a file by its path.
    Steps name nodes as `SOURCE!NODE`; lines count from 1, `confidence` is 1 where nothing was guessed.
    """

    def __init__(self, live: Live, warn: Callable[[Sequence[str]], None]) -> None:
        """See `Index.graph`."""
        self._live = live
        self._warn = warn

    def callers(self, symbol: str, *, depth: int = 1, sources: Names = ()) -> "list[Step]":
        """Who calls a function, method or class, and who calls those.

        Args:
            symbol: what is called.
            depth: how many calls far, at most.
            sources: only the graphs of these.

        Returns:
            Calls, the nearest first: `subject` calls `object`. Empty where none is known; a warning says what was not
            searched.

        Raises:
            QueryError: there is no such symbol, or there are several; it names them.
            SourceError: a source is not known, or not indexed.
            StoreError: as `open_index`.

        Example:
            >>> [step.subject for step in index.graph.callers("prime_pump")]
        """
        return self._steps("callers", symbol=symbol, depth=depth, sources=sources)

    def callees(self, symbol: str, *, depth: int = 1, sources: Names = ()) -> "list[Step]":
        """What a function or method calls; of a class, what its methods call.

        Args:
            symbol: what calls.
            depth: as `callers`.
            sources: as `callers`.

        Returns:
            Calls, the nearest first: `subject` calls `object`, also what could not be resolved.

        Raises:
            DocindexError: as `callers`.
        """
        return self._steps("callees", symbol=symbol, depth=depth, sources=sources)

    def impact(self, symbol: str, *, depth: int = _FAR, sources: Names = ()) -> "list[Step]":
        """What may break if a symbol changes: all that calls, inherits, uses or imports it, also through others.

        Args:
            symbol: what changes.
            depth: how many edges far, at most.
            sources: as `callers`.

        Returns:
            Edges, the nearest first: `subject` depends on `object`.

        Raises:
            DocindexError: as `callers`.
        """
        return self._steps("impact", symbol=symbol, depth=depth, sources=sources)

    def neighbors(self, symbol: str, *, predicates: Names = (), sources: Names = ()) -> "list[Step]":
        """All edges that leave and reach a node: what it holds, calls, imports, inherits, and what documents it.

        Args:
            symbol: a node.
            predicates: only these edges, such as `imports`; none named: all.
            sources: as `callers`.

        Returns:
            Edges, those that leave it first.

        Raises:
            DocindexError: as `callers`.
        """
        return self._steps("neighbors", symbol=symbol, edges=predicates, sources=sources)

    def path(self, start: str, end: str, *, depth: int = _FARTHEST, sources: Names = ()) -> "list[Step]":
        """A shortest way from one node to another, along edges in their direction; else against it.

        Args:
            start: where to begin.
            end: where to go.
            depth: how many edges long, at most.
            sources: as `callers`.

        Returns:
            The edges of the way; empty where there is none.

        Raises:
            DocindexError: as `callers`.
        """
        return self._steps("path", symbol=start, to=end, depth=depth, sources=sources)

    def cycles(self, *, sources: Names = ()) -> list[list[str]]:
        """The groups of files that import each other, directly or through others.

        Args:
            sources: as `callers`.

        Returns:
            Groups of nodes, each sorted, the largest first.

        Raises:
            SourceError: as `callers`.
            StoreError: as `open_index`.
        """
        from docindex_dagster.graph.analysis import module_cycles

        return self._ask(module_cycles, sources)

    def statistics(self, *, sources: Names = ()) -> "Statistics":
        """How much is in the graph, how many calls are resolved, and what is called most.

        Args:
            sources: as `callers`.

        Returns:
            Counts; `resolved` is a share, 0 to 1.

        Raises:
            SourceError: as `callers`.
            StoreError: as `open_index`.
        """
        from docindex_dagster.graph.analysis import statistics

        return self._ask(statistics, sources)

    def to_networkx(self, *, sources: Names = ()) -> "MultiDiGraph[str]":
        """The whole graph for networkx, with what sources say of each other, as objects in memory.

        Args:
            sources: as `callers`.

        Returns:
            Nodes by their names, edges with their predicate as key, each with its columns as attributes.

        Raises:
            SourceError: as `callers`.
            StoreError: as `open_index`.
        """
        from docindex_dagster.graph.analysis import as_networkx

        return self._ask(as_networkx, sources)

    def _view(self, reader: Reader) -> View:
        return View(self._live.settings, reader, is_local=False)

    def _steps(self, question: "Question", **given: Any) -> "list[Step]":
        """The steps of an answer, with a warning for each symbol of which nothing is known."""
        from docindex_dagster.operations.graph import GraphRequest, graph

        request = GraphRequest.parse(**given)
        found = self._live.reading(lambda reader: graph(self._view(reader), question, request))
        self._warn(found.notes)
        return found.steps

    def _ask(self, question: "Callable[[OpenGraph], _Answer]", sources: Names) -> _Answer:
        names = _names(sources)

        def answer(reader: Reader) -> "tuple[_Answer, str]":
            graph = self._view(reader).graph(names)
            return question(graph), graph.unlinked_files

        found, unlinked = self._live.reading(answer)
        self._warn([unlinked] if unlinked else [])
        return found


def _request(request: type[_Request], where: Where, **given: object) -> _Request:
    """Return a request with filters; None means the default of the field."""
    if unknown := where.keys() - Where.__annotations__.keys():
        raise TypeError(f"unexpected keyword argument {min(unknown)!r}")
    named = {_FIELDS.get(name, name): value for name, value in where.items()}
    return request.parse(**{name: value for name, value in {**given, **named}.items() if value is not None})


def _names(given: Names) -> list[str]:
    return [well_formed(name) for name in ([given] if isinstance(given, str) else given)]


def _within(name: str, number: int, most: int | None = None) -> int:
    if number < 1 or (most is not None and number > most):
        raise QueryError(f"{name} must be {'at least 1' if most is None else f'1 to {most:,}'}, not {number}")
    return number
