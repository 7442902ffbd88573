"""`docindex trust`: show what a project asks for beyond reading its own files, and grant it."""

import shutil
import sys
import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from docindex_dagster.cli.common import Json
from docindex_dagster.cli.selected_project import chosen
from docindex_dagster.core import trust as trusted
from docindex_dagster.core.errors import OwnershipError, SettingsError, SourceError, first_line
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.privileges import (
    ENVIRONMENT_FILE,
    INSTANCE_FILE,
    read_limited,
)
from docindex_dagster.core.safe_text import in_line, visible
from docindex_dagster.core.settings import (
    CONFIG_NAME,
    find_root,
    requested_privileges,
    untrusted_home,
)
from docindex_dagster.core.trust import check_owner
from docindex_dagster.render import console
from docindex_dagster.sources import projects
from docindex_dagster.sources.paths import normal
from docindex_dagster.sources.projects import projects_of_clone


def trust(
    folder: Annotated[
        Path | None, typer.Argument(help="A folder of the project; default: the project of the working directory.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Grant it without asking.")] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="Take back what was granted.")] = False,
    json: Json = False,
) -> None:
    """Trust a project: its settings may then reach outside its folder, send texts, and run programs.

    Shows what the project asks for, and asks. The decision is kept for you, outside the project, and holds until one of
    these things changes. Untrusted, a project is indexed by the local model, from its own folder alone.
    """
    root = _root(folder)
    if revoke:
        was_granted = trusted.revoke(root)
        console.out.print(in_line(f"{root} is not trusted any more" if was_granted else f"{root} was not trusted"))
        return
    asked = _asked(root)
    rows = [*((privilege.name, privilege.value) for privilege in asked), *_of_files(root)]
    for name in {privilege.name for privilege in asked} & {INSTANCE_FILE, ENVIRONMENT_FILE}:
        console.err.print(f"{name}:")
        console.err.print(Text(visible((root / name).read_text(encoding="utf-8", errors="replace"))))
    _show(root, rows, json=json)  # last, so that no long file moves it out of sight
    if not rows or not _confirmed(yes=yes):
        return
    if _asked(root) != asked:
        raise SettingsError(f"nothing was trusted: what {root} asks for changed meanwhile; run it again")
    trusted.grant(root, asked, owner=root.stat().st_uid, replaces=True)
    _dispose(untrusted_home(root))
    console.err.print(in_line(f"trusted {root}; servers and watchers that run already notice once they are restarted"))


def _asked(root: Path) -> list[trusted.Privilege]:
    """What a project asks for now."""
    return [*requested_privileges(root, _values(root)), *_of_clone(root)]


def _dispose(home: Path) -> None:
    """Delete the home of a project that was not trusted, unless it holds what no run could make again."""
    layout = Layout(home)
    if any(place.exists() for place in (layout.memory, layout.feedback, layout.older_feedback, layout.questions)):
        console.warning(f"kept {home}, which holds memory, feedback or questions; DOCINDEX_HOME={home} finds it")
    else:
        shutil.rmtree(home, ignore_errors=True)


def _of_clone(root: Path) -> list[trusted.Privilege]:
    """The projects that a clone without one of its own would answer from."""
    if (root / CONFIG_NAME).is_file():
        return []
    tree, place, found = projects_of_clone(root, projects.known())
    return [projects.privilege(project, place) for project in found] if tree == root else []


def _of_files(root: Path) -> list[tuple[str, str]]:
    """What is unusual about the folder of a project and its settings: whose they are."""
    try:
        check_owner(root)
        check_owner(root / CONFIG_NAME)
    except OwnershipError as error:
        return [("owner", str(error).partition(";")[0])]
    return []


def _show(root: Path, rows: list[tuple[str, str]], *, json: bool) -> None:
    if json:
        console.as_json({"root": str(root), "asks": [{"name": name, "value": value} for name, value in rows]})
    elif rows:
        console.out.print(in_line(f"{root} asks for:"))
        console.table(("what", "value"), [(in_line(name), in_line(value)) for name, value in rows])
    else:
        console.out.print(in_line(f"{root} asks for nothing that needs trust"))


def _root(folder: Path | None) -> Path:
    if folder is None:
        return chosen(by_url=False).root
    root = find_root(normal(folder))
    if not root.is_dir():
        raise SourceError(f"{root} not found")
    return root


def _values(root: Path) -> dict[str, Any]:
    file = root / CONFIG_NAME
    try:
        return tomllib.loads((read_limited(file) or b"").decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SettingsError(f"{file} cannot be read: {first_line(error)}") from error


def _confirmed(*, yes: bool) -> bool:
    if yes:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise SettingsError("nothing was trusted: there is no terminal to ask on; pass --yes")
    return typer.confirm("Trust it?", err=True)
