"""Typer's objects for the commands of docindex."""

from collections.abc import Iterator
from typing import Any

import typer

from docindex_dagster.cli.app import app


def root() -> Any:
    """Return the command `docindex` itself."""
    return typer.main.get_command(app)


def subcommands(command: Any) -> Iterator[tuple[str, Any]]:
    """Yield the subcommands of a command with their names, in the order of `--help`."""
    if hasattr(command, "list_commands"):
        for name in command.list_commands(None):
            found = command.get_command(None, name)
            if not found.hidden:
                yield name, found


def options(command: Any) -> set[str]:
    """Return the options of a command, short and long."""
    return {name for each in command.params for name in (*each.opts, *each.secondary_opts)} | {"--help", "-h"}
