"""The list of this user's projects, and the selection of one of them.

The list is in the user's configuration folder. It contains the projects that have indexed something, with the folders
and URLs that they index. Damaged entries and deleted projects are ignored. A project is selected by name, by an
environment variable, by a `docindex.toml` in the folder or a parent, or by what it indexes.
"""

import json
import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from platformdirs import user_config_path

from docindex_dagster.core.errors import OwnershipError, SourceError
from docindex_dagster.core.files import atomic_write, real_path
from docindex_dagster.core.locks import exclusive
from docindex_dagster.core.safe_text import command
from docindex_dagster.core.settings import CONFIG_NAME, Settings, find_root, load_settings
from docindex_dagster.core.trust import Privilege, trust_in
from docindex_dagster.core.urls import repository_location
from docindex_dagster.sources import registry
from docindex_dagster.sources.paths import read_regular

_MAX_LIST_BYTES = 16 << 20
_ROOT, _PROJECT = "DOCINDEX_ROOT", "DOCINDEX_PROJECT"


@dataclass(frozen=True, slots=True)
class Project:
    """A folder with a `docindex.toml`, and what the project indexes."""

    root: Path
    folders: tuple[Path, ...]  # absolute paths of the folders of its sources
    places: tuple[str, ...]  # the repositories that it follows, in the format of `place_of`

    @property
    def name(self) -> str:
        """The name of the project's folder."""
        return self.root.name

    @property
    def exists(self) -> bool:
        """Whether the project still exists."""
        return (self.root / CONFIG_NAME).is_file()


def list_file() -> Path:
    """Return the path of the project list, which may not exist yet."""
    return user_config_path("docindex", appauthor=False) / "projects.json"


def known() -> list[Project]:
    """Return the listed projects that still exist."""
    return [project for project in _read() if project.exists]


def register(settings: Settings) -> None:
    """List a project with what it indexes now, and drop deleted projects from the list.

    Raises:
        OSError: The list cannot be written.
    """
    project = of(settings)
    if project in _read():
        return
    with _locked():
        _write([*(other for other in known() if other.root != project.root), project])


def forget(root: Path) -> bool:
    """Remove a project from the list; return False if it is not listed.

    Raises:
        OSError: The list cannot be written.
    """
    if all(project.root != root for project in _read()):
        return False
    with _locked():
        _write([project for project in known() if project.root != root])
    return True


def of(settings: Settings) -> Project:
    """Return the project that the settings describe."""
    folders: set[Path] = set()
    places: set[str] = set()
    for source in registry.sources(settings).values():
        if source.remote is None:
            folders.add(source.path)
        elif source.remote.is_local:
            folders.add(Path(source.remote.url))
        else:
            places.add(repository_location(source.remote.url))
    return Project(settings.root, tuple(sorted(folders)), tuple(sorted(places)))


def by_folder(folder: Path, projects: list[Project]) -> tuple[Path | None, list[Project]]:
    """Return the innermost indexed folder around a folder, if any, and the projects that index it."""
    names = {Path(os.path.normpath(folder.absolute())), real_path(folder)}
    around = {
        (indexed, project)
        for project in projects
        for indexed in project.folders
        if any(name.is_relative_to(root) for name in names for root in (indexed, real_path(indexed)))
    }
    innermost = max((indexed for indexed, _ in around), key=lambda indexed: len(indexed.parts), default=None)
    real = real_path(innermost) if innermost else None
    matching = {project for indexed, project in around if real_path(indexed) == real}
    return innermost, sorted(matching, key=lambda project: project.root)


def _by_remote(folder: Path, projects: list[Project]) -> tuple[Path, str, list[Project]]:
    """Return the clone around a folder, its repository, and the projects that follow this repository.

    The clone itself names its repository, and anybody may have created the clone: see `privilege`.
    """
    tree = next((parent for parent in (folder, *folder.parents) if os.path.lexists(parent / ".git")), folder)
    for place in _remotes(tree):
        if found := [project for project in projects if place in project.places]:
            return tree, place, found
    return tree, "", []


def privilege(project: Project, place: str) -> Privilege:
    """Return the privilege that a clone needs to use a project that follows its repository."""
    return Privilege.of("project", f"answers from {project.root}, which follows {place}")


def _remotes(tree: Path) -> list[str]:
    """Return the repositories of a clone's remotes; none for a work tree whose git folder is elsewhere."""
    if (tree / ".git").is_symlink():
        return []
    try:  # a branch takes a hundred bytes of the file
        text = os.fsdecode(read_regular(tree / ".git" / "config", _MAX_LIST_BYTES))
    except OSError:
        return []
    places, in_remote = [], False
    for line in text.splitlines():
        key, _, value = line.strip().partition("=")
        if key.startswith("["):
            in_remote = key.startswith("[remote ")
        elif in_remote and key.strip() == "url":
            places.append(repository_location(value.strip().strip('"')))
    return places


def _locked() -> Any:
    return exclusive(list_file().with_suffix(".lock"), f"process {os.getpid()}", on_wait=lambda _: None)


