"""The declared sources: conversion of the `[[source]]` tables of the settings to `Source` objects."""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from docindex_dagster.core.errors import SettingsError, SourceError
from docindex_dagster.core.files import real_path
from docindex_dagster.core.git_folders import common_folder, preceding_worktree
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.safe_text import command
from docindex_dagster.core.settings import Settings, SourceSettings
from docindex_dagster.core.urls import local_path, repository_name
from docindex_dagster.sources import noise
from docindex_dagster.sources.model import Remote, Source
from docindex_dagster.sources.paths import path_to_name


@dataclass(frozen=True, slots=True)
class DeclaredSource:
    """A declared source, as `docindex source list --json` prints it."""

    source: str
    path: str
    url: str | None
    branch: str | None
    default: bool

    @classmethod
    def of(cls, settings: Settings, source: Source) -> "DeclaredSource":
        """Describe a source; `default` says whether it is the default source of searches."""
        url, branch = (source.remote.url, source.remote.ref) if source.remote else (None, None)
        return cls(source.key, str(source.path), url, branch, source.key == settings.search.default_source)


def sources(settings: Settings) -> dict[str, Source]:
    """Return all declared sources by key, whether their folders exist or not.

    Raises:
        SettingsError: Two sources have the same key.
    """
    found: dict[str, Source] = {}
    for declared in settings.source:
        for source in _declared_sources(settings, declared):
            if source.key in found:
                raise SettingsError(
                    f"{settings.config_file}: two sources have the key {source.key} "
                    f"({_location(found[source.key])} and {_location(source)}); give one of them another name, "
                    f"for example with {command('docindex', 'source', 'add', _location(source), '--name', 'NAME')}"
                )
            found[source.key] = source
    return found


def find(settings: Settings, name: str) -> Source:
    """Return the source for `git/NAME`, `library/NAME`, or NAME alone if it is unique.

    Raises:
        SourceError: No source or several sources match.
        SettingsError: As for `sources`.
    """
    declared = sources(settings)
    fitting = [source for key, source in declared.items() if name in {key, source.name}]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise SourceError(f"{name!r} is ambiguous: use {' or '.join(source.key for source in fitting)}")
    raise unknown(name, declared)


def unknown(name: str, declared: Collection[str]) -> SourceError:
    """Return the error for a name or key that no declared source has."""
    known = ", ".join(declared) or "none yet; add one with `docindex index PATH`"
    return SourceError(f"source {name!r} not found; known sources: {known}")


def source_containing(settings: Settings, path: Path, *, through_links: bool = True) -> Source | None:
    """Return the source whose folder contains `path`, as `located` does.

    Raises:
        SettingsError: As for `sources`.
    """
    found = locate_path(settings, path, through_links=through_links)
    return found[0] if found else None


def locate_path(settings: Settings, path: Path, *, through_links: bool = True) -> tuple[Source, str] | None:
    """Return the innermost source that contains `path`, and the name of `path` in it ("" for the source's folder).

    If no source contains `path` as written, symlinks above the source are resolved, and with `through_links` those in
    `path`, too. Symlinks inside the source never are. Another work tree of the source's repository does not belong to
    the source, wherever its folder is.

    Raises:
        SettingsError: As for `sources`.
    """
    if "\0" in str(path):
        return None
    normal = os.path.normpath(path.absolute())
    declared = sources(settings).values()
    if found := _innermost((source, source.path, normal) for source in declared):
        return found
    real = [(source, Path(os.path.realpath(source.path))) for source in declared]
    candidates = [normal]
    if through_links:
        folder, name = os.path.split(normal)
        candidates += [f"{os.path.realpath(folder)}/{name}", os.path.realpath(normal)]
    for candidate in candidates:
        if found := _innermost((source, root, candidate) for source, root in real):
            return found
    return None


