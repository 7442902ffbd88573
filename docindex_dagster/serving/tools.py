"""What agents can ask: eight tools, whose descriptions say which one to pick. Each gives Markdown within a budget."""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict, Unpack

from pydantic import BeforeValidator, Field

from docindex_dagster.core.errors import DocindexError
from docindex_dagster.core.settings import untrusted
from docindex_dagster.core.signatures import with_keywords
from docindex_dagster.graph import ask
from docindex_dagster.search.ask import Request, context_of, hits_of, matches_of, similar_to
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.freshness import changed_files, files_of, folders_of, notes_of_edits
from docindex_dagster.search.live import Live
from docindex_dagster.search.log import CommitFilters, commits_of
from docindex_dagster.search.lookup import look_up, node_name
from docindex_dagster.search.model import RETRIEVING, Granularity, GranularityName, Hit, Mode, ModeName, SourceType
from docindex_dagster.search.places import explain, readings_of
from docindex_dagster.search.scope import Narrowing, filters_of, graph_of, here, keys_of, path_of
from docindex_dagster.serving import answers, budget
from docindex_dagster.serving.moments import Moment
from docindex_dagster.sources import registry
from docindex_dagster.stores.reader import Reader

if TYPE_CHECKING:
    from docindex_dagster.status.source_status import RunsOf

LONGEST_QUERY = 20_000


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


OneOrMore = BeforeValidator(_as_list)  # a single name is taken for a list of one

Query = Annotated[
    str,
    Field(
        max_length=LONGEST_QUERY,
        description="What to look for: a question, words, a symbol's name, a path or an error message.",
    ),
]
Sources = Annotated[
    list[str] | None,
    OneOrMore,
    Field(description="Only these sources, by key or name. Default: all but branches."),
]
Limit = Annotated[int, Field(ge=1, le=50, description="How many results at most.")]
Budget = Annotated[
    int, Field(ge=budget.LEAST, le=budget.MOST, description="How many tokens the answer may have, at most.")
]
Cursor = Annotated[
    str | None, Field(description="Where to go on: the cursor that the answer before gave, with the same arguments.")
]
Place = Annotated[
    str,
    Field(
        description="As answers print it: [SOURCE] PATH[:LINE], a chunk id, a symbol, or how a commit's hash begins."
    ),
]


class Where(TypedDict, total=False):
    """Which chunks count; every part is optional."""

    sources: Sources
    languages: Annotated[
        list[str] | None, OneOrMore, Field(description="Only these languages, such as python or markdown.")
    ]
    human_languages: Annotated[
        list[str] | None, OneOrMore, Field(description="Only documents that are written in these, such as en or pt.")
    ]
    types: Annotated[
        list[SourceType] | None,
        OneOrMore,
        Field(description="Only files for this purpose. Commits are found only where they are asked for."),
    ]
    kinds: Annotated[
        list[str] | None, OneOrMore, Field(description="Only this kind of symbol, such as function, class or struct.")
    ]
    path: Annotated[
        str | None, Field(description="Only paths in this folder, or that match this glob, such as 'src/**/*.py'.")
    ]


