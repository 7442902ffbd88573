"""The application: its commands in the order in which `--help` shows them, and what becomes of errors."""

import os
import shlex
import sys
from itertools import takewhile
from types import MappingProxyType
from typing import Annotated

import typer

from docindex_dagster import __version__
from docindex_dagster.cli import completion, console, project
from docindex_dagster.cli.usage import Commands
from docindex_dagster.core.errors import DocindexError, QueryError, is_debugging, start_debugging
from docindex_dagster.core.trust import VARIABLE


class _Commands(Commands):
    """Those of docindex."""

    places = MappingProxyType(
        {
            "init": "initial:init",
            "index": "indexing:index",
            "watch": "watching:watch",
            "search": "searching:search",
            "ask": "answering:ask",
            "similar": "similar:similar",
            "log": "searching:log",
            "show": "searching:show",
            "why": "searching:why",
            "status": "status:status",
            "evaluate": "evaluating:evaluate",
            "doctor": "upkeep:doctor",
            "rollback": "upkeep:rollback",
            "prune": "pruning:prune",
            "serve": "serving:serve",
            "ui": "serving:ui",
            "mcp": "serving:mcp",
            "source": "sources:app",
            "graph": "graph:app",
            "memory": "memory:app",
            "project": "projects:app",
            "agents": "agents:app",
            "trust": "trust:trust",
            "version": "reporting:version",
            "support": "reporting:support",
            "help": "helping:help_",
        }
    )


app = typer.Typer(
    cls=_Commands,
    help="One fresh, searchable index of the code and documentation that a team works with.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run a command; an expected error is a line and exit code 1, anything else a traceback."""
    try:
        options = list(takewhile(lambda argument: argument != "--", sys.argv[1:]))
        _check_names(options)
        if "--debug" in options:
            sys.argv.remove("--debug")
            start_debugging()
        app()
    except BrokenPipeError:
        # The reader of our output, such as `head`, has had enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except DocindexError as error:
        _fail(str(error), error)
    except OSError as error:
        _fail(f"{error.filename or 'file system'}: {error.strerror or error}", error)


def _check_names(options: list[str]) -> None:
    """Check that no option is the name of a file: a shell gives these for `*`, and a checkout chooses them.

    Raises:
        QueryError: An option is the name of a file in the working directory.
    """
    for option in options:
        if option.startswith("-") and option != "-" and os.path.lexists(option):
            raise QueryError(
                f"{option} is the name of a file here, so docindex does not take it for an option; for the file, "
                f"write {shlex.quote(f'./{option}')}"
            )


def _fail(message: str, error: Exception) -> None:
    if is_debugging():
        raise error
    console.failure(message)
    for note in getattr(error, "__notes__", ()):
        console.err.print(note)
    sys.exit(1)


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    project_: Annotated[
        str | None,
        typer.Option(
            "--project",
            metavar="NAME|PATH",
            help="Work on this project, by its folder or name; it stands before the command.",
            autocompletion=completion.projects,
        ),
    ] = None,
    trust: Annotated[
        bool,
        typer.Option("--trust", help="Trust the project for this command; it stands before the command."),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show stack traces; it may stand anywhere.")] = False,  # noqa: ARG001 `main` reads it, wherever it stands
) -> None:
    """One fresh, searchable index of the code and documentation that a team works with."""
    if trust:
        os.environ[VARIABLE] = "1"
    project.begin(project_)
    if version:
        console.out.print(__version__)
        raise typer.Exit
