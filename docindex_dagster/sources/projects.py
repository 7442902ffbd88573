"""The list of this user's projects, and the choice of one of them.

The list, in the user's configuration folder, has the projects that have indexed something, with the folders and URLs
that they index. Damaged entries and projects that are gone are ignored. A project is chosen by its name, by a variable,
by a `docindex.toml` in the folder or above it, or by what it indexes.
"""

import json
import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from platformdirs import user_config_path

from docindex_dagster.core.errors import OwnershipError, SourceError
from docindex_dagster.core.files import real_path, replacing
from docindex_dagster.core.locks import exclusive
from docindex_dagster.core.safe_text import command
from docindex_dagster.core.settings import CONFIG_NAME, Settings, find_root, load_settings
from docindex_dagster.core.trust import Privilege, trust_in
from docindex_dagster.core.urls import place_of
from docindex_dagster.sources import registry
from docindex_dagster.sources.paths import read_regular

_LONGEST_LIST = 16 << 20  # bytes
_ROOT, _PROJECT = "DOCINDEX_ROOT", "DOCINDEX_PROJECT"


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
    names = {Path(os.path.normpath(folder.absolute())), real_path(folder)}
    around = {
        (indexed, project)
        for project in projects
        for indexed in project.folders
        if any(name.is_relative_to(place) for name in names for place in (indexed, real_path(indexed)))
    }
    innermost = max((indexed for indexed, _ in around), key=lambda indexed: len(indexed.parts), default=None)
    real = real_path(innermost) if innermost else None
    return innermost, sorted({one for at, one in around if real_path(at) == real}, key=lambda one: one.root)


def _by_remote(folder: Path, projects: list[Project]) -> tuple[Path, str, list[Project]]:
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


@dataclass(frozen=True, slots=True)
class Choice:
    """A project's folder, or the one in which a project would begin."""

    root: Path
    because: str = ""  # it was found by what it indexes: what that is
    tried: str = ""  # where it was looked for, if there is no project yet

    def settings(self) -> Settings:
        """Of the project that there is: it has a file of settings, or its index is published where a variable says.

        Raises:
            SourceError: there is none; it says where it was looked for, and how to begin.
            SettingsError: as `load_settings`.
        """
        settings = load_settings(self.root)
        if not settings.config_file.exists() and settings.storage.url is None:
            raise SourceError(
                f"there is no project: {self.tried}. Search a folder as it is with `docindex search QUERY PATH`, "
                "ask about it with `docindex ask QUESTION PATH`, begin a project with `docindex init`, "
                "or choose one with --project"
            )
        return settings


def choose(
    start: Path | None = None, project: str | None = None, *, by_folder: bool = True, by_url: bool = True
) -> Choice:
    """The project that is meant.

    Args:
        start: a folder of it, or one that it indexes. None for what the variables say, else the working directory.
        project: its name or path, which comes before all else.
        by_folder: also a known one that indexes the folder.
        by_url: also a known one that follows the repository that the folder is a clone of, if the user trusts that.

    Raises:
        SourceError: no project, or several, have the name; several index the folder.
    """
    if project:
        return _named(project, "--project")
    if start is None and (root := os.environ.get(_ROOT)):
        return _above(Path(root), f"{_ROOT}={root} has no {CONFIG_NAME}, nor has a folder above it")
    if start is None and (name := os.environ.get(_PROJECT)):
        return _named(name, _PROJECT)
    folder = (start or Path.cwd()).absolute()
    listed = known()
    tried = "" if start else f"{_ROOT} and {_PROJECT} are not set, "
    found = _above(
        folder,
        f"{tried}{folder} and the folders above it have no {CONFIG_NAME}, and {_count(listed)} of "
        f"{list_file()} indexes it",
    )
    if (found.root / CONFIG_NAME).is_file() or not by_folder:
        return found
    return _by_contents(folder, listed, found, by_url=by_url)


def _above(folder: Path, tried: str) -> Choice:
    return Choice(find_root(folder), tried=tried)


def _named(name: str, given: str) -> Choice:
    """The project of a name or path; a name alone is first one of those that are listed."""
    place = Path(os.path.expanduser(name))  # noqa: PTH111 it keeps what it cannot expand
    listed = known()
    fitting = [project for project in listed if project.name == name]
    if len(fitting) > 1:
        raise SourceError(f"{given}: {name} is not unique: say {_roots(fitting)}")
    if fitting:
        return Choice(fitting[0].root)
    if "\0" not in name and place.is_dir():
        return _above(place, f"{given}: {name} has no {CONFIG_NAME}, nor has a folder above it")
    names = ", ".join(sorted(project.name for project in listed)) or "none yet"
    raise SourceError(f"{given}: {name} is neither a folder nor a known project; known projects: {names}")


def _by_contents(folder: Path, listed: list[Project], found: Choice, *, by_url: bool) -> Choice:
    """The project that indexes a folder, or that follows the repository of its clone; else what was found before."""
    place, indexing = by_folder(folder, _as_they_are(by_folder(folder, listed)[1]))
    if indexing or not by_url:
        return _only(indexing, f"indexes {place}") if indexing else found
    tree, remote, followers = projects_of_clone(folder, listed)
    if not followers:
        return found
    choice = _only(followers, f"follows {remote}")
    if trust_in(tree).grants(privilege(followers[0], remote)):
        return choice
    trusting, naming = command("docindex", "trust", tree), command("docindex", "--project", choice.root)
    how = f"{choice.because}, answers in this clone after {trusting}, or where it is named: {naming}"
    return replace(found, tried=f"{found.tried}; {how}")


def projects_of_clone(folder: Path, listed: list[Project]) -> tuple[Path, str, list[Project]]:
    """What `_by_remote` finds, by what the settings of the projects declare now."""
    return _by_remote(folder, _as_they_are(_by_remote(folder, listed)[2]))


def _only(found: list[Project], what: str) -> Choice:
    if len(found) > 1:
        first = command("docindex", "--project", found[0].root)
        raise SourceError(
            f"several projects have this folder, as each {what}: {_roots(found)}; choose one, as with {first}"
        )
    return Choice(found[0].root, f"project {found[0].root}, which {what}")


def _as_they_are(listed: list[Project]) -> list[Project]:
    """Listed projects with what their settings declare now, but for those that another user took over."""
    current = []
    for project in listed:
        with suppress(OwnershipError):
            current.append(of(load_settings(project.root)))
    return current


def _roots(found: list[Project]) -> str:
    return " or ".join(str(project.root) for project in found)


def _count(listed: list[Project]) -> str:
    return f"none of the {len(listed):,} projects" if listed else "no project"
