"""`docindex project …`: which projects this user has, and which indexes of folders are kept in the cache."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from docindex_dagster.cli import completion
from docindex_dagster.cli.common import Json
from docindex_dagster.core.errors import SourceError
from docindex_dagster.render import console
from docindex_dagster.sources import projects

if TYPE_CHECKING:
    from docindex_dagster.runner.folders import FolderIndex

app = typer.Typer(help="Which projects there are, and which indexes of folders are kept.", no_args_is_help=True)
_MEGABYTE = 1_000_000


@app.command("list")
def project_list(json: Json = False) -> None:
    """Show the known projects, and the indexes that `docindex search QUERY PATH` keeps."""
    from docindex_dagster.runner import folders

    known = [
        {
            "name": project.name,
            "root": str(project.root),
            "indexes": [*map(str, project.folders), *project.places],
            "used_at": None,
            "megabytes": None,
        }
        for project in projects.known()
    ]
    kept = [
        {
            "name": None,
            "root": str(found.root),
            "indexes": list(map(str, found.folders)),
            "used_at": datetime.fromtimestamp(found.used_at, UTC).isoformat(timespec="seconds"),
            "megabytes": round(found.size / _MEGABYTE, 1),
        }
        for found in folders.kept()
    ]
    if json:
        console.as_json([*known, *kept])
        return
    if known:
        console.table(
            ("project", "folder", "indexes"), [(row["name"], row["root"], _joined(row["indexes"])) for row in known]
        )
    if kept:
        columns = ("kept for", "MB", "searched (UTC)")
        console.table(
            columns,
            [(_joined(row["indexes"]), row["megabytes"], str(row["used_at"])[:16].replace("T", " ")) for row in kept],
        )
    if not known and not kept:
        console.out.print("no projects yet: begin with `docindex index PATH`, or `docindex search QUERY PATH`")


@app.command("forget")
def project_forget(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME|PATH",
            help="A project, or a folder whose index is kept.",
            autocompletion=completion.projects,
        ),
    ],
) -> None:
    """Take a project out of the list, or remove the index that is kept of a folder. No other file is touched."""
    from docindex_dagster.runner import folders

    path = Path(os.path.expanduser(name)).absolute()  # noqa: PTH111 it keeps what it cannot expand
    named = [project for project in projects.known() if name == project.name or path == project.root]
    kept = [found for found in folders.kept() if {path, path.resolve()} & {found.root, *found.folders}]
    if len(named) > 1:
        raise SourceError(f"{name} is not unique: say {' or '.join(str(project.root) for project in named)}")
    if not named and not kept:
        raise SourceError(f"there is no project {name!r} and no index of it; `docindex project list` shows them")
    for project in named:
        projects.forget(project.root)
        console.out.print(f"{project.root} is listed no more; its next `docindex index` lists it again")
    for found in kept:
        _drop(found)


def _drop(found: "FolderIndex") -> None:
    from docindex_dagster.runner import folders

    if not folders.drop(found):
        raise SourceError(f"{found.root} is being made by another process; wait for it, or end it")
    console.out.print(f"removed the index of {_joined(list(map(str, found.folders)))}")


def _joined(names: object) -> str:
    return ", ".join(names) if isinstance(names, list) else ""
