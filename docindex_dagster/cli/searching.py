"""Reading the index: `docindex search`, `log`, `show` and `why`."""

import os
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from docindex_dagster import console
from docindex_dagster.cli.common import (
    AllSources,
    Json,
    Sources,
    TopK,
    name_in,
    normal,
    project,
    reader_of,
    searched,
    utf8,
)
from docindex_dagster.errors import QueryError, SourceError, StoreError
from docindex_dagster.keys import is_branch
from docindex_dagster.search.model import Mode
from docindex_dagster.settings import Settings, load_settings
from docindex_dagster.sources import registry
from docindex_dagster.sources.model import Source

if TYPE_CHECKING:
    from docindex_dagster.stores.generation import Generation


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
        "--path", "-p", help="Only paths, or commits that touch paths, that match this glob, as 'src/**/*.py'."
    ),
]


def search(
    query: Annotated[list[str], typer.Argument(help="What to look for, in words or names.")],
    source: Sources = None,
    all_sources: AllSources = False,
    mode: Annotated[Mode, typer.Option("--mode", "-m", help="Which retrievers answer.")] = Mode.HYBRID,
    top_k: TopK = None,
    language: Annotated[list[str] | None, typer.Option("--language", "-l", help="Only this language.")] = None,
    source_type: Annotated[
        list[SourceType] | None, typer.Option("--type", "-t", help="Only this type; commits are found only so.")
    ] = None,
    path: PathGlob = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show what each signal did to the score.")] = False,
    json: Json = False,
) -> None:
    """Search what is indexed."""
    from docindex_dagster.embedding.providers import load_embedder
    from docindex_dagster.search.engine import search as run_search
    from docindex_dagster.search.filters import Filters

    settings = project()
    reader = reader_of(settings)
    filters = Filters(
        sources=searched(settings, reader.generation, source or [], all_sources=all_sources),
        languages=tuple(_language(reader.generation, name) for name in language or ()),
        source_types=tuple(value.value for value in source_type or ()),
        path_glob=_glob(path),
    )
    found = run_search(
        reader,
        " ".join(query),
        lambda: load_embedder(settings.embedding),
        mode=mode,
        top_k=top_k or settings.search.top_k,
        filters=filters,
        pool=settings.search.candidates,
    )
    if json:
        console.as_json(found)
    elif not found:
        console.out.print("nothing found")
    else:
        console.hits(found, with_source=len(filters.sources) != 1, explain=explain)


def _glob(path: str | None) -> str | None:
    return None if path is None else utf8(path).removeprefix("./")


def _language(generation: "Generation", name: str) -> str:
    known = {language for source in generation.sources.values() for language in source.languages}
    if name.lower() not in known:
        raise QueryError(f"nothing is indexed in {utf8(name)!r}; languages: {', '.join(sorted(known))}")
    return name.lower()


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
    from docindex_dagster.embedding.providers import load_embedder
    from docindex_dagster.search.log import CommitFilters
    from docindex_dagster.search.log import log as read_log

    settings = project()
    reader = reader_of(settings)
    filters = CommitFilters(
        sources=searched(settings, reader.generation, source or [], all_sources=all_sources),
        author=None if author is None else utf8(author),
        since=since.replace(tzinfo=UTC) if since else None,
        path_glob=_glob(path),
    )
    found = read_log(
        reader,
        " ".join(query or ()),
        lambda: load_embedder(settings.embedding),
        top_k=top_k or settings.search.top_k,
        filters=filters,
        pool=settings.search.candidates,
    )
    if json:
        console.as_json(found)
    elif not found:
        console.out.print("no commits found")
    else:
        console.commits(found, with_source=len(filters.sources) != 1)


