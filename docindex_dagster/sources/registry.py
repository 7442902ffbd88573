"""Which sources there are: from the `[[source]]` tables of the settings to `Source` objects."""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from docindex_dagster.core.errors import SettingsError, SourceError
from docindex_dagster.core.files import real_path
from docindex_dagster.core.git_folders import common_folder, earlier_work_tree
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.safe_text import command
from docindex_dagster.core.settings import Settings, SourceSettings
from docindex_dagster.core.urls import local_path, repository_name
from docindex_dagster.sources import noise
from docindex_dagster.sources.model import Remote, Source
from docindex_dagster.sources.paths import path_to_name


@dataclass(frozen=True, slots=True)
class Declared:
    """A declared source, as `docindex source list --json` prints it."""

    source: str
    path: str
    url: str | None
    branch: str | None
    default: bool

    @classmethod
    def of(cls, settings: Settings, source: Source) -> "Declared":
        """Describe a source; `default` is whether searches without `--source` look at it alone."""
        url, branch = (source.remote.url, source.remote.ref) if source.remote else (None, None)
        return cls(source.key, str(source.path), url, branch, source.key == settings.search.default_source)


def sources(settings: Settings) -> dict[str, Source]:
    """All declared sources by key, whether or not their folders exist.

    Raises:
        SettingsError: two sources have one key.
    """
    found: dict[str, Source] = {}
    for declared in settings.source:
        for source in _declared(settings, declared):
            if source.key in found:
                raise SettingsError(
                    f"{settings.config_file}: two sources are named {source.key} "
                    f"({_place(found[source.key])} and {_place(source)}); give one of them a name of its own, as with "
                    f"{command('docindex', 'source', 'add', _place(source), '--name', 'NAME')}"
                )
            found[source.key] = source
    return found


def find(settings: Settings, name: str) -> Source:
    """The source that a user means by `git/NAME`, `library/NAME`, or NAME alone where it is unique.

    Raises:
        SourceError: none or several fit.
        SettingsError: as `sources`.
    """
    declared = sources(settings)
    fitting = [source for key, source in declared.items() if name in {key, source.name}]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise SourceError(f"{name!r} is not unique: say {' or '.join(source.key for source in fitting)}")
    raise unknown(name, declared)


def unknown(name: str, declared: Collection[str]) -> SourceError:
    """That there is no source of this name or key among those that are declared."""
    known = ", ".join(declared) or "none yet: begin with `docindex index PATH`"
    return SourceError(f"there is no source {name!r}; known sources: {known}")


def containing(settings: Settings, path: Path, *, through_links: bool = True) -> Source | None:
    """Return the source whose folder holds `path`, as `located` does.

    Raises:
        SettingsError: as `sources`.
    """
    found = located(settings, path, through_links=through_links)
    return found[0] if found else None


def located(settings: Settings, path: Path, *, through_links: bool = True) -> tuple[Source, str] | None:
    """Return the innermost source that holds `path`, and the name of `path` in it: "" for the source's own folder.

    Where no source holds `path` as it is written, links on the way to the source are resolved, and with `through_links`
    those on the way to `path`. Links in the source never are. Another work tree of the source's repository is not in
    the source, wherever its folder is.

    Raises:
        SettingsError: as `sources`.
    """
    if "\0" in str(path):
        return None
    normal = os.path.normpath(path.absolute())
    declared = sources(settings).values()
    if found := _innermost((source, source.path, normal) for source in declared):
        return found
    real = [(source, Path(os.path.realpath(source.path))) for source in declared]
    places = [normal]
    if through_links:
        folder, name = os.path.split(normal)
        places += [f"{os.path.realpath(folder)}/{name}", os.path.realpath(normal)]
    for place in places:
        if found := _innermost((source, root, place) for source, root in real):
            return found
    return None


def _innermost(places: Iterable[tuple[Source, Path, str]]) -> tuple[Source, str] | None:
    """Return the source whose folder is the innermost around a path, and the name of the path below that folder."""
    around = [(folder, source, path) for source, folder, path in places if Path(path).is_relative_to(folder)]
    if not around:
        return None
    folder, source, path = max(around, key=lambda place: len(place[0].parts))
    below = Path(path).relative_to(folder)
    if _is_in_other_tree(folder, folder / below):
        return None
    return source, path_to_name(os.fsencode(below)) if below.parts else ""


def work_tree(folder: Path) -> Path | None:
    """Return the root of the git work tree around a folder."""
    return next((place for place in (folder, *folder.parents) if (place / ".git").exists()), None)


@dataclass(frozen=True, slots=True)
class LinkedTree:
    """A linked work tree around a folder, and the sources that are in another work tree of its repository.

    Attributes:
        root: the folder of the work tree.
        own: by the key of a source in another work tree, the key of the same folder in this one; "" where no source
            declares that.
    """

    root: Path
    own: Mapping[str, str]


