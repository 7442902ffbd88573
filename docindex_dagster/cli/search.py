"""The `docindex search`, `show` and `why` commands, and opening results in an editor."""

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

_MAX_MATCHES = 100  # listed by default
# How editors accept a line number, by program name.
_PLUS = frozenset({"vi", "vim", "nvim", "view", "gvim", "emacs", "emacsclient", "nano", "micro", "kak", "joe", "ne"})
_GOTO = frozenset({"code", "code-insiders", "codium", "cursor", "windsurf"})
_COLON = frozenset({"subl", "zed", "hx", "helix", "atom"})


@request_options(SearchRequest, before="context", without=["query"])
def search(
    query: Annotated[
        list[str],
        typer.Argument(
            help="What to search for, then optionally folders or files, which need not belong to a project.",
            metavar="QUERY... [PATH]...",
        ),
    ],
    top_k: Annotated[
        int | None,
        typer.Option(
            "--top-k",
            "-k",
            min=0,
            max=100_000,
            help="Maximum number of results; 0 means all (modes literal and regex).",
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
            help="Print a prompt context of at most this many tokens.",
        ),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show how each signal contributed to the score.")] = False,
    count: Annotated[
        bool, typer.Option("--count", help="Print only the number of matches per file (modes literal and regex).")
    ] = False,
    files: Annotated[
        bool, typer.Option("--files", help="Print only the paths of matching files (modes literal and regex).")
    ] = False,
    lines: Annotated[
        int,
        typer.Option(
            "--lines", "-C", min=0, max=1000, help="Lines of context around each match (modes literal and regex)."
        ),
    ] = 0,
    open_: Annotated[
        int | None,
        typer.Option(
            "--open", min=1, metavar="N", help="Open the Nth result in $VISUAL or $EDITOR.", show_default=False
        ),
    ] = None,
    good: Annotated[
        int | None,
        typer.Option(
            "--good",
            min=1,
            metavar="N",
            help="Save the query with its Nth result as a question for `docindex evaluate`.",
            show_default=False,
        ),
    ] = None,
    yes: Yes = False,
    json: Json = False,
    **options: Any,
) -> None:
    """Search the index, or any files and folders.

    Folders outside the project are indexed first, into the user's cache. The
    modes literal and regex list every match as PATH:LINE:COLUMN and exit with 1
    if there is none.
    """
    from docindex_dagster.cli import search_targets
    from docindex_dagster.operations import search as operation

    if context is not None and (top_k is not None or explain):
        raise typer.BadParameter("cannot be combined with --top-k or --explain", param_hint="--context")
    request = SearchRequest.parse(query=" ".join(query), **options)
    is_listing = request.is_listing and context is None
    if not is_listing:
        _check_ranked(is_limited=top_k != 0, is_for_listing=bool(count or files or lines))
    if good is not None and (is_listing or context is not None):
        raise typer.BadParameter("only applies to ranked results", param_hint="--good")

    text, view = search_targets.resolve_targets(query, request.sources, yes=yes, wants_graph=request.mode == "graph")
    request = request.model_copy(update={"query": text})
    if is_listing:
        everything = 0 if count or files else _MAX_MATCHES if top_k is None else top_k
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
    console.print_results(found, view.settings.home, "nothing found", with_source=with_source, explain=explain)


def _pack(view: "View", request: SearchRequest, tokens: int, *, as_json: bool) -> None:
    from docindex_dagster.operations.context import ContextRequest, context
    from docindex_dagster.search.context import empty_reason

    packed = context(view, ContextRequest(**dict(request), tokens=tokens))
    if as_json:
        console.as_json(packed)
    else:
        console.plain(packed.markdown or empty_reason(packed))


def _check_ranked(*, is_limited: bool, is_for_listing: bool) -> None:
    """Reject options that only apply to the modes literal and regex."""
    if is_for_listing:
        raise typer.BadParameter("--count, --files and --lines require mode literal or regex")
    if not is_limited:
        raise typer.BadParameter("0 (all results) requires mode literal or regex", param_hint="--top-k")


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
    """Print the matches of a literal text or a regular expression."""
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
    console.err.print(f"saved to {file}; measure it with {command('docindex', 'evaluate', file)}")


def _open(found: "Sequence[Hit] | Sequence[Match]", number: int) -> None:
    _check_number(found, number)
    open_in_editor(found[number - 1])


def _check_number(found: "Sequence[Hit] | Sequence[Match]", number: int) -> None:
    from docindex_dagster.core.errors import QueryError

    if number > len(found):
        raise QueryError(f"result {number} not found: the search has {console.count(len(found), 'result')}")


@request_options(ShowRequest, without=["reference"])
def show(reference: References, json: Json = False, **options: Any) -> None:
    """Show an indexed chunk, file or commit.

    A path shows all chunks of the file, a path with a line the chunk at that
    line.
    """
    from docindex_dagster.operations import show as operation

    view = view_of(load_project())
    found = operation.show(view, ShowRequest.parse(reference=" ".join(reference), **options))
    if json:
        console.as_json([{**one.row, "file": one.file, "is_changed": one.is_changed} for one in found])
        return
    for one in found:
        console.chunk(one.row, one.file, view.settings.home, is_changed=one.is_changed)


def why(
    path: Annotated[
        list[str], typer.Argument(help="A file or folder on disk, or a path printed by a search.", metavar="PATH")
    ],
    json: Json = False,
) -> None:
    """Show whether a file is indexed, and if not, which rule skips it."""
    from docindex_dagster.operations import why as operation

    found = operation.why(load_settings(), operation.WhyRequest.parse(path=" ".join(path)))
    if json:
        console.as_json(found)
        return
    console.out.print(f"{found.source}: {found.answer}")
    console.out.print(found.findable)


def open_in_editor(result: "Hit | Match") -> None:
    """Open a result in the user's editor and wait for it to exit.

    Raises:
        SettingsError: Neither VISUAL nor EDITOR names an editor that can be started.
        QueryError: The result is not a text file.
    """
    if result.page is not None:
        raise QueryError(f"{result.path} is not a text file: open page {result.page} of {result.file} in a viewer")
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise SettingsError("no editor is configured: set VISUAL or EDITOR")
    if result.file is None:
        raise QueryError(f"{result.path} is not a file on disk: read it with `docindex show`")
    try:
        command = _command(shlex.split(editor), result.file, result.line)
        subprocess.run(command, check=False)
    except (OSError, ValueError) as error:
        raise SettingsError(f"cannot start the editor {editor!r}: {error}; set VISUAL or EDITOR") from error


def _command(editor: list[str], file: str, line: int) -> list[str]:
    """Return the command line that opens a file, given as an absolute path, at a line."""
    name = Path(editor[0]).name.removesuffix(".exe") if editor else ""
    if name in _PLUS:
        return [*editor, f"+{line}", file]
    if name in _GOTO:
        return [*editor, "--goto", f"{file}:{line}"]
    return [*editor, f"{file}:{line}" if name in _COLON else file]
