"""Files as objects that never change: each upload has a name that no other had or will have.

So who removes what nothing names cannot meet who uploads the same bytes again; and what was uploaded half, or for a
publication that another one overtook, is rubbish and no more.
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
"""The prefix of all of them."""
LONGEST = timedelta(hours=6)
"""What was uploaded is named by a manifest or pointer within this time, or never."""
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Content:
    """A file in the object store: the hash and size of its bytes, and the name of its object."""

    digest: str
    size: int
    name: str


def upload(bucket: Bucket, files: Mapping[str, Path], known: Collection[Content]) -> dict[str, Content]:
    """Put files, but for those whose bytes are `known` to be there; returns what each is, by the keys of `files`.

    Raises:
        ObjectStoreError: the store refuses, or does not answer.
        OSError: a file cannot be read.
    """
    there = {content.digest: content for content in known}
    found = dict(zip(files, in_parallel(digest_of, files.values()), strict=True))
    new = {content: file for content, file in zip(found.values(), files.values(), strict=True) if content not in there}

    def put(content: str) -> Content:
        file = new[content]
        name = f"{FOLDER}{content}.{uuid4().hex[:12]}"
        bucket.upload(name, file)
        return Content(content, file.stat().st_size, name)

    there |= {content.digest: content for content in in_parallel(put, new)}
    return {key: there[content] for key, content in found.items()}


def check_age(begun: float) -> None:
    """Find out whether what was uploaded since `begun`, by `time.monotonic`, may still be named.

    Raises:
        ConflictError: it may have been removed.
    """
    if time.monotonic() - begun > LONGEST.total_seconds() / 2:
        raise ConflictError(f"it took over {LONGEST / 2} to upload this, so it is given up")


def download(bucket: Bucket, wanted: Mapping[Path, Content], top: Path) -> None:
    """Put files below the folder `top` in their places, each by one replacement, and on the disk.

    Raises:
        FileNotFoundError: an object was removed, so what names it has been replaced.
        DamagedObjectError: an object is not what it should be.
        ObjectStoreError: the store does not answer.
        FullDiskError: there is no space for a file.
    """
    places: dict[Content, list[Path]] = {}
    for path, content in wanted.items():
        places.setdefault(content, []).append(path)

    def get(content: Content) -> None:
        first, *others = places[content]
        first.parent.mkdir(parents=True, exist_ok=True)
        temporary = _temporary(first)
        try:
            bucket.download(content.name, content.size, temporary)
            if digest_of(temporary) != content.digest:
                raise DamagedObjectError(f"{bucket.url}/{content.name} is damaged: its bytes are not those of its name")
            temporary.replace(first)
        finally:
            temporary.unlink(missing_ok=True)
        for other in others:
            link(first, other)

    in_parallel(get, places)
    sync_new(wanted, top)


def link(file: Path, other: Path) -> None:
    """Give the bytes of a file that never changes a second name, by one replacement; a copy where links cannot be."""
    other.parent.mkdir(parents=True, exist_ok=True)
    temporary = _temporary(other)
    with suppress(FileNotFoundError):
        temporary.unlink()
    try:
        os.link(file, temporary)
    except OSError:
        shutil.copyfile(file, temporary)
    temporary.replace(other)
    temporary.unlink(missing_ok=True)  # a replacement by a link to the same file leaves it


def digest_of(file: Path) -> str:
    """The hash of a file's bytes, as `core.hashing.digest` gives it."""
    with file.open("rb") as opened:
        hashed = hashlib.blake2b(digest_size=16)
        while block := opened.read(_BLOCK):
            hashed.update(block)
        return hashed.hexdigest()


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")
