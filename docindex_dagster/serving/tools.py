"""What agents can ask: six tools, whose descriptions say which one to pick. Each gives Markdown."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from docindex_dagster.core.errors import DocindexError
from docindex_dagster.core.settings import Settings
from docindex_dagster.graph import ask
from docindex_dagster.graph.analysis import statistics
from docindex_dagster.search.ask import Request, context_of, hits_of
from docindex_dagster.search.live import Live
from docindex_dagster.search.lookup import find_chunks
from docindex_dagster.search.model import Granularity, GranularityName, Mode, ModeName, SourceType
from docindex_dagster.search.places import as_indexed, explain
from docindex_dagster.search.scope import Narrowing, filters_of, graph_of, keys_of
from docindex_dagster.serving import answers
from docindex_dagster.stores.reader import Reader

if TYPE_CHECKING:
    from docindex_dagster.status.source_status import RunsOf

_STATUS_BUDGET_S = 1.0  # for looking whether files have changed
_LONGEST_QUERY = 20_000

Query = Annotated[
    str,
    Field(
        max_length=_LONGEST_QUERY,
        description="What to look for: a question, words, a symbol's name, a path or an error message.",
    ),
]
Sources = Annotated[
    list[str] | None, Field(description="Only these sources, as `status` names them. Default: all but branches.")
]
Languages = Annotated[list[str] | None, Field(description="Only these languages, such as python or markdown.")]
Types = Annotated[
    list[SourceType] | None,
    Field(description="Only files for this purpose. Commits are found only where they are asked for."),
]
Kinds = Annotated[
    list[str] | None, Field(description="Only this kind of symbol, such as function, method, class or struct.")
]
PathGlob = Annotated[
    str | None, Field(description="Only paths in this folder, or that match this glob, such as 'src/**/*.py'.")
]


class Tools:
    """The tools over one project; see `Live` for which index they read."""

    def __init__(self, settings: Settings, runs_of: "RunsOf") -> None:
        self._live = Live(settings)
        self._runs_of = runs_of

    def search(
        self,
        query: Query,
        *,
        mode: Annotated[
            ModeName,
            Field(
                description="hybrid suits nearly always; graph goes on from matches to what they call or inherit, and "
                "to who calls them; literal and regex (RE2) read every text for exact matches."
            ),
        ] = "hybrid",
        granularity: Annotated[
            GranularityName, Field(description="The best passages, or the best passage of each file.")
        ] = "chunk",
        top_k: Annotated[int, Field(ge=1, le=50, description="How many results at most.")] = 10,
        sources: Sources = None,
        languages: Languages = None,
        types: Types = None,
        kinds: Kinds = None,
        path: PathGlob = None,
    ) -> str:
        """Find where something is in the indexed code and documentation.

        Gives places (source, path, lines), what stands there, and the lines that match, best first. Use it to locate
        code, definitions, settings or pages. To read enough to answer a question, use `context`; to read one place
        whole, `show`.
        """
        narrowing = _narrowing(sources, languages, types, kinds, path)
        warnings: list[str] = []

        def ask(reader: Reader) -> str:
            filters = filters_of(self._live.settings, reader.generation, narrowing)
            request = Request(query, Mode(mode), Granularity(granularity), top_k, filters)
            return answers.of_hits(hits_of(self._live.settings, reader, request, warnings.append), warnings)

        return self._live.reading(ask)

    def context(
        self,
        query: Query,
        *,
        tokens: Annotated[int, Field(ge=100, le=100_000, description="How long the answer may be, at most.")] = 4000,
        sources: Sources = None,
        languages: Languages = None,
        types: Types = None,
        kinds: Kinds = None,
        path: PathGlob = None,
    ) -> str:
        """Read what the indexed code and documentation say about a question, within a budget of tokens.

        Gives the text of the best passages, whole, without repeats, in reading order, each with its source, path,
        lines, kind and name. Use it before answering or changing something; use `search` if places are enough.
        """
        narrowing = _narrowing(sources, languages, types, kinds, path)
        warnings: list[str] = []

        def ask(reader: Reader) -> str:
            filters = filters_of(self._live.settings, reader.generation, narrowing)
            packed = context_of(self._live.settings, reader, Request(query, filters=filters), tokens, warnings.append)
            return answers.of_context(packed, warnings)

        return self._live.reading(ask)

    def show(
        self,
        reference: Annotated[
            str, Field(description="PATH:LINE, PATH, SOURCE::PATH::INDEX, a chunk id, or the start of a commit's hash.")
        ],
        sources: Sources = None,
    ) -> str:
        """Read one indexed place whole: the chunk at a line, all chunks of a file, or a commit.

        Use it on what `search` found. The text is what was indexed; `search` says where a file was changed since.
        """

        def ask(reader: Reader) -> str:
            keys = keys_of(self._live.settings, reader.generation, sources or (), all_sources=True)
            return answers.of_chunks(find_chunks(reader, as_indexed(self._live.settings, reference), keys))

        return self._live.reading(ask)

    def graph(
        self,
        question: Annotated[
            Literal["callers", "callees", "impact", "neighbors", "path", "stats"],
            Field(
                description="callers: who calls it. callees: what it calls. impact: what may break if it changes. "
                "neighbors: all edges, with what documents it. path: how it hangs together with `to`. stats: the whole."
            ),
        ],
        symbol: Annotated[
            str, Field(description="A qualified name or its end, as Store.add; PATH::Store.add; a path. Not for stats.")
        ] = "",
        *,
        to: Annotated[str, Field(description="The other end of a path.")] = "",
        depth: Annotated[int | None, Field(ge=1, le=20, description="How many edges far.")] = None,
        sources: Sources = None,
    ) -> str:
        """Ask who calls, uses or documents a symbol, what it calls, and what may break if it changes.

        Each edge gives its place in the source and how it was resolved; calls that could not be resolved are listed
        with the reason. Use it for what depends on what; use `search` to find a symbol that you cannot name.
        """

        def answer(reader: Reader) -> str:
            opened = graph_of(self._live.settings, reader, sources or ())
            if question == "stats":
                return answers.of_statistics(statistics(opened))
            steps = ask.answer(opened, question, symbol, to, depth)
            unknown = [answers.sentence(text) for text in ask.unanswered(opened, question, symbol, to, steps)]
            return "\n".join([answers.of_steps(steps, is_backward=question in ask.BACKWARD), *unknown]).strip()

        return self._live.reading(answer)

    def why(
        self,
        path: Annotated[str, Field(description="A file or folder, on disk or as `search` prints it.")],
    ) -> str:
        """Say whether a file is indexed, and if not, which rule keeps it out.

        Use it when `search` does not find what should be there.
        """
        found = explain(self._live.settings, Path(path))
        return f"{found.source}: {found.answer}\n{found.findable}"

    def status(self) -> str:
        """List the sources: whether all is well with them, how large they are, in which languages, how fresh.

        Use it first, to learn what can be searched and what the sources are called.
        """
        from docindex_dagster.status import (  # they load much that the others do not need
            freshness,
            overview,
            source_status,
        )

        change = source_status.change_of_model(self._live.settings)
        warnings = [overview.sentence(change)] if change else []
        found = freshness.of_all(self._live.settings, _STATUS_BUDGET_S, self._runs_of, warnings.append)
        return answers.of_sources(found, warnings)

    def prepare(self) -> None:
        """Open what is published, and load the model, so that the first search need not."""
        with suppress(DocindexError):  # the search itself will say it
            self._live.reading(lambda reader: hits_of(self._live.settings, reader, Request("anything", top_k=1)))


def _narrowing(
    sources: list[str] | None,
    languages: list[str] | None,
    types: Sequence[str] | None,
    kinds: list[str] | None,
    path: str | None,
) -> Narrowing:
    return Narrowing(
        sources=sources or (),
        languages=languages or (),
        source_types=types or (),
        symbol_kinds=kinds or (),
        path_glob=path,
    )
