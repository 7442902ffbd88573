"""The commands, of which only the one that is given is imported, and errors of usage.

Typer words and shows these errors: they repeat what was given, of any length and with any characters.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperGroup

from docindex_dagster.core.printable import shortened, visible

# Of click, or of typer's own copy of it: typer exports only the class for a wrong value.
_UsageError: type[Any] = typer.BadParameter.__bases__[0]
_OF_ALL = ("--project", "--trust")  # options of `docindex` itself


class Commands(TyperGroup):
    """Commands that are imported when they are given, whose errors of usage can be shown and repeat no long argument.

    Attributes:
        places: by name, the module of this package and the function or typer application in it.
    """

    places: ClassVar[Mapping[str, str]] = {}

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 the signature is typer's
        """The names, in the order in which `--help` shows them."""
        return [*self.places]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 as above
        """A command, which is imported now; None where there is none of this name."""
        return _loaded(cmd_name, self.places[cmd_name]) if cmd_name in self.places else None

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Read the options in front of a command."""
        with _shown_errors():
            return super().make_context(*arguments, **options)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options before a command, and refuse a `--` there: it would not end the options of the command."""
        ends = args.count("--")
        rest = super().parse_args(ctx, args)
        is_before_another = rest[:1] == ["--"] and isinstance(self.get_command(ctx, ctx._protected_args[0]), TyperGroup)  # noqa: SLF001 typer's
        if rest.count("--") < ends or is_before_another:
            ctx.fail("put '--' after the command, not before it")
        return rest

    def invoke(self, *arguments: Any, **options: Any) -> Any:
        """Read the arguments of a command, and run it."""
        with _shown_errors():
            return super().invoke(*arguments, **options)


@cache
def _loaded(name: str, place: str) -> Any:
    """A command as typer makes it from its function, or a group of commands from their application."""
    module, _, attribute = place.partition(":")
    found = getattr(import_module(f"docindex_dagster.cli.{module}"), attribute)
    if isinstance(found, typer.Typer):
        made: Any = typer.main.get_group(found)
        made.name = name
        return made
    alone = typer.Typer(add_completion=False)
    alone.command(name)(found)
    return typer.main.get_command(alone)


@contextmanager
def _shown_errors() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if isinstance(error, _UsageError):
            error.message = visible(shortened(error.message))
            if hasattr(error, "possibilities") and error.option_name in _OF_ALL:  # of an option that there is not
                error.message += "; it stands before the command"
        raise
