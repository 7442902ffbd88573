"""The Typer application: lazily imported commands and error handling.

Typer's usage errors repeat what the user typed, whatever its length and characters.
"""

import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from itertools import takewhile
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperGroup

from docindex_dagster import __version__
from docindex_dagster.cli import completion, selected_project
from docindex_dagster.core.errors import DocindexError, QueryError, is_debugging, start_debugging
from docindex_dagster.core.safe_text import make_visible, truncate_middle
from docindex_dagster.core.trust import VARIABLE
from docindex_dagster.render import console

# From click, or from the copy of it inside typer: typer itself exports only the class for a wrong value.
_UsageError: type[Any] = typer.BadParameter.__bases__[0]
_GLOBAL_OPTIONS = ("--project", "--trust")  # options of `docindex` itself


class Commands(TyperGroup):
    """A command group that imports a command on first use, and shortens and escapes the arguments in usage errors.

    Attributes:
        places: maps each name to the module of this package and the function or Typer application in it, or to the
            module of `operations` and the listing in it.
    """

    places: ClassVar[Mapping[str, str]] = {}

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 the signature is typer's
        """Return the names in the order in which `--help` shows them."""
        return [*self.places]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 as above
        """Import and return a command; None if the name is unknown."""
        return _load_command(cmd_name, self.places[cmd_name]) if cmd_name in self.places else None

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Parse the options before a command."""
        with _sanitized_usage_errors():
            return super().make_context(*arguments, **options)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options before a command. Reject `--` there, since it would not end the options of the command."""
        ends = args.count("--")
        rest = super().parse_args(ctx, args)
        is_before_another = rest[:1] == ["--"] and isinstance(self.get_command(ctx, ctx._protected_args[0]), TyperGroup)  # noqa: SLF001 typer's
        if rest.count("--") < ends or is_before_another:
            ctx.fail("put '--' after the command, not before it")
        return rest

    def invoke(self, *arguments: Any, **options: Any) -> Any:
        """Parse the arguments of a command and run it."""
        with _sanitized_usage_errors():
            return super().invoke(*arguments, **options)


@cache
def _load_command(name: str, place: str) -> Any:
    """Return the command that Typer builds from a function, or the group that it builds from an application."""
    module, _, attribute = place.partition(":")
    is_operation = module.startswith("operations.")
    found = getattr(import_module(f"docindex_dagster.{module if is_operation else f'cli.{module}'}"), attribute)
    if is_operation:
        from docindex_dagster.cli.options import build_command

        found = build_command(found)
    if isinstance(found, typer.Typer):
        group: Any = typer.main.get_group(found)
        group.name = name
        return group
    alone = typer.Typer(add_completion=False)
    alone.command(name)(found)
    return typer.main.get_command(alone)


@contextmanager
def _sanitized_usage_errors() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if isinstance(error, _UsageError):
            error.message = make_visible(truncate_middle(error.message))
            if hasattr(error, "possibilities") and error.option_name in _GLOBAL_OPTIONS:  # an unknown option
                error.message += "; put it before the command"
        raise


class _Commands(Commands):
    """The top-level commands."""

    places = MappingProxyType(
        {
            "init": "init:init",
            "index": "index:index",
            "watch": "watch:watch",
            "search": "search:search",
            "ask": "ask:ask",
            "similar": "operations.similar:SIMILAR",
            "log": "operations.log:LOG",
            "show": "search:show",
            "why": "search:why",
            "status": "status:status",
            "evaluate": "evaluate:evaluate",
            "doctor": "maintenance:doctor",
            "rollback": "maintenance:rollback",
            "prune": "prune:prune",
            "serve": "serve:serve",
            "ui": "serve:ui",
            "mcp": "serve:mcp",
            "source": "sources:app",
            "graph": "graph:app",
            "memory": "memory:app",
            "project": "projects:app",
            "agents": "agents.commands:app",
            "trust": "trust:trust",
            "version": "maintenance:version",
            "support": "maintenance:support",
            "help": "help:help_",
        }
    )


app = typer.Typer(
    cls=_Commands,
    help="A fresh, searchable index of your team's code and documentation.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run a command. Print an expected error as one line and exit with 1; anything else is a traceback."""
    try:
        options = list(takewhile(lambda argument: argument != "--", sys.argv[1:]))
        _check_names(options)
        if "--debug" in options:
            sys.argv.remove("--debug")
            start_debugging()
        app()
    except BrokenPipeError:
        # The reader, such as `head`, closed the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except DocindexError as error:
        _fail(str(error), error)
    except OSError as error:
        _fail(f"{error.filename or 'file system'}: {error.strerror or error}", error)


def _check_names(options: list[str]) -> None:
    """Check that no option is also the name of a file: shells expand `*` to names, and a checkout controls names.

    Raises:
        QueryError: An option is the name of a file in the working directory.
    """
    for option in options:
        if option.startswith("-") and option != "-" and os.path.lexists(option):
            raise QueryError(
                f"{option} is the name of a file in this folder, so it is not accepted as an option; to refer to the "
                f"file, write {shlex.quote(f'./{option}')}"
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
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    project_: Annotated[
        str | None,
        typer.Option(
            "--project",
            metavar="NAME|PATH",
            help="Use this project, given by name or folder. Put it before the command.",
            autocompletion=completion.projects,
        ),
    ] = None,
    trust: Annotated[
        bool,
        typer.Option("--trust", help="Trust the project for this command. Put it before the command."),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show stack traces. Accepted anywhere.")] = False,  # noqa: ARG001 `main` reads it, wherever it is
) -> None:
    """A fresh, searchable index of your team's code and documentation."""
    if trust:
        os.environ[VARIABLE] = "1"
    selected_project.begin(project_)
    if version:
        console.out.print(__version__)
        raise typer.Exit
