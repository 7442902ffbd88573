"""`docindex search`, `show` and `why`, and opening results in an editor."""

import os
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from docindex_dagster.cli.common import Json, References, Yes, view_of
from docindex_dagster.cli.options import request_options
from docindex_dagster.cli.selected_project import load_project, load_settings
from docindex_dagster.core.errors import QueryError, SettingsError
from docindex_dagster.core.safe_text import command
from docindex_dagster.operations.search import SearchRequest
from docindex_dagster.operations.show import ShowRequest
from docindex_dagster.render import console
from docindex_dagster.search.model import Hit

if TYPE_CHECKING:
    from docindex_dagster.core.settings import Settings
    from docindex_dagster.operations.view import View
    from docindex_dagster.search.matches import Match

_MOST_MATCHES = 100  # that are listed unless more are asked for
# How editors take a line: by the name of the program.
_PLUS = frozenset({"vi", "vim", "nvim", "view", "gvim", "emacs", "emacsclient", "nano", "micro", "kak", "joe", "ne"})
_GOTO = frozenset({"code", "code-insiders", "codium", "cursor", "windsurf"})
_COLON = frozenset({"subl", "zed", "hx", "helix", "atom"})


@request_options(SearchRequest, before="context", without=["query"])
def search(
    query: Annotated[
        list[str],
        typer.Argument(
            help="What to look for, in words or names; then folders or files to search, which need be in no project.",
            metavar="QUERY... [PATH]...",
        ),
    ],
    top_k: Annotated[
        int | None,
        typer.Option("--top-k", "-k", min=0, max=100_000, help="How many at most; 0: all, of literal and regex."),
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
    **given: Any,
) -> None:
    """Search what is indexed, or folders and files as they are: an index of them is kept in the user's cache.

    The modes literal and regex list every match as PATH:LINE:COLUMN, and exit with 1 where there is none.
    """
    from docindex_dagster.cli import search_targets
    from docindex_dagster.operations import search as operation

    if context is not None and (top_k is not None or explain):
        raise typer.BadParameter("goes with neither --top-k nor --explain", param_hint="--context")
    request = SearchRequest.parse(query=" ".join(query), **given)
    is_listing = request.is_listing and context is None
    if not is_listing:
        _check_ranked(is_limited=top_k != 0, is_for_listing=bool(count or files or lines))
    if good is not None and (is_listing or context is not None):
        raise typer.BadParameter("is for results that are ranked", param_hint="--good")

    text, view = search_targets.understood(query, request.sources, yes=yes, wants_graph=request.mode == "graph")
    request = request.model_copy(update={"query": text})
    if is_listing:
        everything = 0 if count or files else _MOST_MATCHES if top_k is None else top_k
        _list(view, request, everything, count=count, files=files, lines=lines, open_=open_, json=json)
        return
    if context is not None:
        _pack(view, request, context, as_json=json)
        return
    found = operation.search(view, request, top_k or view.settings.search.top_k)
    if good is not None:
        _collect(view.settings, text, found, good)
    if open_ is not None:
        _open(found, open_)
        return
    if json:
        console.as_json(found)
        return
    with_source = request.has_several(view)
    console.listed(found, view.settings.home, "nothing found", with_source=with_source, explain=explain)


def _pack(view: "View", request: SearchRequest, tokens: int, *, as_json: bool) -> None:
    from docindex_dagster.operations.context import ContextRequest, context
    from docindex_dagster.search.context import nothing_in

    packed = context(view, ContextRequest(**dict(request), tokens=tokens))
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


def _list(
    view: "View",
    request: SearchRequest,
    limit: int,
    *,
    count: bool,
    files: bool,
    lines: int,
    open_: int | None,
    json: bool,
) -> None:
    """Show the matches of an exact text or a pattern."""
    from docindex_dagster.operations.search import matches
    from docindex_dagster.search.service import lines_of_files

    home = view.settings.home
    found = matches(view, request, limit)
    if open_ is not None:
        _open(found.matches, open_)
    elif json:
        console.as_json(found)
    elif count:
        console.counts(found, home)
    elif files:
        console.files(found, home)
    elif lines:
        console.with_lines(found, home, lines_of_files(view.settings, view.reader, found), lines)
    else:
        console.matches(found, home)
    if not found.total:
        raise typer.Exit(1)


def _collect(settings: "Settings", text: str, found: Sequence[Hit], number: int) -> None:
    from docindex_dagster.core.layout import Layout
    from docindex_dagster.evaluation.collected_questions import collect, target_of

    _check_number(found, number)
    collect(settings, text, target_of(found[number - 1]), "cli")
    file = Layout(settings.home).questions
    console.err.print(f"noted in {file}; {command('docindex', 'evaluate', file)} asks it again")


def _open(found: "Sequence[Hit] | Sequence[Match]", number: int) -> None:

    _check_number(found, number)
    open_in_editor(found[number - 1])


def _check_number(found: "Sequence[Hit] | Sequence[Match]", number: int) -> None:
    from docindex_dagster.core.errors import QueryError

    if number > len(found):
        raise QueryError(f"there is no result {number}: the search has {len(found):,}")


@request_options(ShowRequest, without=["reference"])
def show(reference: References, json: Json = False, **given: Any) -> None:
    """Show an indexed chunk, the chunk at a line, all chunks of a file, or a commit."""
    from docindex_dagster.operations import show as operation

    view = view_of(load_project())
    found = operation.show(view, ShowRequest.parse(reference=" ".join(reference), **given))
    if json:
        console.as_json([{**one.row, "file": one.file, "is_changed": one.is_changed} for one in found])
        return
    for one in found:
        console.chunk(one.row, one.file, view.settings.home, is_changed=one.is_changed)


def why(
    path: Annotated[
        list[str], typer.Argument(help="A file or folder, as it lies on disk or as a search prints it.", metavar="PATH")
    ],
    json: Json = False,
) -> None:
    """Say whether a file is indexed, and if not, which rule keeps it out."""
    from docindex_dagster.operations import why as operation

    found = operation.why(load_settings(), operation.WhyRequest.parse(path=" ".join(path)))
    if json:
        console.as_json(found)
        return
    console.out.print(f"{found.source}: {found.answer}")
    console.out.print(found.findable)


def open_in_editor(result: "Hit | Match") -> None:
    """Start the user's editor at a result, and wait for it.

    Raises:
        SettingsError: neither VISUAL nor EDITOR names an editor that can be started.
        QueryError: the result is not a text file.
    """
    if result.page is not None:
        raise QueryError(f"{result.path} is not a text file: open page {result.page} of {result.file} in a viewer")
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise SettingsError("set VISUAL or EDITOR to the editor that shall open results")
    if result.file is None:
        raise QueryError(f"{result.path} is not a file on disk; read it with `docindex show`")
    try:
        command = _command(shlex.split(editor), result.file, result.line)
        subprocess.run(command, check=False)
    except (OSError, ValueError) as error:
        raise SettingsError(f"the editor {editor!r} cannot be started: {error}; set VISUAL or EDITOR") from error


def _command(editor: list[str], file: str, line: int) -> list[str]:
    """The arguments that open a file, given from the root, at a line."""
    name = Path(editor[0]).name.removesuffix(".exe") if editor else ""
    if name in _PLUS:
        return [*editor, f"+{line}", file]
    if name in _GOTO:
        return [*editor, "--goto", f"{file}:{line}"]
    return [*editor, f"{file}:{line}" if name in _COLON else file]
