"""Options and helpers shared by several commands, and the confirmations before a folder is indexed."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from docindex_dagster.cli import completion
from docindex_dagster.core import access
from docindex_dagster.core.errors import SourceError
from docindex_dagster.core.files import reporting_full_disk
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive
from docindex_dagster.core.safe_text import on_one_line
from docindex_dagster.core.settings import Settings
from docindex_dagster.render import console
from docindex_dagster.sources.paths import check_redirection, normal

if TYPE_CHECKING:
    from docindex_dagster.operations.view import View
    from docindex_dagster.stores.reader import Reader


Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Index a folder without asking for confirmation.")]
Sources = Annotated[
    list[str] | None,
    typer.Option("--source", "-s", help="Restrict to this source. Repeatable.", autocompletion=completion.sources),
]
References = Annotated[
    list[str],
    typer.Argument(
        help="A reference as other commands print it: [SOURCE] PATH[:LINE], a chunk ID, a commit hash or a symbol.",
        metavar="REFERENCE",
        show_default=False,
    ),
]
TopK = Annotated[int | None, typer.Option("--top-k", "-k", min=1, max=100_000, help="Maximum number of results.")]


def reader_of(settings: Settings) -> "Reader":
    """Open the published index of a project."""
    from docindex_dagster.stores.reader import open_reader

    return open_reader(Layout(settings.home))


def view_of(settings: Settings) -> "View":
    """Open the published index of a project as seen from the working directory."""
    from docindex_dagster.operations.view import View

    return View(settings, reader_of(settings), console.warning, Path.cwd())


@contextmanager
def publication(settings: Settings, command: str) -> Iterator[Layout]:
    """Hold the lock under which generations are written. While waiting, print who holds it.

    If other machines share the stores, download them first and publish them afterwards.

    Raises:
        ConflictError: Another machine published meanwhile. The command can be run again.
    """
    owner = f"docindex {command}"
    if settings.storage.url is not None:
        from docindex_dagster.objects import shared_stores

        with shared_stores.open_for_publishing(settings, None, owner, console.report_wait) as opened:
            yield opened.layout
            opened.push()
        return
    with (
        access.writable_home(settings) as layout,
        exclusive(layout.publication_lock, owner, on_wait=console.report_wait),
    ):
        yield layout


def has_recorded_runs(layout: Layout) -> bool:
    """Return whether a run may be recorded. This avoids opening Dagster's instance, which would create its folder."""
    return layout.home.is_dir() and ("DAGSTER_HOME" in os.environ or layout.dagster.is_dir())


def register_project(settings: Settings) -> tuple[str, ...]:
    """Add the project to the user's list of projects. Return warnings if that fails."""
    from docindex_dagster.sources import projects

    try:
        projects.register(settings)
    except OSError as error:
        return (f"cannot add the project to {projects.list_file()}: {error.strerror}",)
    return ()


@contextmanager
def output_file(path: Path, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Open a file or device named by the user for output. A new file gets `mode`.

    Raises:
        LinkError: As for `check_way`.
        FullDiskError: The disk is full.
    """
    check_redirection(path, is_output=True)
    with reporting_full_disk(path.parent), open(path, "wb", opener=partial(os.open, mode=mode)) as file:
        yield file


def utf8(argument: str) -> str:
    """Replace bytes of an argument that are not UTF-8 with U+FFFD, since a "?" would be valid input."""
    return argument.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def check_folder(settings: Settings, place: Path, *, yes: bool) -> None:
    """Ask for confirmation if a folder is too large, overlaps a source or has nothing to index.

    Without a terminal, an overlap or an empty folder is only a warning.

    Raises:
        SourceError: The folder is or contains the home folder, and there is neither `yes` nor a terminal.
        Exit: The user declined.
    """
    from docindex_dagster.sources import folder_checks

    folder = normal(place)
    if not folder.is_dir():
        return
    check_size(folder, yes=yes)
    if shared := folder_checks.overlapping(settings, folder):
        sources = " and ".join(f"{source.key} ({source.path})" for source in shared)
        _ask(f"{folder} overlaps {sources}: files in both would be indexed twice", yes=yes)
    if folder_checks.has_no_files(settings, folder):
        _ask(f"nothing in {folder} would be indexed: {folder_checks.INDEXABLE_FILES}", yes=yes)


def check_size(folder: Path, *, yes: bool) -> None:
    """Refuse to index the home folder or a folder that contains it; on a terminal, ask.

    Raises:
        SourceError: There is neither `yes` nor a terminal.
        Exit: The user declined.
    """
    from docindex_dagster.sources import folder_checks

    if yes or not folder_checks.contains_home(folder):
        return
    what = "is your home folder" if folder.resolve() == Path.home().resolve() else "contains your home folder"
    if not _is_terminal():
        raise SourceError(f"{folder} {what}: name the subfolders to index, or pass --yes to index all of it")
    _ask(f"{folder} {what}, and all of it would be indexed", yes=False)


def _ask(warning: str, *, yes: bool) -> None:
    if yes or not _is_terminal():
        console.warning(warning)
    elif not typer.confirm(f"{on_one_line(warning)}. Index it anyway?", err=True):
        raise typer.Exit(1)


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()
