"""Questions before a folder is indexed that the user may have meant differently."""

import sys
from pathlib import Path

import typer

from docindex_dagster.cli import console
from docindex_dagster.core.errors import SourceError
from docindex_dagster.core.printable import in_line
from docindex_dagster.core.settings import Settings
from docindex_dagster.sources import precautions
from docindex_dagster.sources.paths import normal


def check_folder(settings: Settings, place: Path, *, yes: bool) -> None:
    """Ask on a terminal whether a folder is meant that is too large, overlaps a source or has nothing to index.

    Elsewhere the last two are warnings.

    Raises:
        SourceError: the home folder, or one around it, without `yes` and a terminal to ask on.
        Exit: the user does not want it.
    """
    folder = normal(place)
    if not folder.is_dir():
        return
    check_size(folder, yes=yes)
    if shared := precautions.overlapping(settings, folder):
        sources = " and ".join(f"{source.key} ({source.path})" for source in shared)
        _ask(f"{folder} overlaps {sources}: what lies in both is found twice", yes=yes)
    if precautions.is_without_files(settings, folder):
        _ask(f"nothing in {folder} would be indexed: {precautions.WHAT_COUNTS}", yes=yes)


def check_size(folder: Path, *, yes: bool) -> None:
    """Refuse, or on a terminal ask about, the home folder and those around it.

    Raises:
        SourceError: without `yes` and a terminal to ask on.
        Exit: the user does not want it.
    """
    if yes or not precautions.holds_home(folder):
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