def linked_tree(settings: Settings, folder: Path) -> LinkedTree | None:
    """Return the linked work tree around a folder; None where there is none, or no source is in another one.

    Raises:
        SettingsError: as `sources`.
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
    """Whether a path below a source is in a linked work tree of the repository that the source is in."""
    tree = work_tree(path)
    if tree is None or tree == source or source not in tree.parents or not (tree / ".git").is_file():
        return False
    around = work_tree(source)
    return around is not None and common_folder(around) == common_folder(tree)


def children(settings: Settings, parent: Path) -> list[Source] | None:
    """The libraries that the folders in `parent` are declared to be; None where they are not."""
    for declared in settings.source:
        if declared.declares_children and parent_of_libraries(settings.root, declared.path or "") == parent:
            return list(_declared(settings, declared))
    return None


def parent_of_libraries(root: Path, path: str) -> Path:
    """The folder that a path such as `raw/docs/{library}` is about, without dots."""
    return Path(os.path.normpath(folder(root, path).parent))


def cloned_from(settings: Settings, url: str) -> list[Source]:
    """The sources that follow the repository at a URL.

    Raises:
        SettingsError: as `sources`.
    """
    return [source for source in sources(settings).values() if source.remote and source.remote.url == url]


def folder(root: Path, path: str) -> Path:
    """The absolute path that a setting of the project at `root` means."""
    return (root / Path(path).expanduser()).absolute()


def _real_name(path: Path) -> str:
    """The last part of a path without links: that of `path` itself, unless it is a link or leads upwards."""
    is_real = path.name not in {"", ".."} and not path.is_symlink()
    return path.name if is_real else real_path(path).name


def _place(source: Source) -> str:
    return source.remote.url if source.remote else str(source.path)


def _declared(settings: Settings, declared: SourceSettings) -> Iterator[Source]:
    """The sources that one table declares: a folder or repository, each child of a folder, branches."""
    if declared.url is not None:
        yield from _followed(settings, declared, declared.name or _repository_name(declared.url), declared.url)
        return
    path = folder(settings.root, declared.path or "")
    if declared.declares_children:
        if path.parent.is_dir():
            children = (child for child in path.parent.iterdir() if child.is_dir() and not child.name.startswith("."))
            yield from (
                _source(settings, declared, _key_name(child.name), child)
                for child in sorted(children)
                if earlier_work_tree(child, path.parent, lambda other: not other.parts[0].startswith(".")) is None
            )
        return
    name = declared.name or _key_name(_real_name(path) or "root")
    if declared.kind == "git":
        name = declared.name or name.replace("@", "%40")  # which stands between a repository and its branch
        yield from _followed(settings, declared, name, str(path))
    else:
        yield _source(settings, declared, name, path)


def _followed(settings: Settings, declared: SourceSettings, name: str, place: str) -> Iterator[Source]:
    """A repository, whose place is its folder or URL, and its further branches."""
    if declared.path is not None and declared.branch is None:
        yield _source(settings, declared, name, Path(place))
    else:
        yield _followed_branch(settings, declared, name, place, declared.branch)
    for branch in declared.branches:
        yield _followed_branch(settings, declared, f"{name}@{branch}", place, branch)


def _followed_branch(settings: Settings, declared: SourceSettings, name: str, place: str, ref: str | None) -> Source:
    layout = Layout(settings.home)
    key = f"git/{name}"
    source = _source(settings, declared, name, layout.checkout(key))
    local = local_path(place)
    real = None if local is None else _real(settings, declared.url or declared.path or "", Path(local))
    remote = Remote(place, ref, layout.repository(key), real)
    # A checkout holds what is committed; files that are not belong to the work tree. It is in the home itself.
    return replace(source, remote=remote, exclude=declared.exclude, untracked=False, real=None)


def _index_in(settings: Settings, path: Path, real: Path) -> Iterator[str]:
    """The glob that keeps an index in a source out of itself: each run would find that its files have changed.

    A source that is, through a link or not, a folder that discovery never enters has no files: a checkout may declare
    its `.git`, which holds the user's passwords, or `.docindex`.
    """
    if any(map(_is_never_entered, real.parts)):
        root = Path(os.path.realpath(settings.root))
        if real.is_relative_to(root) and any(map(_is_never_entered, real.relative_to(root).parts)):
            yield "*"
            return
    folder, home = str(real), settings.home if real == path else os.path.realpath(settings.home)
    if not os.path.normpath(home).startswith(folder):  # as of nearly all
        return
    place = os.path.relpath(home, folder)
    names = os.fsencode(place).split(b"/")
    is_left_out = noise.folder_reason(names[-1]) is not None or any(map(noise.is_never_entered, names))
    if place != "." and names[0] != b".." and not is_left_out:
        yield "/" + re.sub(r"([\\*?\[\]])", r"\\\1", place) + "/"


def _is_never_entered(name: str) -> bool:
    return noise.is_never_entered(os.fsencode(name))


def _repository_name(url: str) -> str:
    return _key_name(repository_name(url)).replace("@", "%40")


def _key_name(name: str) -> str:
    """A folder's name as part of a key: what a Dagster partition key cannot hold is percent-escaped."""
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
        submodules=declared.submodules,
        include=declared.include,
        exclude=(*declared.exclude, *_index_in(settings, path, real)),
        recursive=declared.recursive,
        include_code=declared.include_code,
        untracked=declared.untracked,
        version=declared.version,
        max_file_bytes=settings.discovery.max_file_bytes,
        secrets=settings.discovery.secrets,
    )


def _real(settings: Settings, place: str, path: Path) -> Path:
    """The path without links; where they lead to a folder outside that is not granted, a path that cannot be read."""
    real = Path(os.path.realpath(path))
    return path if settings.confines(place, real) else real
