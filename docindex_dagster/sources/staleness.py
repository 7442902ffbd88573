"""Files of a source that changed since they were listed, found by timestamps within a time limit.

This is accurate enough for a note next to an answer. `fingerprint` decides exactly whether there is something to index,
but takes several times as long. Here, only names that were not listed are checked against the rules.
"""

import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from docindex_dagster.core import files
from docindex_dagster.core.errors import SourceError
from docindex_dagster.core.hashing import digest
from docindex_dagster.core.tables import STARTED_NS
from docindex_dagster.sources import git, noise
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import Root, folders_around, name_to_path, path_to_name, read_beneath
from docindex_dagster.sources.rules import PathRules, path_rules
from docindex_dagster.sources.walk import walk

_BLOCK = 256  # files between two checks of the clock
_MAX_READ = 32  # restamped files whose content is compared; any further ones count as changed
_MAX_NEW = 1000  # new names checked against the rules
_TIMESTAMP_RESOLUTION_NS = 2_000_000_000  # the coarsest timestamp resolution of common file systems
_MAX_CACHED_TABLES = 16
_UNTRACKED = b"?"  # the tag that `git ls-files -t` prints


@dataclass(frozen=True, slots=True)
class Edits:
    """Paths of a source that differ from its listing; possibly incomplete if the time ran out."""

    changed: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there are no edits."""
        return not (self.changed or self.new or self.gone)


@dataclass(frozen=True, slots=True)
class Listed:
    """A table of discovered files in a form that is fast to compare."""

    paths: list[bytes]  # of files that were read
    stamps: list[tuple[int, int]]  # sizes in bytes and timestamps in nanoseconds
    hashes: pa.ChunkedArray  # of the file contents
    names: frozenset[bytes]  # of all entries, including skipped ones
    folders: frozenset[bytes]  # that were entered; each with a trailing slash, the root is empty
    since_ns: int  # a folder with an older timestamp still contains the same names


def find_edits(table: Path, source: Source, ends_at: float) -> Edits:
    """Return the differences between the disk and a source's table of discovered files.

    Args:
        table: The file of the table.
        source: A source whose files are on this machine.
        ends_at: When to stop looking, as a value of `time.monotonic`.
    """
    listed = load_listed_files(table, files.stamp(table))
    if listed is None:
        return Edits()
    try:
        suspects, gone = _compare_stamps(listed, source, ends_at)
    except (OSError, SourceError):  # for example a missing folder, which `docindex status` reports
        return Edits()
    changed = tuple(_changed_content(listed, source, suspects, ends_at))
    try:
        with git.within(max(0.0, ends_at - time.monotonic())):
            new = tuple(_new_files(listed, source, ends_at))
    except (OSError, SourceError):  # for example if git needs more time than is left
        new = ()
    return Edits(*(tuple(map(path_to_name, paths)) for paths in (changed, new, gone)))


def differs(source: Source, name: str, content_hash: str) -> bool:
    """Return whether a file cannot be read or its content has another hash."""
    try:
        path = name_to_path(name)
        data = read_beneath(os.fsencode(source.folder()), path, source.max_bytes_of(path) + 1)
    except (OSError, SourceError):
        return True
    return digest(data) != content_hash


@lru_cache(maxsize=_MAX_CACHED_TABLES)
def load_listed_files(table: Path, _: tuple[int, ...] | None) -> Listed | None:
    """Load a table of discovered files for comparison; return None if missing or damaged. Cached by file stamp."""
    try:
        read = pq.read_table(table, columns=["path", "size", "mtime_ns", "content_hash"])
    except (OSError, pa.ArrowException):
        return None
    names = _paths(read["path"])
    files_read = read.filter(read["content_hash"].is_valid())
    stamps = zip(files_read["size"].to_pylist(), files_read["mtime_ns"].to_pylist(), strict=True)
    started_ns = int((read.schema.metadata or {}).get(STARTED_NS, 0))
    return Listed(
        _paths(files_read["path"]),
        list(stamps),
        files_read["content_hash"],
        frozenset(names),
        frozenset(folders_around(names)),
        started_ns - _TIMESTAMP_RESOLUTION_NS,
    )


def _paths(names: pa.ChunkedArray) -> list[bytes]:
    """Return `name_to_path` of each name; most names are stored as the bytes of their path."""
    paths: list[bytes] = names.cast(pa.binary()).to_pylist()
    return [name_to_path(path.decode()) if b"%" in path else path for path in paths]


def _compare_stamps(listed: Listed, source: Source, ends_at: float) -> tuple[list[int], list[bytes]]:
    """Return the positions of files whose size or timestamp differs, and the paths of missing files."""
    differing: list[int] = []
    gone: list[bytes] = []
    with Root(os.fsencode(source.folder())) as root:
        for start in range(0, len(listed.paths), _BLOCK):
            if time.monotonic() > ends_at:
                break
            paths, expected = listed.paths[start : start + _BLOCK], listed.stamps[start : start + _BLOCK]
            found = [_stamp(root, path) for path in paths]
            if found != expected:
                missing = [path for path, current in zip(paths, found, strict=True) if current is None]
                gone += missing
                pairs = enumerate(zip(found, expected, strict=True), start)
                differing += [position for position, (new, old) in pairs if new is not None and new != old]
    return differing, gone


def _stamp(root: Root, path: bytes) -> tuple[int, int] | None:
    try:
        found = root.lstat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def _changed_content(listed: Listed, source: Source, suspects: list[int], ends_at: float) -> Iterator[bytes]:
    """Yield the suspects whose content differs; those that there is no time to read count as changed."""
    for number, position in enumerate(suspects):
        path = listed.paths[position]
        is_read = number < _MAX_READ and time.monotonic() < ends_at
        if not is_read or differs(source, path_to_name(path), listed.hashes[position].as_py()):
            yield path


def _new_files(listed: Listed, source: Source, ends_at: float) -> Iterator[bytes]:
    """Yield files that would be indexed but were not listed."""
    unknown = list(_unlisted_names(listed, source, ends_at))[:_MAX_NEW]
    if not unknown:
        return
    tracked = set[bytes]()
    rules = path_rules(source, lambda folder: folder in listed.folders or folder in tracked)
    is_git = source.kind == "git"
    for path in _not_ignored(rules, source, unknown, tracked) if is_git else _regular_files(rules, unknown):
        if time.monotonic() > ends_at:
            return
        if rules.is_wanted(path):
            yield path


def _unlisted_names(listed: Listed, source: Source, ends_at: float) -> Iterator[bytes]:
    """Yield names that their folders did not contain when listed; folder names end in a slash."""
    with Root(os.fsencode(source.folder())) as root:
        for folder in listed.folders:
            if time.monotonic() > ends_at:
                return
            try:
                is_older = root.lstat(folder + b".").st_mtime_ns < listed.since_ns
                children = [] if is_older else root.scan(folder)
            except OSError:  # the folder is gone, as are its files, or has become a symlink
                continue
            yield from (
                path
                for name, is_folder in children
                if not noise.is_version_control(name)
                for path in [folder + name + (b"/" if is_folder else b"")]
                if path not in listed.names and path not in listed.folders
            )


def _not_ignored(rules: PathRules, source: Source, unknown: list[bytes], tracked: set[bytes]) -> list[bytes]:
    """Return files at or below some paths that git does not ignore; add the folders of tracked files to `tracked`."""
    others = ["--others", "--exclude-standard"] if source.untracked else []
    command = ("--literal-pathspecs", "ls-files", "-z", "-t", "--cached", *others)
    listed = git.run(rules.root, *git.safe_options(rules.root), *command, "--", *unknown)
    tagged = [(line[:1], line[2:]) for line in listed.split(b"\0")[:-1]]
    tracked |= folders_around(path for tag, path in tagged if tag != _UNTRACKED)
    return [path for _, path in tagged if _is_regular(rules, path)]


def _regular_files(rules: PathRules, unknown: list[bytes]) -> Iterator[bytes]:
    """Yield the regular files at or below some paths."""
    for path in unknown:
        if path.endswith(b"/"):
            yield from (entry.path for entry in walk(rules, path) if entry.reason is None)
        elif _is_regular(rules, path):
            yield path


def _is_regular(rules: PathRules, path: bytes) -> bool:
    try:
        with Root(rules.root) as root:
            return stat.S_ISREG(root.lstat(path).st_mode)
    except OSError:  # deleted meanwhile, or a nested repository, whose name ends in a slash
        return False
