"""Ad hoc indexes of folders that do not belong to a project.

Each is a project in the user's cache folder with its own `docindex.toml`, for one folder or a set of folders. Creating
an index deletes those that have not been used for 30 days.
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
from docindex_dagster.core.files import atomic_write, folder_bytes
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
_USED = "used"  # file whose mtime is the time of the last search
_GRAPH = "graph"  # file that exists once a search has needed the graph
_HOME = ".docindex"
_HEADER = "docindex: index of folders, created by `docindex search QUERY PATH`. You can delete it."


@dataclass(frozen=True, slots=True)
class FolderIndex:
    """An index of some folders in the cache."""

    root: Path
    folders: tuple[Path, ...]

    @property
    def settings(self) -> Settings:
        """Its settings, with environment variables applied, but always with the home in the cache.

        The graph is enabled only once a search has needed it.
        """
        settings = load_settings(self.root)
        graph = settings.graph.model_copy(update={"enabled": settings.graph.enabled and (self.root / _GRAPH).exists()})
        return settings.model_copy(update={"home": self.root / _HOME, "graph": graph})

    @property
    def used_at(self) -> float:
        """Time of the last search, in seconds since 1970."""
        return (self.root / _USED).stat().st_mtime

    @property
    def size(self) -> int:
        """Size on disk in bytes."""
        return folder_bytes(self.root)

    def covers(self, paths: Sequence[Path]) -> bool:
        """Return whether every path is inside one of the folders."""
        return all(any(path.is_relative_to(folder) for folder in self.folders) for path in paths)


def cache_folder() -> Path:
    """Return the folder that contains all folder indexes; it may not exist yet."""
    return trust.cache() / trust.FOLDERS


def folder_indexes() -> list[FolderIndex]:
    """Return all existing folder indexes, except damaged ones."""
    roots = sorted(root for root in cache_folder().glob("*/") if not _is_dropped(root))
    return [found for root in roots if (found := _read(root)) is not None]


def index_for(paths: Sequence[Path], *, wants_graph: bool = False) -> FolderIndex:
    """Return an index that covers some absolute, resolved paths; create one of their folders if there is none.

    Once `wants_graph` is passed, the index has a graph from then on.

    Raises:
        SourceError: The path of a folder is not valid UTF-8, or contains the library placeholder.
    """
    covering = [found for found in folder_indexes() if found.covers(paths)]
    found = min(covering, key=lambda found: len(found.folders), default=None) or _make(_outermost(paths))
    (found.root / _USED).touch(mode=0o600)
    if wants_graph:
        (found.root / _GRAPH).touch(mode=0o600)
    return found


def open_current(found: FolderIndex, sources: Sequence[Source], report: Callable[[str], None]) -> Reader:
    """Bring some sources of an index up to date, then open it; `report` is called with progress messages.

    Raises:
        DocindexError: Indexing failed, as in `runner.run.index`.
    """
    _bring_up_to_date(found, sources, report)
    try:
        return open_reader(Layout(found.settings.home))
    except DamagedStoreError:
        declared = registry.sources(found.settings).values()
        # A folder that has become a symlink is no longer the folder that the user named.
        _bring_up_to_date(found, [source for source in declared if source.real == source.path], report, anew=True)
        return open_reader(Layout(found.settings.home))


def delete_index(found: FolderIndex) -> bool:
    """Delete an index; return False if another process is creating or updating it."""
    with exclusive_if_free(_lock(found.root), f"process {os.getpid()}") as is_free:
        if is_free:
            gone = found.root.with_name(f".{found.root.name}.{os.getpid()}")
            found.root.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)
        return is_free


def _bring_up_to_date(
    found: FolderIndex, sources: Sequence[Source], report: Callable[[str], None], *, anew: bool = False
) -> None:
    """Index the sources that have changed, one process at a time."""
    settings = found.settings
    if not anew and all(is_current(settings, source) for source in sources):
        return

    def wait(_owner: str) -> None:
        report(f"waiting for another process to index {_names(found)}")

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
    """Return a listener that reports once how many files are indexed, as soon as the number is known."""
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
            report(f"indexing changes in {source.path} ({files})")

    return listener


def _names(found: FolderIndex) -> str:
    return " and ".join(map(str, found.folders))


def _outermost(paths: Sequence[Path]) -> list[Path]:
    """Return the folders of some paths, without those inside others."""
    folders = {path if path.is_dir() else path.parent for path in paths}
    return sorted(folder for folder in folders if not any(parent in folders for parent in folder.parents))


def _make(folders: Sequence[Path]) -> FolderIndex:
    """Create an empty index of folders, and delete indexes that have not been used for 30 days."""
    for folder in (cache_folder().parent, cache_folder()):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for old in _unused():
        delete_index(old)
    for leftover in filter(_is_dropped, cache_folder().glob("*/")):  # by a process that died during the deletion
        shutil.rmtree(leftover, ignore_errors=True)
    root = cache_folder() / digest_parts(*map(str, folders))
    with exclusive(_lock(root), f"process {os.getpid()}", lambda _: None):
        root.mkdir(mode=0o700, exist_ok=True)
        (root / _USED).touch(mode=0o600)
        with atomic_write(root / CONFIG_NAME, 0o600) as temporary:
            temporary.write_bytes(_declaration(folders))
    return FolderIndex(root, tuple(folders))


def _declaration(folders: Sequence[Path]) -> bytes:
    """Return a `docindex.toml` with each folder as a library; folders with duplicate names get numbered names.

    Raises:
        SourceError: The path of a folder is not valid UTF-8, or contains the library placeholder.
    """
    if placeholder := next((folder for folder in folders if LIBRARY_PLACEHOLDER in str(folder)), None):
        raise SourceError(
            f"cannot index {placeholder}: {LIBRARY_PLACEHOLDER} is a placeholder in source paths; rename the folder, "
            "or search its parent folder"
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
        raise SourceError("cannot index a folder whose path is not valid UTF-8; rename it") from error


def _unused() -> Iterator[FolderIndex]:
    for found in folder_indexes():
        if time.time() - found.used_at > _UNUSED_S:
            yield found


def _read(root: Path) -> FolderIndex | None:
    """Return the index in a folder; None if it is missing or damaged."""
    try:
        values = tomllib.loads((root / CONFIG_NAME).read_text(encoding="utf-8"))
        folders = tuple(Path(table["path"]) for table in values["source"])
        found = FolderIndex(root, folders)
        found.used_at  # noqa: B018 checks that the file exists
    except (OSError, ValueError, KeyError, TypeError, SettingsError):
        return None
    return found


def _is_dropped(root: Path) -> bool:
    return root.name.startswith(".")


def _lock(root: Path) -> Path:
    return root.with_name(f"{root.name}.lock")