def _read() -> list[Project]:
    try:
        entries = json.loads(read_regular(list_file(), _MAX_LIST_BYTES))["projects"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return []
    read = map(_project, entries if isinstance(entries, list) else [])
    return [project for project in read if project is not None]


def _project(entry: object) -> Project | None:
    match entry:
        case {"root": str(root), "folders": list(folders), "places": list(places)}:
            texts = (root, *folders, *places)
            is_valid = all(isinstance(text, str) and "\0" not in text for text in texts) and root.startswith("/")
            return Project(Path(root), tuple(map(Path, folders)), tuple(places)) if is_valid else None
    return None


def _write(projects: list[Project]) -> None:
    entries = [
        {"root": str(project.root), "folders": list(map(str, project.folders)), "places": list(project.places)}
        for project in projects
    ]
    with atomic_write(list_file(), 0o600) as temporary:
        temporary.write_text(json.dumps({"projects": entries}, indent=1) + "\n", encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Choice:
    """The folder of a selected project, or the folder in which to start one."""

    root: Path
    because: str = ""  # if selected by what it indexes: a description of the match
    tried: str = ""  # if there is no project yet: where docindex looked for one

    def settings(self) -> Settings:
        """Return the settings of the project, which needs a config file, or a published index set by a variable.

        Raises:
            SourceError: There is no project; the message says where docindex looked and how to start one.
            SettingsError: As for `load_settings`.
        """
        settings = load_settings(self.root)
        if not settings.config_file.exists() and settings.storage.url is None:
            raise SourceError(
                f"no project found: {self.tried}. Search a folder without a project with `docindex search QUERY PATH`, "
                "ask about it with `docindex ask QUESTION PATH`, start a project with `docindex init`, "
                "or select one with --project"
            )
        return settings


def choose(
    start: Path | None = None, project: str | None = None, *, by_folder: bool = True, by_url: bool = True
) -> Choice:
    """Select the project that the user means.

    Args:
        start: A folder of the project, or one that it indexes. With None, environment variables decide, then the
            working directory.
        project: Name or path of the project; takes precedence over everything else.
        by_folder: Also consider known projects that index the folder.
        by_url: Also consider known projects that follow the repository that the folder was cloned from, if trusted.

    Raises:
        SourceError: No project or several projects have the name, or several index the folder.
    """
    if project:
        return _named(project, "--project")
    if start is None and (root := os.environ.get(_ROOT)):
        return _above(Path(root), f"{_ROOT}={root} and its parent folders have no {CONFIG_NAME}")
    if start is None and (name := os.environ.get(_PROJECT)):
        return _named(name, _PROJECT)
    folder = (start or Path.cwd()).absolute()
    listed = known()
    tried = "" if start else f"{_ROOT} and {_PROJECT} are not set, "
    found = _above(
        folder,
        f"{tried}{folder} and its parent folders have no {CONFIG_NAME}, and {_count(listed)} of "
        f"{list_file()} indexes it",
    )
    if (found.root / CONFIG_NAME).is_file() or not by_folder:
        return found
    return _by_contents(folder, listed, found, by_url=by_url)


def _above(folder: Path, tried: str) -> Choice:
    return Choice(find_root(folder), tried=tried)


def _named(name: str, origin: str) -> Choice:
    """Return the project with a name or path; the names of listed projects take precedence."""
    path = Path(os.path.expanduser(name))  # noqa: PTH111 leaves paths alone that it cannot expand
    listed = known()
    fitting = [project for project in listed if project.name == name]
    if len(fitting) > 1:
        raise SourceError(f"{origin}: {name} is ambiguous: use {_roots(fitting)}")
    if fitting:
        return Choice(fitting[0].root)
    if "\0" not in name and path.is_dir():
        return _above(path, f"{origin}: {name} and its parent folders have no {CONFIG_NAME}")
    names = ", ".join(sorted(project.name for project in listed)) or "none yet"
    raise SourceError(f"{origin}: {name} is neither a folder nor a known project; known projects: {names}")


def _by_contents(folder: Path, listed: list[Project], found: Choice, *, by_url: bool) -> Choice:
    """Return the project that indexes a folder, or that follows the repository of its clone; otherwise `found`."""
    indexed, indexing = by_folder(folder, _refresh(by_folder(folder, listed)[1]))
    if indexing or not by_url:
        return _single_choice(indexing, f"indexes {indexed}") if indexing else found
    tree, remote, followers = projects_of_clone(folder, listed)
    if not followers:
        return found
    choice = _single_choice(followers, f"follows {remote}")
    if trust_in(tree).grants(privilege(followers[0], remote)):
        return choice
    trusting, naming = command("docindex", "trust", tree), command("docindex", "--project", choice.root)
    hint = f"{choice.because}, can be used in this clone after {trusting}, or with {naming}"
    return replace(found, tried=f"{found.tried}; {hint}")


def projects_of_clone(folder: Path, listed: list[Project]) -> tuple[Path, str, list[Project]]:
    """Return the result of `_by_remote`, using what the settings of the projects declare now."""
    return _by_remote(folder, _refresh(_by_remote(folder, listed)[2]))


def _single_choice(found: list[Project], match: str) -> Choice:
    if len(found) > 1:
        first = command("docindex", "--project", found[0].root)
        raise SourceError(
            f"several projects match this folder, since each {match}: {_roots(found)}; select one, for example with "
            f"{first}"
        )
    return Choice(found[0].root, f"project {found[0].root}, which {match}")


def _refresh(listed: list[Project]) -> list[Project]:
    """Return listed projects with what their settings declare now, except those that now belong to another user."""
    current = []
    for project in listed:
        with suppress(OwnershipError):
            current.append(of(load_settings(project.root)))
    return current


def _roots(found: list[Project]) -> str:
    return " or ".join(str(project.root) for project in found)


def _count(listed: list[Project]) -> str:
    return f"none of {len(listed):,} listed projects" if listed else "no project"
