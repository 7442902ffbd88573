"""Indexes of folders that no project has, for searching them as they are.

Each is a project in the user's cache folder, with a `docindex.toml` of its own, for one folder or a set of them. One
that was not used for a month goes when another is made.
"""

import os
import shutil
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import tomlkit

from docindex_dagster.core import trust
from docindex_dagster.core.errors import DamagedStoreError, SettingsError, SourceError
from docindex_dagster.core.events import Event, Progress, listening
from docindex_dagster.core.files import folder_bytes, replacing
from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive, exclusive_if_free
from docindex_dagster.core.privileges import LIBRARY_PLACEHOLDER
from docindex_dagster.core.settings import CONFIG_NAME, Settings, load_settings
from docindex_dagster.embedding.providers import load_embedder
from docindex_dagster.pipeline.up_to_date import is_current
from docindex_dagster.runner.run import index
from docindex_dagster.sources import registry
from docindex_dagster.sources.model import Source
from docindex_dagster.stores import maintenance
from docindex_dagster.stores.generation import read_generation
from docindex_dagster.stores.reader import Reader, open_reader

_UNUSED_S = 30 * 24 * 3600
_USED = "used"  # a file whose time of change is that of the last search
_GRAPH = "graph"  # a file that is there once a search needed the graph
_HOME = ".docindex"
_HEADER = "docindex: an index that `docindex search QUERY PATH` keeps of folders. It may be deleted."


@dataclass(frozen=True, slots=True)
class FolderIndex:
    """An index in the cache, of some folders."""

    root: Path
    folders: tuple[Path, ...]

    @property
    def settings(self) -> Settings:
        """Its own, under the variables; the index lies in the cache whatever they say, and most need no graph."""
        settings = load_settings(self.root)
        graph = settings.graph.model_copy(update={"enabled": settings.graph.enabled and (self.root / _GRAPH).exists()})
        return settings.model_copy(update={"home": self.root / _HOME, "graph": graph})

    @property
    def used_at(self) -> float:
        """When it was searched last, in seconds since 1970."""
        return (self.root / _USED).stat().st_mtime

    @property
    def size(self) -> int:
        """Its bytes on the disk."""
        return folder_bytes(self.root)

    def covers(self, paths: Sequence[Path]) -> bool:
        """Whether each of some paths lies in one of its folders."""
        return all(any(path.is_relative_to(folder) for folder in self.folders) for path in paths)


def cache_folder() -> Path:
    """The folder of all of them; it may not exist yet."""
    return trust.cache() / trust.FOLDERS


def kept() -> list[FolderIndex]:
    """Those that there are, without what is damaged."""
    roots = sorted(root for root in cache_folder().glob("*/") if not _is_dropped(root))
    return [found for root in roots if (found := _read(root)) is not None]


def index_for(paths: Sequence[Path], *, wants_graph: bool = False) -> FolderIndex:
    """The index for some paths, from the root and without links: one that covers them, else a new one of their folders.

    From the first time that `wants_graph` asks for it, the index has a graph.

    Raises:
        SourceError: as `_declaration`.
    """
    covering = [found for found in kept() if found.covers(paths)]
    found = min(covering, key=lambda found: len(found.folders), default=None) or _make(_outermost(paths))
    (found.root / _USED).touch(mode=0o600)
    if wants_graph:
        (found.root / _GRAPH).touch(mode=0o600)
    return found


def open_current(found: FolderIndex, sources: Sequence[Source], report: Callable[[str], None]) -> Reader:
    """Open an index once these of its sources are up to date; `say` is called with what is at work.

    Raises:
        DocindexError: as `runner.run.index`.
    """
    _bring_up_to_date(found, sources, report)
    try:
        return open_reader(Layout(found.settings.home))
    except DamagedStoreError:
        declared = registry.sources(found.settings).values()
        # A folder that has become a link is another one than its user named.
        _bring_up_to_date(found, [source for source in declared if source.real == source.path], report, anew=True)
        return open_reader(Layout(found.settings.home))


def drop(found: FolderIndex) -> bool:
    """Remove an index; False where a process is making or updating it."""
    with exclusive_if_free(_lock(found.root), f"process {os.getpid()}") as is_free:
        if is_free:
            gone = found.root.with_name(f".{found.root.name}.{os.getpid()}")
            found.root.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)
        return is_free