class Tools:
    """The tools over one project; see `Live` for which index they read."""

    def __init__(self, live: Live, runs_of: "RunsOf", folder: Path | None = None) -> None:
        """Answer about one project, to an agent that works in a folder of this machine, where that is known."""
        self._live = live
        self._runs_of = runs_of
        self._folder = folder

    def _here(self, reader: Reader, warnings: list[str]) -> tuple[str, ...]:
        """Return the sources to search where a call names none, and warn of another work tree than the agent's."""
        found = here(self._live.settings, reader.generation, self._folder)
        warnings += [found.note] if found.note else []
        return found.sources

    def _filters(self, reader: Reader, where: Where, warnings: list[str]) -> Filters:
        narrowing = Narrowing(
            sources=where.get("sources") or (),
            languages=where.get("languages") or (),
            human_languages=where.get("human_languages") or (),
            source_types=where.get("types") or (),
            symbol_kinds=where.get("kinds") or (),
            path_glob=where.get("path"),
            usual=self._here(reader, warnings),
        )
        return filters_of(self._live.settings, reader.generation, narrowing)

    @with_keywords(Where, before="max_tokens")
    def search(
        self,
        query: Query,
        *,
        mode: Annotated[
            ModeName,
            Field(
                description="hybrid suits nearly always; graph goes on from matches to what they call or inherit, and "
                "to who calls them; literal and regex (RE2) list every match, by path and line."
            ),
        ] = "hybrid",
        granularity: Annotated[
            GranularityName, Field(description="The best passages, or the best passage of each file.")
        ] = "chunk",
        top_k: Limit = 10,
        max_tokens: Budget = budget.DEFAULT,
        cursor: Cursor = None,
        **where: Unpack[Where],
    ) -> str:
        """Find where something is in the indexed code and documentation.

        Gives places (source, path, line), what stands there, the lines that match, and scores, best first. Use it to
        locate code, definitions, settings or pages. To read enough to answer a question, use `context`; to read one
        place whole, `show`.
        """
        start = budget.start_of(cursor)
        warnings: list[str] = []

        def ask(reader: Reader) -> str:
            settings = self._live.settings
            is_listing = Mode(mode) not in RETRIEVING and Granularity(granularity) is Granularity.CHUNK
            wanted = start + top_k + (not is_listing)
            filters = self._filters(reader, where, warnings)
            request = Request(query, Mode(mode), Granularity(granularity), wanted, filters)
            if is_listing:
                listed = matches_of(settings, reader, request, warnings.append)
                return answers.of_matches(listed, top_k, start, warnings, max_tokens)
            found = hits_of(settings, reader, request, warnings.append)
            return answers.of_hits(found, top_k, start, warnings, max_tokens)

        return self._live.reading(ask)

    @with_keywords(Where, before="max_tokens")
    def find_similar(
        self,
        place: Place,
        *,
        top_k: Limit = 10,
        same_file: Annotated[bool, Field(description="Whether other places of the same file count.")] = False,
        max_tokens: Budget = budget.DEFAULT,
        cursor: Cursor = None,
        **where: Unpack[Where],
    ) -> str:
        """Find what resembles an indexed place: duplicates, other ways to do the same, a page that explains it.

        Gives places as `search` does; the score is the cosine of the vectors. Filters are of what is found. Use it
        with a place that `search` gave, as PATH:LINE; use `search` for what you can put into words.
        """
        start = budget.start_of(cursor)
        warnings: list[str] = []

        def ask(reader: Reader) -> list[Hit]:
            filters = self._filters(reader, where, warnings)
            request = Request(place, top_k=start + top_k + 1, filters=filters)
            return similar_to(self._live.settings, reader, place, request, warnings.append, same_file=same_file)

        return answers.of_hits(self._live.reading(ask), top_k, start, warnings, max_tokens)

    @with_keywords(Where)
    def context(
        self,
        query: Query,
        *,
        max_tokens: Budget = budget.DEFAULT,
        **where: Unpack[Where],
    ) -> str:
        """Read what the indexed code and documentation say about a question, within a budget of tokens.

        Gives the text of the best passages, whole, without repeats, in reading order, each with its source, path,
        lines, kind and name. Use it before answering or changing something; use `search` if places are enough.
        """
        warnings: list[str] = []

        def ask(reader: Reader) -> str:
            filters = self._filters(reader, where, warnings)
            room = max_tokens - answers.ROOM_FOR_NOTES
            packed = context_of(self._live.settings, reader, Request(query, filters=filters), room, warnings.append)
            folders = folders_of((one.source for one in packed.passages), registry.sources(self._live.settings))
            return answers.of_context(packed, [*(f"Note: {warning}" for warning in warnings), *folders])

        return self._live.reading(ask)

    def show(
        self, reference: Place, sources: Sources = None, *, max_tokens: Budget = budget.DEFAULT, cursor: Cursor = None
    ) -> str:
        """Read one indexed place whole: the chunk at a line, all chunks of a file, or a commit.

        Use it on what `search` found. The text is what was indexed; the answer says where the file was changed since.
        """
        start = budget.start_of(cursor)

        def ask(reader: Reader) -> str:
            settings = self._live.settings
            keys = keys_of(settings, reader.generation, sources or (), all_sources=True)
            warnings: list[str] = []
            usual = self._here(reader, warnings)
            _, found = look_up(reader, readings_of(settings, reference, reader.generation.sources), keys, usual)
            declared = registry.sources(settings)
            changed = changed_files(found, declared)
            note = budget.cut("".join(f"Note: {warning}\n\n" for warning in warnings), max_tokens // 2)
            room = max_tokens - budget.tokens(note)
            return note + answers.of_chunks(found, changed, files_of(declared), start, room)

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
        max_tokens: Budget = budget.DEFAULT,
        cursor: Cursor = None,
    ) -> str:
        """Ask who calls, uses or documents a symbol, what it calls, and what may break if it changes.

        Each edge gives its places in the source and how it was resolved; calls that could not be resolved are listed
        with the reason. Use it for what depends on what; use `search` to find a symbol that you cannot name.
        """
        start = budget.start_of(cursor)

        def answer(reader: Reader) -> str:
            settings = self._live.settings
            warnings: list[str] = []
            usual = self._here(reader, warnings)
            opened = graph_of(settings, reader, sources or usual)
            if question == "stats":
                return answers.of_statistics(opened, max_tokens)
            known = reader.generation.sources

            def named(end: str) -> str:
                return node_name(reader, opened, end, readings_of(settings, end, known), usual) if end else ""

            start_at, end_at = named(symbol), named(to)
            steps = ask.answer(opened, question, start_at, end_at, depth)
            notes = [answers.sentence(text) for text in ask.notes(opened, question, start_at, end_at, steps)]
            notes += [f"Note: {warning}" for warning in warnings]
            declared = registry.sources(settings)
            asked = [declared[key] for key in dict.fromkeys(step.source for step in steps) if key in declared]
            notes += [f"Note: {note}" for note in notes_of_edits(reader.layout, asked, settings.search.look_s)]
            notes += folders_of((step.source for step in steps), declared)
            backward = question in ask.BACKWARD
            return answers.of_steps(steps, notes, start, max_tokens, is_backward=backward)

        return self._live.reading(answer)

    def log(
        self,
        query: Annotated[
            str, Field(max_length=LONGEST_QUERY, description="What the commits are about; empty for the latest.")
        ] = "",
        *,
        author: Annotated[str | None, Field(description="Part of the author's name or e-mail address.")] = None,
        since: Annotated[
            Moment | None, Field(description="Not before this, as 2026-01-31 or 2026-01-31T12:00:00Z; UTC.")
        ] = None,
        path: Annotated[
            str | None, Field(description="Only commits with a file in this folder, or that matches this glob.")
        ] = None,
        top_k: Limit = 10,
        sources: Sources = None,
        max_tokens: Budget = budget.DEFAULT,
        cursor: Cursor = None,
    ) -> str:
        """List commits of the indexed repositories: the latest, or those that are about something.

        Gives hash, date, author, subject and changed files. Use it for what changed, when and by whom; use `show`
        with a hash for the whole message, and `search` for how the code is now.
        """
        start = budget.start_of(cursor)
        warnings: list[str] = []

        def ask(reader: Reader) -> str:
            settings = self._live.settings
            within, glob = path_of(settings, path)
            usual = self._here(reader, warnings)
            keys = keys_of(settings, reader.generation, sources or ((within,) if within else usual))
            filters = CommitFilters(keys, author, since, glob)
            most = start + top_k + 1
            found = commits_of(settings, reader, query, top_k=most, filters=filters, warn=warnings.append)
            return answers.of_commits(found, top_k, start, warnings, max_tokens)

        return self._live.reading(ask)

    def why(
        self,
        path: Annotated[str, Field(description="A file or folder, on disk or as `search` prints it.")],
    ) -> str:
        """Say whether a file is indexed, and if not, which rule keeps it out.

        Use it when `search` does not find what should be there.
        """
        found = explain(self._live.settings, path)
        return budget.cut(f"{found.source}: {found.answer}\n{found.findable}", budget.DEFAULT)

    def status(self, *, max_tokens: Budget = budget.DEFAULT, cursor: Cursor = None) -> str:
        """List the sources: whether all is well with them, how large they are, in which languages, how fresh.

        Use it first, to learn what can be searched and what the sources are called.
        """
        from docindex_dagster.status import (  # they load much that the others do not need
            freshness,
            overview,
            source_status,
        )

        change = source_status.change_of_model(self._live.settings)
        warnings = [note for note in (untrusted(self._live.settings), change and overview.sentence(change)) if note]
        found = freshness.of_all(self._live.settings, freshness.LOOK_S, self._runs_of, warnings.append)
        return answers.of_sources(found, warnings, budget.start_of(cursor), max_tokens)

    def prepare(self) -> None:
        """Open what is published, and load the model, so that the first search need not."""
        with suppress(DocindexError):  # the search itself will say it
            self._live.reading(lambda reader: hits_of(self._live.settings, reader, Request("anything", top_k=1)))
