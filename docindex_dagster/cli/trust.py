"""The `docindex trust` command: show what a project requests beyond reading its own files, and grant it."""

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
from docindex_dagster.core.safe_text import make_visible, on_one_line
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
        Path | None, typer.Argument(help="A folder of the project. Default: the current project.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Grant trust without asking.")] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="Revoke trust.")] = False,
    json: Json = False,
) -> None:
    """Trust a project's settings.

    Trusted settings may reach outside the project's folder, send texts and run
    programs. Show what the project requests, and ask. The decision is stored
    outside the project and holds until a request changes. An untrusted project
    is indexed with the local model, and only from its own folder.
    """
    root = _root(folder)
    if revoke:
        was_granted = trusted.revoke(root)
        console.out.print(on_one_line(f"{root} is no longer trusted" if was_granted else f"{root} was not trusted"))
        return
    requested = _requested(root)
    rows = [*((privilege.name, privilege.value) for privilege in requested), *_unsafe_owners(root)]
    for name in {privilege.name for privilege in requested} & {INSTANCE_FILE, ENVIRONMENT_FILE}:
        console.err.print(f"{name}:")
        console.err.print(Text(make_visible((root / name).read_text(encoding="utf-8", errors="replace"))))
    _show(root, rows, json=json)  # last, so that a long file does not scroll it out of view
    if not rows or not _confirmed(yes=yes):
        return
    if _requested(root) != requested:
        raise SettingsError(f"did not trust {root}: its requests changed in the meantime; run the command again")
    trusted.grant(root, requested, owner=root.stat().st_uid, replaces=True)
    _delete_untrusted_home(untrusted_home(root))
    console.err.print(on_one_line(f"trusted {root}; restart running servers and watchers for this to take effect"))


def _requested(root: Path) -> list[trusted.Privilege]:
    """Return what a project requests now."""
    return [*requested_privileges(root, _values(root)), *_clone_privileges(root)]


def _delete_untrusted_home(home: Path) -> None:
    """Delete the home used while the project was not trusted, unless it holds data that no run can recreate."""
    layout = Layout(home)
    if any(place.exists() for place in (layout.memory, layout.feedback, layout.older_feedback, layout.questions)):
        console.warning(f"kept {home}, which holds memory, feedback or questions; use it with DOCINDEX_HOME={home}")
    else:
        shutil.rmtree(home, ignore_errors=True)


def _clone_privileges(root: Path) -> list[trusted.Privilege]:
    """Return the projects that a clone without a project of its own would use."""
    if (root / CONFIG_NAME).is_file():
        return []
    tree, place, found = projects_of_clone(root, projects.known())
    return [projects.privilege(project, place) for project in found] if tree == root else []


def _unsafe_owners(root: Path) -> list[tuple[str, str]]:
    """Return a row if the folder or its settings have an unsafe owner."""
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
        console.out.print(on_one_line(f"{root} requests:"))
        console.table(("request", "value"), [(on_one_line(name), on_one_line(value)) for name, value in rows])
    else:
        console.out.print(on_one_line(f"{root} requests nothing that requires trust"))


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
        raise SettingsError(f"cannot read {file}: {first_line(error)}") from error


def _confirmed(*, yes: bool) -> bool:
    if yes:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise SettingsError("nothing was trusted: there is no terminal to ask on; pass --yes")
    return typer.confirm("Trust it?", err=True)