def show(
    reference: Annotated[
        str, typer.Argument(help="A chunk id, SOURCE::PATH::INDEX, PATH, PATH:LINE, or how a commit's hash begins.")
    ],
    source: Sources = None,
    json: Json = False,
) -> None:
    """Show an indexed chunk, the chunk at a line, all chunks of a file, or a commit."""
    from docindex_dagster.search.lookup import find_chunks

    settings = project()
    reader = reader_of(settings)
    keys = searched(settings, reader.generation, source or [], all_sources=True)
    found = find_chunks(reader, _below_source(settings, reference), keys)
    if json:
        console.as_json(found)
        return
    for row in found:
        console.chunk(row)


def _below_source(settings: Settings, reference: str) -> str:
    """A reference whose path leads to a file on disk, as the index writes it: relative to its source."""
    from docindex_dagster.sources.paths import path_to_name

    path, colon, line = reference.rpartition(":") if not Path(reference).exists() else (reference, "", "")
    around = registry.containing(settings, Path(path)) if Path(path).exists() else None
    if around is None:
        return path_to_name(os.fsencode(reference)).removeprefix("./")
    return name_in(around, normal(path)) + colon + line


def why(
    path: Annotated[
        Path, typer.Argument(help="A file or folder, as it lies on disk or as a search prints it.", readable=False)
    ],
    json: Json = False,
) -> None:
    """Say whether a file is indexed, and if not, which rule keeps it out."""
    from docindex_dagster.sources.why import why as explain

    settings = load_settings()
    source, place = _located(settings, path)
    if place == source.path:
        raise SourceError(f"{path} is the folder of {source.key}; name a file in it")
    explanation = explain(source, place)
    chunks = _indexed_chunks(settings, source, explanation.path)
    if json:
        console.as_json(
            {"source": source.key, "path": explanation.path, "answer": explanation.sentence, "chunks": chunks}
        )
        return
    console.out.print(console.visible(f"{source.key}: {explanation.sentence}"))
    console.out.print(
        f"{console.count(chunks, 'chunk')} of it can be found now" if chunks else "nothing of it can be found"
    )


def _located(settings: Settings, path: Path) -> tuple[Source, Path]:
    """The source that a path lies in, and the path on disk.

    A path that leads to nothing in a source from here may be one that a search prints: below one of the sources.

    Raises:
        SourceError: it lies in no source, or below several.
    """
    around = registry.containing(settings, path)
    is_here = path.is_absolute() or (around is not None and os.path.lexists(path))
    below = [] if is_here else _holding(settings, path)
    if len(below) > 1:
        places = " or ".join(str(source.path / path) for source in below)
        raise SourceError(f"{path} is in {' and in '.join(source.key for source in below)}: say {places}")
    if below:
        return below[0], normal(below[0].path / path)
    if around is None:
        what = f"{path} lies in no source" if os.path.lexists(path) else f"there is no {path} here or below a source"
        raise SourceError(f"{what}; `docindex source list` shows them")
    return around, normal(path)


def _holding(settings: Settings, path: Path) -> list[Source]:
    """The sources below which a path leads to a file, or in which it is indexed; not branches where others do."""
    indexed = _sources_of_indexed(settings, path)
    declared = registry.sources(settings).values()
    found = [source for source in declared if os.path.lexists(source.path / path) or source.key in indexed]
    return [source for source in found if not is_branch(source.key)] or found


def _sources_of_indexed(settings: Settings, path: Path) -> set[str]:
    """The sources in which a path is indexed, also if its file is gone."""
    from docindex_dagster.search.lookup import find_chunks
    from docindex_dagster.sources.paths import path_to_name

    try:
        found = find_chunks(reader_of(settings), path_to_name(os.fsencode(os.path.normpath(path))))
    except (StoreError, QueryError):
        return set()
    return {row["source"] for row in found}


def _indexed_chunks(settings: Settings, source: Source, name: str) -> int:
    from docindex_dagster.search.lookup import find_chunks

    try:
        return sum(row["path"] == name for row in find_chunks(reader_of(settings), name, (source.key,)))
    except (StoreError, QueryError):
        return 0
