"""What this docindex is: `docindex version` and `docindex support`, the report that goes with a bug."""

import json as json_
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from docindex_dagster import __version__
from docindex_dagster.cli.common import Json, output_file
from docindex_dagster.core.printable import escaped, in_line
from docindex_dagster.render import console

_INDENT = "  "


def version(json: Json = False) -> None:
    """Print the version; with --json also those of Python, of what docindex stands on, and of what it stores."""
    if not json:
        console.out.print(__version__)
        return
    from docindex_dagster.status.support_report import versions

    console.as_json(versions(__version__))


def support(
    json: Json = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the report into this file.")
    ] = None,
    paths: Annotated[
        bool, typer.Option("--paths", help="Also names and paths of sources, and failures in their words.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Verify no stores: what docindex doctor does, which reads them whole.")
    ] = False,
) -> None:
    """Make a report for a bug: versions, settings, sizes, states, failures. It sends nothing.

    No text of a file, no name, no path and no value of a variable is in it; --paths adds names and paths. Messages
    have the words that docindex's own pages have, but none behind "password", "user" and the like. Read it before you
    pass it on.

    Raises:
        BadParameter: a folder is where the report is to be written.
    """
    from docindex_dagster.cli import launch, project
    from docindex_dagster.status.support_report import Wanted, report

    if output is not None and output.is_dir():
        raise typer.BadParameter(f"{output} is a folder: name a file", param_hint="--output")
    found = report(project.load_settings, launch.outcomes, Wanted(__version__, has_paths=paths, is_verified=not quick))
    text = escaped(json_.dumps(found, indent=1, ensure_ascii=False)) if json else "\n".join(_lines(found))
    if output is None:
        console.plain(text)
        return
    with output_file(output, 0o600) as file:
        file.write(f"{text}\n".encode())
    console.out.print(f"the report is in {output}: read it before you pass it on")


def _lines(values: Mapping[str, Any], depth: int = 0) -> Iterator[str]:
    """A line for each value, below the names of what holds it."""
    for name, value in values.items():
        at = f"{_INDENT * depth}{in_line(str(name))}:"
        if isinstance(value, Mapping) and value:
            yield at
            yield from _lines(value, depth + 1)
        elif isinstance(value, list) and value:
            yield at
            yield from (f"{_INDENT * (depth + 1)}{in_line(str(item))}" for item in value)
        else:
            yield f"{at} {_shown(value)}"


def _shown(value: Any) -> str:
    if value is None or value in ([], {}):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return in_line(str(value))
