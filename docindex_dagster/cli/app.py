"""The application: its commands in the order in which `--help` shows them, and what becomes of errors."""

import os
import sys
from types import MappingProxyType
from typing import Annotated

import typer

from docindex_dagster import __version__
from docindex_dagster.cli import completion, console, project
from docindex_dagster.cli.usage import Commands
from docindex_dagster.core.errors import DocindexError, is_debugging, start_debugging
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
    if "--debug" in sys.argv[1:]:
        sys.argv.remove("--debug")
        start_debugging()
    sys.argv[1:] = _with_options_first(sys.argv[1:])
    try:
        app()
    except BrokenPipeError:
        # The reader of our output, such as `head`, has had enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except DocindexError as error:
        _fail(str(error), error)
    except OSError as error:
        _fail(f"{error.filename or 'file system'}: {error.strerror or error}", error)


def _with_options_first(arguments: list[str]) -> list[str]:
    """Arguments with `--project NAME` and `--trust` before the command, wherever they stood; not behind `--`."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    first: list[str] = []
    rest: list[str] = []
    position = 0
    while position < end:
        argument = arguments[position]
        width = 2 if argument == "--project" else 1
        is_first = argument in {"--project", "--trust"} or argument.startswith("--project=")
        (first if is_first else rest).extend(arguments[position : min(position + width, end)])
        position += width
    return [*first, *rest, *arguments[end:]]


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
            help="Work on this project, by its folder or the name of it; it may stand anywhere.",
            autocompletion=completion.projects,
        ),
    ] = None,
    trust: Annotated[
        bool,
        typer.Option("--trust", help="Trust the project for this command, as docindex trust does for good."),
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
