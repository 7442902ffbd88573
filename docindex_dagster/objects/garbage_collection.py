"""Garbage collection of objects that neither the manifest nor a pointer references, and detection of missing objects.

Older publications and interrupted runs leave garbage behind. Objects are uploaded before they are first referenced, so
recent ones are kept. The clock of the object store determines the age of an object.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from docindex_dagster.core.errors import ConflictError, ObjectStoreError
from docindex_dagster.objects import prepared, snapshots
from docindex_dagster.objects.bucket import Bucket, ObjectInfo, in_parallel
from docindex_dagster.objects.contents import FOLDER, MAX_UNREFERENCED_AGE, Content

_LAST = "garbage/last"  # time of the last collection
_CLOCKS = "garbage/clocks/"
_BETWEEN = timedelta(days=1)


def collect_if_due(bucket: Bucket) -> int:
    """Run `collect` at most once a day across all machines; return how many objects were deleted.

    Raises:
        ObjectStoreError: The store does not respond.
    """
    last, now = bucket.get(_LAST), datetime.now(UTC)
    if last is not None and abs(now - _date(last.data)) < _BETWEEN:  # also due if another clock was far ahead
        return 0
    try:
        bucket.replace(_LAST, f"{now.isoformat()} {uuid4().hex}".encode(), last.tag if last else None)
    except ConflictError:  # another publisher is collecting
        return 0
    return len(collect(bucket))


def _date(noted: bytes) -> datetime:
    try:
        return datetime.fromisoformat(noted.decode().split()[0])
    except (ValueError, IndexError):
        return datetime.min.replace(tzinfo=UTC)


def collect(bucket: Bucket) -> list[ObjectInfo]:
    """Delete the unreferenced objects that are older than `contents.LONGEST`, and return them.

    Raises:
        ObjectStoreError: The store does not respond, or the manifest or a pointer is damaged. Nothing is deleted then.
    """
    gone = unreferenced_objects(bucket)
    bucket.delete(found.name for found in gone)
    return gone


def unreferenced_objects(bucket: Bucket) -> list[ObjectInfo]:
    """Return the objects that `collect` deletes.

    Raises:
        ObjectStoreError: The store does not respond, or the manifest or a pointer is damaged.
    """
    limit = _now(bucket) - MAX_UNREFERENCED_AGE
    # Listed before references are read: an object that is referenced later is recent.
    old = [found for found in bucket.list(FOLDER) if found.written < limit]
    referenced = _referenced(bucket) if old else set()
    return [found for found in old if found.name not in referenced]


def _referenced(bucket: Bucket) -> set[str]:
    manifest = snapshots.read(bucket)
    pointers = in_parallel(lambda name: prepared.read(bucket, name), prepared.pointer_tags(bucket))
    both = [found for found in (manifest, *pointers) if found is not None]
    return {content.name for found in both for content in found.files.values()}


def _now(bucket: Bucket) -> datetime:
    """Return the current time according to the store's clock."""
    name = f"{_CLOCKS}{uuid4().hex}"
    bucket.replace(name, name.encode(), None)
    try:
        for found in bucket.list(_CLOCKS):
            if found.name == name:
                return found.written
        raise ObjectStoreError(f"{bucket.url} does not list {name}, which was just written; no objects were deleted")
    finally:
        bucket.delete([name])


def problems(bucket: Bucket) -> Iterator[tuple[str | None, str]]:
    """Yield the problems in the object store: the affected source (None for the entire index), and a message.

    Raises:
        ObjectStoreError: The store does not respond.
    """
    sizes = {found.name: found.size for found in bucket.list(FOLDER)}
    try:
        manifest = snapshots.read(bucket)
    except ObjectStoreError as error:
        yield None, str(error)
    else:
        lost = _lost(manifest.files.values(), sizes) if manifest else []
        if lost:
            yield None, f"{len(lost)} objects of the stores are missing or truncated, such as {lost[0].name}"
    for name in prepared.pointer_tags(bucket):
        try:
            pointer = prepared.read(bucket, name)
        except ObjectStoreError as error:
            yield None, str(error)
            continue
        if pointer is not None and (lost := _lost(pointer.files.values(), sizes)):
            yield pointer.source, f"{len(lost)} of its tables are missing or truncated: index it in full"


def _lost(referenced: Iterable[Content], sizes: dict[str, int]) -> list[Content]:
    return [content for content in referenced if sizes.get(content.name) != content.size]
