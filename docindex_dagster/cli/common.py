"""Options and helpers that several commands share, and questions before a folder is indexed."""

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
from docindex_dagster.core.safe_text import in_line
from docindex_dagster.core.settings import Settings
from docindex_dagster.render import console
from docindex_dagster.sources.paths import check_way, normal

if TYPE_CHECKING:
    from docindex_dagster.operations.view import View
    from docindex_dagster.stores.reader import Reader


Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing about a folder to index.")]
Sources = Annotated[
    list[str] | None,
    typer.Option(
        "--source", "-s", help="Only this source; may be given several times.", autocompletion=completion.sources
    ),
]
References = Annotated[
    list[str],
    typer.Argument(
        help="A place as other commands print it: [SOURCE] PATH[:LINE], a chunk's id, a commit's hash, a symbol.",
        metavar="REFERENCE",
        show_default=False,
    ),
]
TopK = Annotated[int | None, typer.Option("--top-k", "-k", min=1, max=100_000, help="How many at most.")]


def reader_of(settings: Settings) -> "Reader":
    """The published index of a project."""
    from docindex_dagster.stores.reader import open_reader

    return open_reader(Layout(settings.home))


def view_of(settings: Settings) -> "View":
    """The published index of a project, as it is seen from the working directory."""
    from docindex_dagster.operations.view import View

    return View(settings, reader_of(settings), console.warning, Path.cwd())


@contextmanager
def publication(settings: Settings, command: str) -> Iterator[Layout]:
    """Hold the lock under which generations are written, and say for whom the command waits.

    Where the stores are shared with other machines, they are brought here before, and published afterwards.

    Raises:
        ConflictError: another machine published meanwhile; the command can be given again.
    """
    owner = f"docindex {command}"
    if settings.storage.url is not None:
        from docindex_dagster.objects import shared_stores

        with shared_stores.opened(settings, None, owner, console.report_wait) as opened:
            yield opened.layout
            opened.push()
        return
    with access.writing(settings) as layout, exclusive(layout.publication_lock, owner, on_wait=console.report_wait):
        yield layout


def has_record(layout: Layout) -> bool:
    """Whether a run may have been recorded; opening Dagster's instance would make its folder."""
    return layout.home.is_dir() and ("DAGSTER_HOME" in os.environ or layout.dagster.is_dir())


def listed(settings: Settings) -> tuple[str, ...]:
    """List the project among those of the user, and say what prevents that, if something does."""
    from docindex_dagster.sources import projects

    try:
        projects.register(settings)
    except OSError as error:
        return (f"the project cannot be listed in {projects.list_file()}: {error.strerror}",)
    return ()


@contextmanager
def output_file(path: Path, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Open a file or device that the user names for output; a new file gets `mode`.

    Raises:
        LinkError: As `check_way`.
        FullDiskError: The disk is full.
    """
    check_way(path, is_output=True)
    with reporting_full_disk(path.parent), open(path, "wb", opener=partial(os.open, mode=mode)) as file:
        yield file


def utf8(argument: str) -> str:
    """An argument with U+FFFD for the bytes that the shell passed and that are no text: a "?" would mean something."""
    return argument.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def check_folder(settings: Settings, place: Path, *, yes: bool) -> None:
    """Ask on a terminal whether a folder is meant that is too large, overlaps a source or has nothing to index.

    Elsewhere the last two are warnings.

    Raises:
        SourceError: the home folder, or one around it, without `yes` and a terminal to ask on.
        Exit: the user does not want it.
    """
    from docindex_dagster.sources import folder_checks

    folder = normal(place)
    if not folder.is_dir():
        return
    check_size(folder, yes=yes)
    if shared := folder_checks.overlapping(settings, folder):
        sources = " and ".join(f"{source.key} ({source.path})" for source in shared)
        _ask(f"{folder} overlaps {sources}: what lies in both is found twice", yes=yes)
    if folder_checks.is_without_files(settings, folder):
        _ask(f"nothing in {folder} would be indexed: {folder_checks.WHAT_COUNTS}", yes=yes)


def check_size(folder: Path, *, yes: bool) -> None:
    """Refuse, or on a terminal ask about, the home folder and those around it.

    Raises:
        SourceError: without `yes` and a terminal to ask on.
        Exit: the user does not want it.
    """
    from docindex_dagster.sources import folder_checks

    if yes or not folder_checks.holds_home(folder):
        return
    what = "is your home folder" if folder.resolve() == Path.home().resolve() else "holds your home folder"
    if not _is_terminal():
        raise SourceError(f"{folder} {what}: name the folders in it that you search, or say --yes to index all of it")
    _ask(f"{folder} {what}, and all of it would be indexed", yes=False)


def _ask(what: str, *, yes: bool) -> None:
    if yes or not _is_terminal():
        console.warning(what)
    elif not typer.confirm(f"{in_line(what)}. Index it all the same?", err=True):
        raise typer.Exit(1)


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()
