"""Errors of usage, which typer words and shows: they repeat what was given, of any length and with any characters."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

from docindex_dagster.core.printable import shortened, visible

# Of click, or of typer's own copy of it: typer exports only the class for a wrong value.
_UsageError: type[Any] = typer.BadParameter.__bases__[0]


class Commands(TyperGroup):
    """Commands whose errors of usage can be shown, and repeat no long argument whole."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Read the options in front of a command."""
        with _shown_errors():
            return super().make_context(*arguments, **options)

    def invoke(self, *arguments: Any, **options: Any) -> Any:
        """Read the arguments of a command, and run it."""
        with _shown_errors():
            return super().invoke(*arguments, **options)


@contextmanager
def _shown_errors() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if isinstance(error, _UsageError):
            error.message = visible(shortened(error.message))
        raise
