"""Reading the index: `docindex search`, `log`, `show` and `why`."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, TypedDict, Unpack

import typer

from docindex_dagster.cli import completion, console
from docindex_dagster.cli.common import (
    AllSources,
    Json,
    Languages,
    References,
    Sources,
    TopK,
    Yes,
    reader_of,
    usual_sources,
    utf8,
)
from docindex_dagster.cli.project import load_project, load_settings
from docindex_dagster.core.printable import command
from docindex_dagster.core.signatures import with_keywords
from docindex_dagster.search.model import RETRIEVING, Granularity, Hit, Mode

if TYPE_CHECKING:
    from docindex_dagster.cli.places import Opened
    from docindex_dagster.core.settings import Settings
    from docindex_dagster.search.ask import Request
    from docindex_dagster.search.matches import Match
    from docindex_dagster.search.scope import Narrowing
    from docindex_dagster.stores.reader import Reader

_MOST_MATCHES = 100  # that are listed unless more are asked for


class SourceType(StrEnum):
    """What a file is for, or a commit."""

    DOC = "doc"
    CODE = "code"
    TEST = "test"
    CONFIG = "config"
    COMMIT = "commit"


PathGlob = Annotated[
    str | None,
    typer.Option(
        "--path",
        "-p",
        help="Only this file or folder, on disk or as in its source, or paths that match a glob, as 'src/**/*.py'.",
    ),
]


HumanLanguages = Annotated[
    list[str] | None, typer.Option("--lang-human", help="Only documents that are written in this language, as en.")
]


SourceTypes = Annotated[
    list[SourceType] | None, typer.Option("--type", "-t", help="Only this type; commits are found only so.")
]


Kinds = Annotated[
    list[str] | None,
    typer.Option(
        "--kind", help="Only chunks of this kind of symbol, as function or class.", autocompletion=completion.kinds
    ),
]


class Where(TypedDict, total=False):
    """Which chunks count; every part is optional."""

    language: Languages
    lang_human: HumanLanguages
    source_type: SourceTypes
    kind: Kinds
    path: PathGlob


@with_keywords(Where, before="rerank")
def search(
    query: Annotated[
        list[str],
        typer.Argument(
            help="What to look for, in words or names; then folders or files to search, which need be in no project.",
            metavar="QUERY... [PATH]...",
        ),
    ],
    source: Sources = None,
    all_sources: AllSources = False,
    mode: Annotated[
        Mode,
        typer.Option(
            "--mode",
            "-m",
            help="Which retrievers answer; graph goes on from what vectors find, literal and regex (RE2) read all.",
        ),
    ] = Mode.HYBRID,
    granularity: Annotated[
        Granularity, typer.Option("--granularity", "-g", help="The best chunks, or the best chunk of each file.")
    ] = Granularity.CHUNK,
    top_k: Annotated[
        int | None,
        typer.Option("--top-k", "-k", min=0, max=100_000, help="How many at most; 0: all, of literal and regex."),
    ] = None,
    rerank: Annotated[
        str | None,
        typer.Option(
            "--rerank",
            help="Looks at the best results once more: none, mmr, cross-encoder, remote, or what a package offers.",
            show_default=False,
        ),
    ] = None,
    context: Annotated[
        int | None,
        typer.Option(
            "--context",
            "-c",
            min=1,
            max=1_000_000,
            metavar="TOKENS",
            help="Print what fits into so many tokens, as a prompt's text.",
        ),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show what each signal did to the score.")] = False,
    count: Annotated[
        bool, typer.Option("--count", help="Of literal and regex: only numbers of matches by file.")
    ] = False,
    files: Annotated[bool, typer.Option("--files", help="Of literal and regex: only the paths of files.")] = False,
    lines: Annotated[
        int, typer.Option("--lines", "-C", min=0, max=1000, help="Of literal and regex: lines around each match.")
    ] = 0,
    open_: Annotated[
        int | None,
        typer.Option("--open", min=1, metavar="N", help="Open the Nth result in VISUAL or EDITOR.", show_default=False),
    ] = None,
    good: Annotated[
        int | None,
        typer.Option(
            "--good",
            min=1,
            metavar="N",
            help="Note that the Nth result answers the query, as a question for `docindex evaluate`.",
            show_default=False,
        ),
    ] = None,
    yes: Yes = False,
    json: Json = False,
    **where: Unpack[Where],
) -> None:
    """Search what is indexed, or folders and files as they are: an index of them is kept in the user's cache.

    The modes literal and regex list every match as PATH:LINE:COLUMN, and exit with 1 where there is none.
    """
    from docindex_dagster.cli import places
    from docindex_dagster.search.ask import Request, hits_of
    from docindex_dagster.search.scope import filters_of

    if context is not None and (top_k is not None or explain):
        raise typer.BadParameter("goes with neither --top-k nor --explain", param_hint="--context")

    is_listing = mode not in RETRIEVING and context is None and granularity is Granularity.CHUNK and not rerank
    if not is_listing:
        _check_ranked(is_limited=top_k != 0, is_for_listing=bool(count or files or lines))
    if good is not None and (is_listing or context is not None):
        raise typer.BadParameter("is for results that are ranked", param_hint="--good")

    text, opened = places.understood(query, source or (), yes=yes, wants_graph=mode is Mode.GRAPH)
    settings, reader = opened.settings, opened.reader
    narrowing = narrowing_of(opened.sources, where, opened.usual, all_sources=all_sources)
    filters = replace(filters_of(settings, reader.generation, narrowing), places=opened.places)
    if is_listing:
        everything = 0 if count or files else _MOST_MATCHES if top_k is None else top_k
        request = Request(text, mode, top_k=everything, filters=filters)
        _list(opened, request, count=count, files=files, lines=lines, open_=open_, json=json)
        return
    request = Request(text, mode, granularity, top_k or settings.search.top_k, filters, rerank)
    if context is not None:
        _pack(settings, reader, request, context, as_json=json)
        return
    found = hits_of(settings, reader, request, warn=console.warning)
    if good is not None:
        _collect(settings, text, found, good)
    if open_ is not None:
        _open(found, open_)
    elif json:
        console.as_json(found)
    elif not found:
        console.out.print("nothing found")
    else:
        console.hits(found, settings.home, with_source=len(filters.sources) != 1, explain=explain)


def _pack(settings: "Settings", reader: "Reader", request: "Request", budget: int, *, as_json: bool) -> None:
    from docindex_dagster.search.ask import context_of
    from docindex_dagster.search.context import nothing_in

    packed = context_of(settings, reader, request, budget, warn=console.warning)
    if as_json:
        console.as_json(packed)
    else:
        console.plain(packed.markdown or nothing_in(packed))


def _check_ranked(*, is_limited: bool, is_for_listing: bool) -> None:
    """Refuse what is for places of a text alone."""
    if is_for_listing:
        raise typer.BadParameter("--count, --files and --lines are for the modes literal and regex")
    if not is_limited:
        raise typer.BadParameter("0, for all, is for the modes literal and regex", param_hint="--top-k")


def narrowing_of(sources: Sequence[str], where: Where, usual: Sequence[str], *, all_sources: bool) -> "Narrowing":
    """Where the options of a command say to look."""
    from docindex_dagster.search.scope import Narrowing

    path = where.get("path")
    return Narrowing(
        sources=sources,
        all_sources=all_sources,
        languages=list(map(utf8, where.get("language") or ())),
        human_languages=list(map(utf8, where.get("lang_human") or ())),
        source_types=[value.value for value in where.get("source_type") or ()],
        symbol_kinds=list(map(utf8, where.get("kind") or ())),
        path_glob=None if path is None else utf8(path),
        usual=usual,
    )


def _list(
    opened: "Opened", request: "Request", *, count: bool, files: bool, lines: int, open_: int | None, json: bool
) -> None:
    """Show the matches of an exact text or a pattern."""
    from docindex_dagster.cli import listing as printed
    from docindex_dagster.search.ask import lines_of_files, matches_of

    settings, reader = opened.settings, opened.reader
    found = matches_of(settings, reader, request, warn=console.warning)
    if open_ is not None:
        _open(found.matches, open_)
    elif json:
        console.as_json(found)
    elif count:
        printed.counts(found, settings.home)
    elif files:
        printed.files(found, settings.home)
    elif lines:
        printed.with_lines(found, settings.home, lines_of_files(settings, reader, found), lines)
    else:
        printed.matches(found, settings.home)
    if not found.total:
        raise typer.Exit(1)


def _collect(settings: "Settings", text: str, found: Sequence[Hit], number: int) -> None:
    from docindex_dagster.core.layout import Layout
    from docindex_dagster.evaluation.collected import collect, target_of

    _check_number(found, number)
    collect(settings, text, target_of(found[number - 1]), "cli")
    file = Layout(settings.home).questions
    console.err.print(f"noted in {file}; {command('docindex', 'evaluate', file)} asks it again")


def _open(found: "Sequence[Hit] | Sequence[Match]", number: int) -> None:
    from docindex_dagster.cli.opening import open_in_editor

    _check_number(found, number)
    open_in_editor(found[number - 1])


def _check_number(found: "Sequence[Hit] | Sequence[Match]", number: int) -> None:
    from docindex_dagster.core.errors import QueryError

    if number > len(found):
        raise QueryError(f"there is no result {number}: the search has {len(found):,}")


def log(
    query: Annotated[list[str] | None, typer.Argument(help="What the commits are about; default: the latest.")] = None,
    source: Sources = None,
    all_sources: AllSources = False,
    top_k: TopK = None,
    author: Annotated[str | None, typer.Option(help="Part of the author's name or e-mail address.")] = None,
    since: Annotated[
        datetime | None, typer.Option(formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"], help="Not before this date, in UTC.")
    ] = None,
    path: PathGlob = None,
    json: Json = False,
) -> None:
    """Search the commits of the indexed repositories, or show the latest."""
    from docindex_dagster.search.log import CommitFilters, commits_of
    from docindex_dagster.search.scope import keys_of, path_of

    settings = load_project()
    reader = reader_of(settings)
    within, glob = path_of(settings, None if path is None else utf8(path))
    usual = usual_sources(settings, reader)
    names = source or ([within] if within else () if all_sources else usual)
    filters = CommitFilters(
        sources=keys_of(settings, reader.generation, names, all_sources=all_sources),
        author=None if author is None else utf8(author),
        since=since.replace(tzinfo=UTC) if since else None,
        path_glob=glob,
    )
    most = top_k or settings.search.top_k
    found = commits_of(settings, reader, " ".join(query or ()), top_k=most, filters=filters, warn=console.warning)
    if json:
        console.as_json(found)
    elif not found:
        console.out.print("no commits found")
    else:
        console.commits(found, with_source=len(filters.sources) != 1)


def show(
    reference: References,
    source: Sources = None,
    json: Json = False,
) -> None:
    """Show an indexed chunk, the chunk at a line, all chunks of a file, or a commit."""
    from docindex_dagster.search.freshness import changed_files, files_of
    from docindex_dagster.search.lookup import look_up
    from docindex_dagster.search.places import readings_of
    from docindex_dagster.search.scope import keys_of
    from docindex_dagster.sources import registry

    settings = load_project()
    reader = reader_of(settings)
    keys = keys_of(settings, reader.generation, source or (), all_sources=True)
    readings = readings_of(settings, " ".join(reference), reader.generation.sources)
    _, found = look_up(reader, readings, keys, usual_sources(settings, reader))
    declared = registry.sources(settings)
    changed, file_of = changed_files(found, declared), files_of(declared)
    marked = [(row, file_of(row["source"], row["path"]), (row["source"], row["path"]) in changed) for row in found]
    if json:
        console.as_json([{**row, "file": file, "is_changed": is_changed} for row, file, is_changed in marked])
        return
    for row, file, is_changed in marked:
        console.chunk(row, file, settings.home, is_changed=is_changed)


def why(
    path: Annotated[
        list[str], typer.Argument(help="A file or folder, as it lies on disk or as a search prints it.", metavar="PATH")
    ],
    json: Json = False,
) -> None:
    """Say whether a file is indexed, and if not, which rule keeps it out."""
    from docindex_dagster.search.places import explain

    found = explain(load_settings(), " ".join(path))
    if json:
        console.as_json(found)
        return
    console.out.print(f"{found.source}: {found.answer}")
    console.out.print(found.findable)
