"""Resolution of the paths among the arguments of `docindex search` and `ask`, and of the index that has them."""

import os
from collections.abc import Sequence
from pathlib import Path

import typer

from docindex_dagster.cli import INTERRUPTED, common, progress, selected_project
from docindex_dagster.cli.common import reader_of, view_of
from docindex_dagster.core.errors import SourceError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.safe_text import on_one_line
from docindex_dagster.core.settings import Settings
from docindex_dagster.operations.view import View
from docindex_dagster.render import console
from docindex_dagster.search.filters import escape_glob
from docindex_dagster.sources import folder_checks, registry
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import check_redirection, expand_user
from docindex_dagster.sources.projects import Choice, choose
from docindex_dagster.stores.generation import read_generation
from docindex_dagster.stores.reader import Reader

_EXPLICIT = ("/", "./", "../", "~/")


def resolve_targets(
    arguments: Sequence[str], sources: Sequence[str], *, yes: bool, wants_graph: bool = False
) -> tuple[str, View]:
    """Split arguments into the query and the index to search: that of the paths after the query, or the project's.

    An index of folders outside any project gets a graph once `wants_graph` requests it.

    Raises:
        BadParameter: There are both paths and sources.
        SourceError: There is no project, the named project lacks a path, or the home folder needs confirmation.
        StoreError: The index cannot be read.
        Exit: The user interrupted the indexing.
    """
    query, paths = _split(arguments)
    if paths and sources:
        raise typer.BadParameter("cannot be combined with folders or files after the query", param_hint="--source")
    if paths:
        resolved = [path.resolve() for path in paths]
        return query, _of_project(paths) or _of_folders(resolved, yes=yes, wants_graph=wants_graph)
    return query, view_of(selected_project.load_project())


def _split(arguments: Sequence[str]) -> tuple[str, list[Path]]:
    """Return the query and the existing paths after it.

    If all words after the first exist as paths, they are the paths. Otherwise only trailing words that look like paths
    are.
    """
    query, rest = list(arguments[:1]), list(arguments[1:])
    if not all(map(_exists, rest)):
        while rest and not all(_exists(argument) and _is_explicit(argument) for argument in rest):
            query.append(rest.pop(0))
    for argument in query[1:]:
        if argument.startswith(_EXPLICIT):
            console.warning(f"{argument} not found, so it is treated as a word of the query")
    if rest and " " not in arguments[0] and not any(map(_is_explicit, rest)):
        where = " and ".join(rest)
        console.err.print(
            on_one_line(f"searching {where} for {arguments[0]!r}; put a query of several words in quotes")
        )
    return " ".join(query), [expand_user(argument) for argument in rest]


def _is_explicit(argument: str) -> bool:
    return "/" in argument or argument in {".", "..", "~"}


def _exists(argument: str) -> bool:
    return "\0" not in argument and os.path.exists(expand_user(argument))  # noqa: PTH110 it never raises


def _of_project(paths: Sequence[Path]) -> View | None:
    """Return the index of the chosen project, or of the project of the first path, if it has all paths."""
    chosen = selected_project.chosen(by_folder=False)
    first = paths[0] if paths[0].is_dir() else paths[0].parent
    for choice in (chosen, choose(first, by_url=False)):
        settings, located = _located(choice, paths)
        if located:
            if choice is not chosen and choice.because:
                console.err.print(on_one_line(choice.because))
            return _opened(settings, reader_of(settings), located)
        if selected_project.is_named():
            raise SourceError(f"some paths are not indexed by {chosen.root}: search them without --project")
        for path in paths:  # only now: what the project indexes is trusted, wherever it is
            check_redirection(path)
    return None


def _located(choice: Choice, paths: Sequence[Path]) -> tuple[Settings, list[tuple[Source, str]]]:
    """Return the source of each path and its name in it; an empty list unless all of them are published."""
    settings = selected_project.settings_of(choice)
    generation = read_generation(Layout(settings.home))
    located = []
    for path in paths:
        found = registry.locate_path(settings, path)
        if found is None or generation is None or found[0].key not in generation.sources:
            return settings, []
        located.append(found)
    return settings, located


def _of_folders(paths: Sequence[Path], *, yes: bool, wants_graph: bool) -> View:
    from docindex_dagster.runner import folders

    for path in paths:
        common.check_size(path if path.is_dir() else path.parent, yes=yes)
    found = folders.index_for(paths, wants_graph=wants_graph)
    settings = found.settings
    located = [place for path in paths if (place := registry.locate_path(settings, path))]
    sources = list({source.key: source for source, _ in located}.values())
    try:
        with progress.report_progress(
            " and ".join(source.key for source in sources), quiet=not console.err.is_terminal
        ):
            reader = folders.open_current(found, sources, console.err.print)
    except KeyboardInterrupt:
        what = " and ".join(str(source.path) for source in sources)
        console.failure(f"indexing {what} was interrupted; the next search continues from here")
        raise typer.Exit(INTERRUPTED) from None
    for source in sources:
        if source.key in reader.generation.sources and not reader.generation.sources[source.key].files:
            console.warning(f"nothing in {source.path} is indexed: {folder_checks.INDEXABLE_FILES}")
    return _opened(settings, reader, located)


def _opened(settings: Settings, reader: Reader, located: Sequence[tuple[Source, str]]) -> View:
    is_whole = not any(name for _, name in located)
    keys = tuple(dict.fromkeys(source.key for source, _ in located))
    globs = tuple((source.key, f"/{escape_glob(name)}" if name else "") for source, name in located)
    return View(settings, reader, console.warning, sources=keys, places=() if is_whole else globs)