def _innermost(candidates: Iterable[tuple[Source, Path, str]]) -> tuple[Source, str] | None:
    """Return the source whose folder is the innermost around its path, and the name of the path below that folder."""
    around = [(folder, source, path) for source, folder, path in candidates if Path(path).is_relative_to(folder)]
    if not around:
        return None
    folder, source, path = max(around, key=lambda match: len(match[0].parts))
    below = Path(path).relative_to(folder)
    if _is_in_other_tree(folder, folder / below):
        return None
    return source, path_to_name(os.fsencode(below)) if below.parts else ""


def work_tree(folder: Path) -> Path | None:
    """Return the root of the git work tree that contains a folder."""
    return next((parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), None)


@dataclass(frozen=True, slots=True)
class LinkedTree:
    """A linked work tree, and the sources in other work trees of the same repository.

    Attributes:
        root: The root folder of the work tree.
        own: Maps the key of a source in another work tree to the key of the same folder in this one, or "" if that
            folder is not declared.
    """

    root: Path
    own: Mapping[str, str]


def linked_tree(settings: Settings, folder: Path) -> LinkedTree | None:
    """Return the linked work tree around a folder; None if there is none, or if no source is in another work tree.

    Raises:
        SettingsError: As for `sources`.
    """
    root = work_tree(folder.resolve())
    if root is None or not (root / ".git").is_file():
        return None
    common = common_folder(root)
    declared = [source for source in sources(settings).values() if source.remote is None]
    by_folder = {real_path(source.path): source.key for source in declared}
    own = {}
    for path, key in by_folder.items():
        other = work_tree(path)
        if other is not None and other != root and common_folder(other) == common:
            own[key] = by_folder.get(root / path.relative_to(other), "")
    return LinkedTree(root, own) if own else None


def _is_in_other_tree(source: Path, path: Path) -> bool:
    """Return whether a path below a source is in a linked work tree of the source's repository."""
    tree = work_tree(path)
    if tree is None or tree == source or source not in tree.parents or not (tree / ".git").is_file():
        return False
    around = work_tree(source)
    return around is not None and common_folder(around) == common_folder(tree)


def children(settings: Settings, parent: Path) -> list[Source] | None:
    """Return the libraries that the settings declare for the folders in `parent`; None if they declare none."""
    for declared in settings.source:
        if declared.declares_children and parent_of_libraries(settings.root, declared.path or "") == parent:
            return list(_declared_sources(settings, declared))
    return None


def parent_of_libraries(root: Path, path: str) -> Path:
    """Return the parent folder that a path such as `raw/docs/{library}` refers to, normalized."""
    return Path(os.path.normpath(folder(root, path).parent))


def sources_following(settings: Settings, url: str) -> list[Source]:
    """Return the sources that follow the repository at a URL.

    Raises:
        SettingsError: As for `sources`.
    """
    return [source for source in sources(settings).values() if source.remote and source.remote.url == url]


def folder(root: Path, path: str) -> Path:
    """Return the absolute path for a path setting of the project at `root`."""
    return (root / Path(path).expanduser()).absolute()


def _real_name(path: Path) -> str:
    """Return the last component of a path, resolving it if it is a symlink or points upwards."""
    is_real = path.name not in {"", ".."} and not path.is_symlink()
    return path.name if is_real else real_path(path).name


def _location(source: Source) -> str:
    return source.remote.url if source.remote else str(source.path)


def _declared_sources(settings: Settings, declared: SourceSettings) -> Iterator[Source]:
    """Yield the sources that one table declares: a folder or repository, each child of a folder, or branches."""
    if declared.url is not None:
        yield from _followed_sources(settings, declared, declared.name or _repository_name(declared.url), declared.url)
        return
    path = folder(settings.root, declared.path or "")
    if declared.declares_children:
        if path.parent.is_dir():
            children = (child for child in path.parent.iterdir() if child.is_dir() and not child.name.startswith("."))
            yield from (
                _source(settings, declared, _key_name(child.name), child)
                for child in sorted(children)
                if preceding_worktree(child, path.parent, lambda other: not other.parts[0].startswith(".")) is None
            )
        return
    name = declared.name or _key_name(_real_name(path) or "root")
    if declared.kind == "git":
        name = declared.name or name.replace("@", "%40")  # "@" separates a repository from its branch
        yield from _followed_sources(settings, declared, name, str(path))
    else:
        yield _source(settings, declared, name, path)


