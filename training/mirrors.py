"""Bare clones of the repositories of the corpus, and the files that are read from them."""

import csv
import os
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

from training.licences import Entry, git

_LARGEST = 300_000  # bytes; larger files are data


@dataclass(frozen=True, slots=True)
class _Blob:
    path: bytes
    object_id: bytes


def read_exclusions(path: Path) -> Mapping[str, tuple[str, ...]]:
    """Return the excluded paths of each repository; paths of folders end with a slash.

    Excluded files have another licence, or were copied from elsewhere, translated or generated.
    """
    found = defaultdict[str, list[str]](list)
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found[row["repository"]].append(row["path"])
    return {repository: tuple(paths) for repository, paths in found.items()}


def mirror_of(folder: Path, entry: Entry) -> Path:
    """Return the bare clone of a repository, with one revision and its history; clone it if it is missing.

    Raises:
        CalledProcessError: the revision cannot be fetched.
    """
    path = folder / entry.repository.replace("/", "+") / "repo"
    if not _has(path, entry.revision) or _is_shallow(path):
        path.mkdir(parents=True, exist_ok=True)
        git(path, "init", "--quiet", "--bare")
        whole = ["--unshallow"] if _is_shallow(path) else []
        git(path, "fetch", "--quiet", *whole, f"https://github.com/{entry.repository}", entry.revision)
    return path


def check_out(
    mirror: Path,
    revision: str,
    target: Path,
    excluded: tuple[str, ...],
    wanted: Callable[[str], bool] = lambda _path: True,
) -> None:
    """Write the files of a revision to a folder, without links, large files and missing objects."""
    blobs = [
        blob
        for blob in _blobs(mirror, revision)
        if not _is_excluded(path := os.fsdecode(blob.path), excluded) and wanted(path)
    ]
    with TemporaryFile() as ids:
        ids.write(b"".join(blob.object_id + b"\n" for blob in blobs))
        ids.seek(0)
        command = ["git", "-C", str(mirror), "cat-file", "--batch"]
        with subprocess.Popen(command, stdin=ids, stdout=subprocess.PIPE) as process:
            for blob, data in zip(blobs, _contents(process), strict=True):
                if data is not None:
                    _write(target, blob.path, data)


def _has(mirror: Path, revision: str) -> bool:
    command = ["git", "-C", str(mirror), "cat-file", "-e", f"{revision}^{{tree}}"]
    return mirror.is_dir() and subprocess.run(command, check=False, capture_output=True).returncode == 0


def _is_shallow(path: Path) -> bool:
    """Return whether the history of a clone is truncated."""
    return (path / "shallow").exists()


def _blobs(mirror: Path, revision: str) -> Iterator[_Blob]:
    for line in git(mirror, "ls-tree", "-r", "-l", "-z", revision).split(b"\0"):
        about, _, path = line.partition(b"\t")
        match about.split():
            case [b"100644" | b"100755", b"blob", object_id, size] if size.isdigit() and int(size) <= _LARGEST:
                yield _Blob(path, object_id)
            case _:
                pass


def _is_excluded(path: str, excluded: tuple[str, ...]) -> bool:
    return any(path == name or (name.endswith("/") and path.startswith(name)) for name in excluded)


def _contents(process: "subprocess.Popen[bytes]") -> Iterator[bytes | None]:
    """Parse the output of `git cat-file --batch`: ID, type, size and content, or a line for a missing object."""
    out = process.stdout
    while out is not None and (line := out.readline()):
        match line.split():
            case [_, b"blob", size]:
                yield out.read(int(size))
                out.read(1)
            case _:
                yield None


def _write(target: Path, path: bytes, data: bytes) -> None:
    """Write a file below a folder, unless its path leads out of it, which happens only in corrupt trees."""
    parts = path.split(b"/")
    if b".." in parts or path.startswith(b"/"):
        return
    file = target / os.fsdecode(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
