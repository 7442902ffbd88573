"""Which projects this user has: those that have indexed something, with the folders and URLs that they index.

The list lies in the user's configuration folder. Damaged entries, and projects that are gone, count for nothing.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from platformdirs import user_config_path

from docindex_dagster.core.files import replacing
from docindex_dagster.core.locks import exclusive
from docindex_dagster.core.settings import CONFIG_NAME, Settings
from docindex_dagster.core.trust import Privilege
from docindex_dagster.core.urls import place_of
from docindex_dagster.sources import registry
from docindex_dagster.sources.paths import read_regular

_LONGEST_LIST = 16 << 20  # bytes


@dataclass(frozen=True, slots=True)
class Project:
    """A folder with a `docindex.toml`, and what it indexes."""

    root: Path
    folders: tuple[Path, ...]  # of its sources, from the root
    places: tuple[str, ...]  # of the repositories that it follows, as `place_of` writes them

    @property
    def name(self) -> str:
        """That of its folder."""
        return self.root.name

    @property
    def exists(self) -> bool:
        """Whether there still is a project."""
        return (self.root / CONFIG_NAME).is_file()


def list_file() -> Path:
    """The file that lists the projects; it may not exist yet."""
    return user_config_path("docindex", appauthor=False) / "projects.json"


def known() -> list[Project]:
    """The projects that are listed and still exist."""
    return [project for project in _read() if project.exists]


def register(settings: Settings) -> None:
    """List a project with what it indexes now; projects that are gone leave the list.

    Raises:
        OSError: the list cannot be written.
    """
    project = of(settings)
    if project in _read():
        return
    with _locked():
        _write([*(other for other in known() if other.root != project.root), project])


def forget(root: Path) -> bool:
    """Take a project out of the list; False where it does not stand in it.

    Raises:
        OSError: the list cannot be written.
    """
    if all(project.root != root for project in _read()):
        return False
    with _locked():
        _write([project for project in known() if project.root != root])
    return True


def of(settings: Settings) -> Project:
    """A project as its settings describe it."""
    folders: set[Path] = set()
    places: set[str] = set()
    for source in registry.sources(settings).values():
        if source.remote is None:
            folders.add(source.path)
        elif source.remote.is_local:
            folders.add(Path(source.remote.url))
        else:
            places.add(place_of(source.remote.url))
    return Project(settings.root, tuple(sorted(folders)), tuple(sorted(places)))


def by_folder(folder: Path, projects: list[Project]) -> tuple[Path | None, list[Project]]:
    """The innermost indexed folder around a folder, if there is one, and the projects that index it."""
    names = {Path(os.path.normpath(folder.absolute())), folder.resolve()}
    around = {
        (indexed, project)
        for project in projects
        for indexed in project.folders
        if any(name.is_relative_to(place) for name in names for place in (indexed, indexed.resolve()))
    }
    innermost = max((indexed for indexed, _ in around), key=lambda indexed: len(indexed.parts), default=None)
    real = innermost.resolve() if innermost else None
    return innermost, sorted({one for at, one in around if at.resolve() == real}, key=lambda one: one.root)


def by_remote(folder: Path, projects: list[Project]) -> tuple[Path, str, list[Project]]:
    """The clone around a folder, the place of the repository that it is a clone of, and the projects that follow that.

    The clone says itself what it is of, and anybody may have made it: see `privilege`.
    """
    tree = next((parent for parent in (folder, *folder.parents) if os.path.lexists(parent / ".git")), folder)
    for place in _remotes(tree):
        if found := [project for project in projects if place in project.places]:
            return tree, place, found
    return tree, "", []


def privilege(project: Project, place: str) -> Privilege:
    """What a clone needs for its commands to answer from a project that follows its repository."""
    return Privilege.of("project", f"answers from {project.root}, which follows {place}")


def _remotes(tree: Path) -> list[str]:
    """The places that the remotes of a clone name; none of a work tree whose git folder lies elsewhere."""
    if (tree / ".git").is_symlink():
        return []
    try:  # a branch takes a hundred bytes of it
        text = os.fsdecode(read_regular(tree / ".git" / "config", _LONGEST_LIST))
    except OSError:
        return []
    places, in_remote = [], False
    for line in text.splitlines():
        key, _, value = line.strip().partition("=")
        if key.startswith("["):
            in_remote = key.startswith("[remote ")
        elif in_remote and key.strip() == "url":
            places.append(place_of(value.strip().strip('"')))
    return places


def _locked() -> Any:
    return exclusive(list_file().with_suffix(".lock"), f"process {os.getpid()}", on_wait=lambda _: None)


def _read() -> list[Project]:
    try:
        entries = json.loads(read_regular(list_file(), _LONGEST_LIST))["projects"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return []
    read = map(_project, entries if isinstance(entries, list) else [])
    return [project for project in read if project is not None]


def _project(entry: object) -> Project | None:
    match entry:
        case {"root": str(root), "folders": list(folders), "places": list(places)}:
            texts = (root, *folders, *places)
            is_whole = all(isinstance(text, str) and "\0" not in text for text in texts) and root.startswith("/")
            return Project(Path(root), tuple(map(Path, folders)), tuple(places)) if is_whole else None
    return None


def _write(projects: list[Project]) -> None:
    entries = [
        {"root": str(project.root), "folders": list(map(str, project.folders)), "places": list(project.places)}
        for project in projects
    ]
    with replacing(list_file(), 0o600) as temporary:
        temporary.write_text(json.dumps({"projects": entries}, indent=1) + "\n", encoding="utf-8")