def _bring_up_to_date(
    found: FolderIndex, sources: Sequence[Source], report: Callable[[str], None], *, anew: bool = False
) -> None:
    """Index those sources that changed, one process after the other."""
    settings = found.settings
    if not anew and all(is_current(settings, source) for source in sources):
        return

    def wait(_owner: str) -> None:
        report(f"waiting for another search of {_names(found)}, which is indexing")

    with exclusive(_lock(found.root), f"process {os.getpid()}", wait):
        embedder = load_embedder(settings.embedding)
        generation = read_generation(Layout(settings.home))
        for source in sources:
            is_first = generation is None or source.key not in generation.sources
            with listening(_announcing(source, found, report, is_first=is_first)):
                try:
                    index(settings, source, embedder, full=anew)
                except DamagedStoreError:
                    index(settings, source, embedder, full=True)
        maintenance.bring_up_to_date(Layout(settings.home))


def _announcing(
    source: Source, found: FolderIndex, report: Callable[[str], None], *, is_first: bool
) -> Callable[[Event], None]:
    """Say once how many files are being indexed, as soon as that is known."""
    is_reported = False

    def listener(event: Event) -> None:
        nonlocal is_reported
        if is_reported or not isinstance(event, Progress) or event.stage != "chunks" or not event.total:
            return
        is_reported = True
        files = f"{event.total:,} file{'' if event.total == 1 else 's'}"
        if is_first:
            report(f"indexing {source.path} ({files}); kept in {found.root}")
        else:
            report(f"indexing what changed in {source.path} ({files})")

    return listener


def _names(found: FolderIndex) -> str:
    return " and ".join(map(str, found.folders))


def _outermost(paths: Sequence[Path]) -> list[Path]:
    """The folders of some paths, without those that lie in others."""
    folders = {path if path.is_dir() else path.parent for path in paths}
    return sorted(one for one in folders if not any(other in folders for other in one.parents))


def _make(folders: Sequence[Path]) -> FolderIndex:
    """Make an index of folders, still empty, and drop those that were not used for long."""
    for folder in (cache_folder().parent, cache_folder()):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for old in _unused():
        drop(old)
    for left in filter(_is_dropped, cache_folder().glob("*/")):  # by a process that was ended meanwhile
        shutil.rmtree(left, ignore_errors=True)
    root = cache_folder() / digest_parts(*map(str, folders))
    with exclusive(_lock(root), f"process {os.getpid()}", lambda _: None):
        root.mkdir(mode=0o700, exist_ok=True)
        (root / _USED).touch(mode=0o600)
        with replacing(root / CONFIG_NAME, 0o600) as temporary:
            temporary.write_bytes(_declaration(folders))
    return FolderIndex(root, tuple(folders))


def _declaration(folders: Sequence[Path]) -> bytes:
    """A `docindex.toml` with each folder as a library; those that would have the name of another are numbered.

    Raises:
        SourceError: the path of a folder is no text, or would stand for others.
    """
    if placeholder := next((folder for folder in folders if LIBRARY_PLACEHOLDER in str(folder)), None):
        raise SourceError(
            f"cannot index {placeholder}: in the path of a source, {LIBRARY_PLACEHOLDER} stands for each folder beside "
            "it; rename the folder, or search the one around it"
        )
    document = tomlkit.document()
    document.add(tomlkit.comment(_HEADER))
    tables = tomlkit.aot()
    names: set[str] = set()
    for number, folder in enumerate(folders, start=1):
        table: dict[str, str] = {"kind": "library", "path": str(folder)}
        if folder.name in names:
            table["name"] = f"folder-{number}"
        names.add(folder.name)
        tables.append(tomlkit.item(table))
    document["source"] = tables
    try:
        return tomlkit.dumps(document).encode()
    except UnicodeEncodeError as error:
        raise SourceError("the path of a folder holds bytes that are no text, so no index can name it") from error


def _unused() -> Iterator[FolderIndex]:
    for found in kept():
        if time.time() - found.used_at > _UNUSED_S:
            yield found


def _read(root: Path) -> FolderIndex | None:
    """The index in a folder; None where it is gone or damaged."""
    try:
        values = tomllib.loads((root / CONFIG_NAME).read_text(encoding="utf-8"))
        folders = tuple(Path(table["path"]) for table in values["source"])
        found = FolderIndex(root, folders)
        found.used_at  # noqa: B018 it is there
    except (OSError, ValueError, KeyError, TypeError, SettingsError):
        return None
    return found


def _is_dropped(root: Path) -> bool:
    return root.name.startswith(".")


def _lock(root: Path) -> Path:
    return root.with_name(f"{root.name}.lock")
