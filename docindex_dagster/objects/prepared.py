"""Shared tables of a source: immutable objects, and one pointer that lists them.

A run reads the pointer when it starts, and replaces exactly that version when it ends. So only one of two concurrent
runs of a source can win, even if their lock failed.
"""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from uuid import uuid4

from docindex_dagster.core.errors import DamagedObjectError, ObjectStoreError
from docindex_dagster.core.layout import Layout, file_name
from docindex_dagster.objects.bucket import Bucket
from docindex_dagster.objects.contents import Content, check_age, download, hash_file, upload

FOLDER = "prepared/"
"""Prefix of all pointers."""
_SUFFIX = ".json"
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Prepared:
    """The pointer to a source's tables.

    Attributes:
        source: The key of the source.
        number: The number of the previous pointer plus one; never reused.
        files: The tables, by their path below the home; empty to remove the source from the index.
        by: The run that wrote the pointer.
        state: A hash of the source and settings that the tables were built from; "" if they are inconsistent.
        tag: The ETag of the object, which changes with each pointer.
        nonce: A random value that makes the bytes unique to their writer.
    """

    source: str
    number: int
    files: Mapping[str, Content]
    by: str = ""
    state: str = ""
    tag: str = field(default="", compare=False)
    nonce: str = field(default_factory=lambda: uuid4().hex)

    @property
    def is_withdrawn(self) -> bool:
        """Whether the source is to be removed from the index."""
        return not self.files


def pointer_name(key: str) -> str:
    """Return the object name of a source's pointer."""
    return f"{FOLDER}{file_name(key)}{_SUFFIX}"


def read(bucket: Bucket, name: str) -> Prepared | None:
    """Read a pointer; return None if the object does not exist.

    Raises:
        ObjectStoreError: The store does not respond, or the object is not a valid pointer.
    """
    found = bucket.get(name)
    if found is None:
        return None
    try:
        values = json.loads(found.data)
        files = {path: Content(**content) for path, content in values.pop("files").items()}
        return Prepared(**values, files=files, tag=found.tag)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ObjectStoreError(f"{bucket.url}/{name} is damaged ({error}): delete it, then index the source") from error


def pointer_tags(bucket: Bucket) -> dict[str, str]:
    """Return the ETags of all pointers, by object name."""
    return {found.name: found.tag for found in bucket.list(FOLDER)}


def pull(bucket: Bucket, layout: Layout, key: str) -> Prepared | None:
    """Download the tables that a source's pointer lists to a home, and delete its other tables there.

    Without a pointer, return None and leave the home unchanged, so the first run continues from an index built before
    machines shared it. The caller holds the lock of the source in this home. Tables that are already present are not
    downloaded.

    Raises:
        DamagedObjectError: A table is missing or damaged in the store.
        ObjectStoreError: The store does not respond.
        FullDiskError: The disk is full.
    """
    for _ in range(_ATTEMPTS):
        try:
            return _pull(bucket, layout, key)
        except FileNotFoundError:  # the pointer was replaced, and its objects were deleted
            continue
        except DamagedObjectError as error:
            raise DamagedObjectError(f"{error}: index {key} in full") from error
    raise DamagedObjectError(f"{bucket.url}: a table of {key} is missing: index the source in full")


def _pull(bucket: Bucket, layout: Layout, key: str) -> Prepared | None:
    prepared = read(bucket, pointer_name(key))
    if prepared is None:
        return None
    contents = dict(prepared.files)
    local = {path.relative_to(layout.home).as_posix(): path for path in files_of(layout, key)}
    targets = {path: _below(layout.home, path) for path in contents}
    missing = {file: contents[path] for path, file in targets.items() if not _has_content(file, contents[path])}
    download(bucket, missing, layout.home.parent)
    for path in local.keys() - contents.keys():
        local[path].unlink()
    return prepared


def _has_content(file: Path, content: Content) -> bool:
    return file.is_file() and file.stat().st_size == content.size and hash_file(file) == content.digest


def push(
    bucket: Bucket,
    layout: Layout,
    key: str,
    base: Prepared | None,
    by: str,
    *,
    state: str = "",
    reupload: bool = False,
) -> Prepared:
    """Upload the source's tables in a home, and replace its pointer.

    The pointer is replaced even if the tables are unchanged: each finished run is published, which undoes a rollback.

    Args:
        bucket: The object store.
        layout: The home.
        key: The key of the source.
        base: The result of `pull`.
        by: The run that writes the pointer.
        state: The state that the tables were built from, which sensors compute without the tables.
        reupload: Whether to also upload the contents in `base`, which may be lost.

    Raises:
        ConflictError: Another run replaced the pointer first.
        ObjectStoreError: The store does not respond.
    """
    begun = time.monotonic()
    files = {path.relative_to(layout.home).as_posix(): path for path in files_of(layout, key)}
    contents = upload(bucket, files, base.files.values() if base and not reupload else ())
    check_age(begun)
    return _replace(bucket, Prepared(key, base.number + 1 if base else 1, contents, by, state), base)


def withdraw(bucket: Bucket, key: str, by: str) -> Prepared | None:
    """Mark a source for removal from the index in its pointer; return None if it has no pointer.

    The pointer is rewritten even if it is already marked, since a rollback may have restored the source.

    Raises:
        ConflictError: A run replaced the pointer first.
        ObjectStoreError: The store does not respond.
    """
    base = read(bucket, pointer_name(key))
    return None if base is None else _replace(bucket, Prepared(key, base.number + 1, {}, by), base)


def _replace(bucket: Bucket, new: Prepared, base: Prepared | None) -> Prepared:
    values = {name: value for name, value in asdict(new).items() if name != "tag"}
    data = json.dumps(values, ensure_ascii=False).encode()
    tag = bucket.replace(pointer_name(new.source), data, base.tag if base else None)
    return replace(new, tag=tag)


def files_of(layout: Layout, key: str) -> Iterator[Path]:
    """Yield the files of a source that machines share: its tables, and its paid LLM summaries."""
    found = [layout.table(asset, key) for asset in layout.assets()]
    yield from (path for path in [*found, layout.summaries(key)] if path.is_file())


def _below(home: Path, path: str) -> Path:
    """Return a path below the home.

    Raises:
        ObjectStoreError: The path is outside the folders for tables and summaries.
    """
    parts = Path(path).parts
    if Path(path).is_absolute() or ".." in parts or parts[:1] not in {("tables",), ("summaries",)}:
        raise ObjectStoreError(f"invalid path {path!r} in a pointer: not a table or summary")
    return home / path