def _followed_sources(settings: Settings, declared: SourceSettings, name: str, location: str) -> Iterator[Source]:
    """Yield a repository, given by folder or URL, and its additional branches."""
    if declared.path is not None and declared.branch is None:
        yield _source(settings, declared, name, Path(location))
    else:
        yield _followed_branch(settings, declared, name, location, declared.branch)
    for branch in declared.branches:
        yield _followed_branch(settings, declared, f"{name}@{branch}", location, branch)


def _followed_branch(settings: Settings, declared: SourceSettings, name: str, location: str, ref: str | None) -> Source:
    layout = Layout(settings.home)
    key = f"git/{name}"
    source = _source(settings, declared, name, layout.checkout(key))
    local = local_path(location)
    real = None if local is None else _real(settings, declared.url or declared.path or "", Path(local))
    remote = Remote(location, ref, layout.repository(key), real)
    # A checkout contains only committed files; untracked ones belong to the work tree. It is inside the home folder.
    return replace(source, remote=remote, exclude=declared.exclude, untracked=False, real=None, borrows=None)


def _index_glob(settings: Settings, path: Path, real: Path) -> Iterator[str]:
    """Yield the glob that excludes an index inside a source; otherwise each run would find changed files.

    A source that is, directly or through a symlink, a folder that discovery never enters has no files. A checkout could
    declare its `.git`, which contains the user's passwords, or `.docindex`.
    """
    if any(map(_is_never_entered, real.parts)):
        root = Path(os.path.realpath(settings.root))
        if real.is_relative_to(root) and any(map(_is_never_entered, real.relative_to(root).parts)):
            yield "*"
            return
    folder, home = str(real), settings.home if real == path else os.path.realpath(settings.home)
    if not os.path.normpath(home).startswith(folder):  # the common case
        return
    relative = os.path.relpath(home, folder)
    names = os.fsencode(relative).split(b"/")
    is_skipped = noise.folder_reason(names[-1]) is not None or any(map(noise.is_never_entered, names))
    if relative != "." and names[0] != b".." and not is_skipped:
        yield "/" + re.sub(r"([\\*?\[\]])", r"\\\1", relative) + "/"


def _is_never_entered(name: str) -> bool:
    return noise.is_never_entered(os.fsencode(name))


def _repository_name(url: str) -> str:
    return _key_name(repository_name(url)).replace("@", "%40")


def _key_name(name: str) -> str:
    """Return a folder name for use in a key, percent-escaping what a Dagster partition key cannot contain."""
    escaped = "".join(char if char.isprintable() else quote(char, errors="surrogateescape") for char in name)
    return escaped.replace("...", "%2E%2E%2E")


def _source(settings: Settings, declared: SourceSettings, name: str, path: Path) -> Source:
    real = _real(settings, declared.path or "", path)
    return Source(
        key=f"{declared.kind}/{name}",
        kind=declared.kind,
        name=name,
        path=path,
        real=real,
        borrows=settings.granted_to(declared.path or "") if declared.kind == "git" else None,
        submodules=declared.submodules,
        include=declared.include,
        exclude=(*declared.exclude, *_index_glob(settings, path, real)),
        recursive=declared.recursive,
        include_code=declared.include_code,
        untracked=declared.untracked,
        version=declared.version,
        max_file_bytes=settings.discovery.max_file_bytes,
        secrets=settings.discovery.secrets,
    )


def _real(settings: Settings, location: str, path: Path) -> Path:
    """Return the resolved path; if it is outside the project and not granted, the original one, which is not read."""
    real = Path(os.path.realpath(path))
    return path if settings.confines(location, real) else real
