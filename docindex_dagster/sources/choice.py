"""Which project is meant: by name, by a variable, by `docindex.toml` from a folder upwards, or by what it indexes."""

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from docindex_dagster.core.errors import OwnershipError, SourceError
from docindex_dagster.core.printable import command
from docindex_dagster.core.settings import CONFIG_NAME, Settings, find_root, load_settings
from docindex_dagster.core.trust import trust_in
from docindex_dagster.sources import projects
from docindex_dagster.sources.projects import Project

_ROOT, _PROJECT = "DOCINDEX_ROOT", "DOCINDEX_PROJECT"


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
    known = projects.known()
    tried = "" if start else f"{_ROOT} and {_PROJECT} are not set, "
    found = _above(
        folder,
        f"{tried}{folder} and the folders above it have no {CONFIG_NAME}, and {_count(known)} of "
        f"{projects.list_file()} indexes it",
    )
    if (found.root / CONFIG_NAME).is_file() or not by_folder:
        return found
    return _by_contents(folder, known, found, by_url=by_url)


def _above(folder: Path, tried: str) -> Choice:
    return Choice(find_root(folder), tried=tried)


def _named(name: str, given: str) -> Choice:
    """The project of a name or path; a name alone is first one of those that are listed."""
    place = Path(os.path.expanduser(name))  # noqa: PTH111 it keeps what it cannot expand
    known = projects.known()
    fitting = [project for project in known if project.name == name]
    if len(fitting) > 1:
        raise SourceError(f"{given}: {name} is not unique: say {_roots(fitting)}")
    if fitting:
        return Choice(fitting[0].root)
    if "\0" not in name and place.is_dir():
        return _above(place, f"{given}: {name} has no {CONFIG_NAME}, nor has a folder above it")
    names = ", ".join(sorted(project.name for project in known)) or "none yet"
    raise SourceError(f"{given}: {name} is neither a folder nor a known project; known projects: {names}")


def _by_contents(folder: Path, known: list[Project], found: Choice, *, by_url: bool) -> Choice:
    """The project that indexes a folder, or that follows the repository of its clone; else what was found before."""
    place, indexing = projects.by_folder(folder, _as_they_are(projects.by_folder(folder, known)[1]))
    if indexing or not by_url:
        return _only(indexing, f"indexes {place}") if indexing else found
    tree, remote, followers = projects_of_clone(folder, known)
    if not followers:
        return found
    choice = _only(followers, f"follows {remote}")
    if trust_in(tree).grants(projects.privilege(followers[0], remote)):
        return choice
    trusting, naming = command("docindex", "trust", tree), command("docindex", "--project", choice.root)
    how = f"{choice.because}, answers in this clone after {trusting}, or where it is named: {naming}"
    return replace(found, tried=f"{found.tried}; {how}")


def projects_of_clone(folder: Path, known: list[Project]) -> tuple[Path, str, list[Project]]:
    """What `projects.by_remote` finds, by what the settings of the projects declare now."""
    return projects.by_remote(folder, _as_they_are(projects.by_remote(folder, known)[2]))


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
            current.append(projects.of(load_settings(project.root)))
    return current


def _roots(found: list[Project]) -> str:
    return " or ".join(str(project.root) for project in found)


def _count(known: list[Project]) -> str:
    return f"none of the {len(known):,} projects" if known else "no project"
