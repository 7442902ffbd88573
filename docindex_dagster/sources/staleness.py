"""Which files of a source were changed since they were listed: by their time stamps, in a bounded time.

Enough for a note beside an answer. `fingerprint` tells exactly whether there is something to index, and takes several
times as long; here, rules are asked only about names that were not there.
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

_BLOCK = 256  # files between two looks at the clock
_MOST_READ = 32  # files with another time stamp whose content is compared; more of them are taken for changed
_MOST_NEW = 1000  # names that rules are asked about
_COARSEST_NS = 2_000_000_000  # time stamps of file systems in use
_TABLES_KEPT = 16
_UNTRACKED = b"?"  # as `git ls-files -t` says


@dataclass(frozen=True, slots=True)
class Edits:
    """Paths of a source that differ from those that were listed: some of them, where the time was over."""

    changed: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()

    @property
    def are_none(self) -> bool:
        """Whether nothing differs."""
        return not (self.changed or self.new or self.gone)


@dataclass(frozen=True, slots=True)
class Listed:
    """A table of discovered files, in the form that is quickest to compare."""

    paths: list[bytes]  # of files that were read
    stamps: list[tuple[int, int]]  # their sizes in bytes, and their time stamps in nanoseconds
    hashes: pa.ChunkedArray  # of their contents
    names: frozenset[bytes]  # of all entries, also those that were skipped
    folders: frozenset[bytes]  # that were entered; each ends in a slash, but for the root
    since_ns: int  # a folder with an older time stamp has the same names


def edits_since(table: Path, source: Source, ends_at: float) -> Edits:
    """What differs on disk from a source's table of discovered files.

    Args:
        table: its file.
        source: whose files lie on this machine.
        ends_at: when to stop looking, by `time.monotonic`.
    """
    listed = listed_files(table, files.stamp(table))
    if listed is None:
        return Edits()
    try:
        suspects, gone = _compared(listed, source, ends_at)
    except (OSError, SourceError):  # such as a folder that is gone, which `docindex status` says
        return Edits()
    changed = tuple(_really_changed(listed, source, suspects, ends_at))
    try:
        with git.within(max(0.0, ends_at - time.monotonic())):
            new = tuple(_new(listed, source, ends_at))
    except (OSError, SourceError):  # such as git that needs longer than there is
        new = ()
    return Edits(*(tuple(map(path_to_name, paths)) for paths in (changed, new, gone)))


def differs(source: Source, name: str, content_hash: str) -> bool:
    """Whether the content of a file is another one than that with a hash, or cannot be read."""
    try:
        path = name_to_path(name)
        data = read_beneath(os.fsencode(source.folder()), path, source.most_bytes(path) + 1)
    except (OSError, SourceError):
        return True
    return digest(data) != content_hash


@lru_cache(maxsize=_TABLES_KEPT)
def listed_files(table: Path, _: tuple[int, ...] | None) -> Listed | None:
    """A table of discovered files, to compare; None where it is missing or damaged. Kept until its stamp changes."""
    try:
        read = pq.read_table(table, columns=["path", "size", "mtime_ns", "content_hash"])
    except (OSError, pa.ArrowException):
        return None
    names = _paths(read["path"])
    of_files = read.filter(read["content_hash"].is_valid())
    stamps = zip(of_files["size"].to_pylist(), of_files["mtime_ns"].to_pylist(), strict=True)
    started_ns = int((read.schema.metadata or {}).get(STARTED_NS, 0))
    return Listed(
        _paths(of_files["path"]),
        list(stamps),
        of_files["content_hash"],
        frozenset(names),
        frozenset(folders_around(names)),
        started_ns - _COARSEST_NS,
    )


def _paths(names: pa.ChunkedArray) -> list[bytes]:
    """What `name_to_path` gives for each name; for most it is how their text is stored."""
    paths: list[bytes] = names.cast(pa.binary()).to_pylist()
    return [name_to_path(path.decode()) if b"%" in path else path for path in paths]


def _compared(listed: Listed, source: Source, ends_at: float) -> tuple[list[int], list[bytes]]:
    """The positions of files with another size or time stamp, and the paths that are gone."""
    differing: list[int] = []
    gone: list[bytes] = []
    with Root(os.fsencode(source.folder())) as root:
        for start in range(0, len(listed.paths), _BLOCK):
            if time.monotonic() > ends_at:
                break
            paths, expected = listed.paths[start : start + _BLOCK], listed.stamps[start : start + _BLOCK]
            found = [_stamp(root, path) for path in paths]
            if found != expected:
                gone += [path for path, one in zip(paths, found, strict=True) if one is None]
                pairs = enumerate(zip(found, expected, strict=True), start)
                differing += [position for position, (one, other) in pairs if one is not None and one != other]
    return differing, gone


def _stamp(root: Root, path: bytes) -> tuple[int, int] | None:
    try:
        found = root.lstat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def _really_changed(listed: Listed, source: Source, suspects: list[int], ends_at: float) -> Iterator[bytes]:
    """The files among suspects whose content differs, as far as there is time to read it."""
    for number, position in enumerate(suspects):
        path = listed.paths[position]
        is_read = number < _MOST_READ and time.monotonic() < ends_at
        if not is_read or differs(source, path_to_name(path), listed.hashes[position].as_py()):
            yield path


def _new(listed: Listed, source: Source, ends_at: float) -> Iterator[bytes]:
    """Files that would be indexed and were not there."""
    unknown = list(_unknown(listed, source, ends_at))[:_MOST_NEW]
    if not unknown:
        return
    tracked = set[bytes]()
    rules = path_rules(source, lambda folder: folder in listed.folders or folder in tracked)
    for path in _of_git(rules, source, unknown, tracked) if source.kind == "git" else _below(rules, unknown):
        if time.monotonic() > ends_at:
            return
        if rules.is_wanted(path):
            yield path


def _unknown(listed: Listed, source: Source, ends_at: float) -> Iterator[bytes]:
    """Names that folders did not have; those of folders end in a slash."""
    with Root(os.fsencode(source.folder())) as root:
        for folder in listed.folders:
            if time.monotonic() > ends_at:
                return
            try:
                is_older = root.lstat(folder + b".").st_mtime_ns < listed.since_ns
                children = [] if is_older else root.scan(folder)
            except OSError:  # it is gone, as its files are, or a link by now
                continue
            yield from (
                path
                for name, is_folder in children
                if not noise.is_version_control(name)
                for path in [folder + name + (b"/" if is_folder else b"")]
                if path not in listed.names and path not in listed.folders
            )


def _of_git(rules: PathRules, source: Source, unknown: list[bytes], tracked: set[bytes]) -> list[bytes]:
    """The files at or below some paths that git does not ignore; adds the folders of those that it tracks."""
    others = ["--others", "--exclude-standard"] if source.untracked else []
    command = ("--literal-pathspecs", "ls-files", "-z", "-t", "--cached", *others)
    listed = git.run(rules.root, *git.safe_options(rules.root), *command, "--", *unknown)
    tagged = [(line[:1], line[2:]) for line in listed.split(b"\0")[:-1]]
    tracked |= folders_around(path for tag, path in tagged if tag != _UNTRACKED)
    return [path for _, path in tagged if _is_regular(rules, path)]


def _below(rules: PathRules, unknown: list[bytes]) -> Iterator[bytes]:
    """The regular files at or below some paths."""
    for path in unknown:
        if path.endswith(b"/"):
            yield from (entry.path for entry in walk(rules, path) if entry.reason is None)
        elif _is_regular(rules, path):
            yield path


def _is_regular(rules: PathRules, path: bytes) -> bool:
    try:
        with Root(rules.root) as root:
            return stat.S_ISREG(root.lstat(path).st_mode)
    except OSError:  # gone again, or a repository of its own, whose name ends in a slash
        return False
