"""Files as immutable objects: each upload gets a unique name.

So the garbage collector cannot delete an object while another process uploads the same bytes again. Partial uploads,
and uploads for a publication that lost a conflict, are merely garbage.
"""

import hashlib
import os
import shutil
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

from docindex_dagster.core.errors import ConflictError, DamagedObjectError
from docindex_dagster.core.files import sync_new
from docindex_dagster.objects.bucket import Bucket, in_parallel

FOLDER = "objects/"
"""Prefix of all content objects."""
MAX_UNREFERENCED_AGE = timedelta(hours=6)
"""Time limit within which a manifest or pointer references an uploaded object, or never will."""
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Content:
    """A file in the object store: the hash and size of its bytes, and its object name."""

    digest: str
    size: int
    name: str


def upload(bucket: Bucket, files: Mapping[str, Path], known: Collection[Content]) -> dict[str, Content]:
    """Upload files, except those whose bytes are already in `known`; return their contents by the keys of `files`.

    Raises:
        ObjectStoreError: The store rejects a request or does not respond.
        OSError: A file cannot be read.
    """
    uploaded = {content.digest: content for content in known}
    digests = dict(zip(files, in_parallel(hash_file, files.values()), strict=True))
    new = {
        digest: file for digest, file in zip(digests.values(), files.values(), strict=True) if digest not in uploaded
    }

    def put(digest: str) -> Content:
        file = new[digest]
        name = f"{FOLDER}{digest}.{uuid4().hex[:12]}"
        bucket.upload(name, file)
        return Content(digest, file.stat().st_size, name)

    uploaded |= {content.digest: content for content in in_parallel(put, new)}
    return {key: uploaded[digest] for key, digest in digests.items()}


def check_age(begun: float) -> None:
    """Check that objects uploaded since `begun` (`time.monotonic`) may still be referenced.

    Raises:
        ConflictError: The garbage collector may have deleted them.
    """
    if time.monotonic() - begun > MAX_UNREFERENCED_AGE.total_seconds() / 2:
        raise ConflictError(f"the upload took longer than {MAX_UNREFERENCED_AGE / 2}, so its result is discarded")


def download(bucket: Bucket, wanted: Mapping[Path, Content], top: Path) -> None:
    """Download files to paths below the folder `top`, replacing each atomically, and sync them to disk.

    Raises:
        FileNotFoundError: An object was deleted, so the manifest or pointer that references it has been replaced.
        DamagedObjectError: The bytes of an object do not match its hash.
        ObjectStoreError: The store does not respond.
        FullDiskError: The disk is full.
    """
    targets: dict[Content, list[Path]] = {}
    for path, content in wanted.items():
        targets.setdefault(content, []).append(path)

    def get(content: Content) -> None:
        first, *others = targets[content]
        first.parent.mkdir(parents=True, exist_ok=True)
        temporary = _temporary(first)
        try:
            bucket.download(content.name, content.size, temporary)
            if hash_file(temporary) != content.digest:
                raise DamagedObjectError(f"{bucket.url}/{content.name} is damaged: its hash does not match its name")
            temporary.replace(first)
        finally:
            temporary.unlink(missing_ok=True)
        for other in others:
            link(first, other)

    in_parallel(get, targets)
    sync_new(wanted, top)


def link(file: Path, other: Path) -> None:
    """Hard-link an immutable file to a second path, atomically; copy it if hard links are not possible."""
    other.parent.mkdir(parents=True, exist_ok=True)
    temporary = _temporary(other)
    with suppress(FileNotFoundError):
        temporary.unlink()
    try:
        os.link(file, temporary)
    except OSError:
        shutil.copyfile(file, temporary)
    temporary.replace(other)
    temporary.unlink(missing_ok=True)  # renaming one hard link over another to the same file does nothing


def hash_file(file: Path) -> str:
    """Return the hash of a file's bytes, in the format of `core.hashing.digest`."""
    with file.open("rb") as opened:
        hashed = hashlib.blake2b(digest_size=16)
        while block := opened.read(_BLOCK):
            hashed.update(block)
        return hashed.hexdigest()


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")
