"""The `docindex project` commands: the user's projects, and the cached indexes of folders."""

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

app = typer.Typer(help="Manage known projects and the cached indexes of folders.", no_args_is_help=True)
_MEGABYTE = 1_000_000


@app.command("list")
def project_list(json: Json = False) -> None:
    """List the known projects, and the cached indexes created by `docindex search QUERY PATH`."""
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
        for found in folders.folder_indexes()
    ]
    if json:
        console.as_json([*known, *kept])
        return
    if known:
        console.table(
            ("project", "folder", "indexes"), [(row["name"], row["root"], _joined(row["indexes"])) for row in known]
        )
    if kept:
        columns = ("cached index of", "MB", "last searched (UTC)")
        console.table(
            columns,
            [(_joined(row["indexes"]), row["megabytes"], str(row["used_at"])[:16].replace("T", " ")) for row in kept],
        )
    if not known and not kept:
        console.out.print("no projects yet; start with `docindex index PATH` or `docindex search QUERY PATH`")


@app.command("forget")
def project_forget(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME|PATH",
            help="A project, or a folder with a cached index.",
            autocompletion=completion.projects,
        ),
    ],
) -> None:
    """Remove a project from the list, or delete the cached index of a folder.

    No other files are touched.
    """
    from docindex_dagster.runner import folders

    path = Path(os.path.expanduser(name)).absolute()  # noqa: PTH111 it keeps a `~` that it cannot expand
    named = [project for project in projects.known() if name == project.name or path == project.root]
    kept = [found for found in folders.folder_indexes() if {path, path.resolve()} & {found.root, *found.folders}]
    if len(named) > 1:
        raise SourceError(f"{name} is ambiguous: use {' or '.join(str(project.root) for project in named)}")
    if not named and not kept:
        raise SourceError(f"no project or cached index {name!r}; `docindex project list` lists them")
    for project in named:
        projects.forget(project.root)
        console.out.print(f"removed {project.root} from the list; the next `docindex index` there adds it again")
    for found in kept:
        _drop(found)


def _drop(found: "FolderIndex") -> None:
    from docindex_dagster.runner import folders

    if not folders.delete_index(found):
        raise SourceError(f"cannot delete the index of {found.root}: another process is creating it")
    console.out.print(f"removed the index of {_joined(list(map(str, found.folders)))}")


def _joined(names: object) -> str:
    return ", ".join(names) if isinstance(names, list) else ""
