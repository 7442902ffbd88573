"""Missing objects, and garbage: objects that neither the manifest nor a pointer names.

Older publications and runs that were stopped leave garbage behind. An object is uploaded some time before it is first
named, so recent objects stay. The clock of the object store decides how old an object is.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from docindex_dagster.core.errors import ConflictError, ObjectStoreError
from docindex_dagster.objects import prepared, snapshots
from docindex_dagster.objects.bucket import Bucket, Listed, in_parallel
from docindex_dagster.objects.contents import FOLDER, LONGEST, Content

_LAST = "garbage/last"  # when objects were removed last
_CLOCKS = "garbage/clocks/"
_BETWEEN = timedelta(days=1)


def collect_if_due(bucket: Bucket) -> int:
    """Do as `collect` once a day, whoever asks; returns how many objects were removed.

    Raises:
        ObjectStoreError: the store does not answer.
    """
    last, now = bucket.get(_LAST), datetime.now(UTC)
    if last is not None and abs(now - _date(last.data)) < _BETWEEN:  # it is due, too, where a clock was far ahead
        return 0
    try:
        bucket.replace(_LAST, f"{now.isoformat()} {uuid4().hex}".encode(), last.tag if last else None)
    except ConflictError:  # another publisher does it
        return 0
    return len(collect(bucket))


def _date(noted: bytes) -> datetime:
    try:
        return datetime.fromisoformat(noted.decode().split()[0])
    except (ValueError, IndexError):
        return datetime.min.replace(tzinfo=UTC)


def collect(bucket: Bucket) -> list[Listed]:
    """Remove what nothing names and is older than `contents.LONGEST`; returns it.

    Raises:
        ObjectStoreError: the store does not answer, or what it holds cannot be read: then nothing is removed.
    """
    gone = unnamed(bucket)
    bucket.delete(found.name for found in gone)
    return gone


def unnamed(bucket: Bucket) -> list[Listed]:
    """What `collect` removes.

    Raises:
        ObjectStoreError: as `collect`.
    """
    limit = _now(bucket) - LONGEST
    old = [
        found for found in bucket.list(FOLDER) if found.written < limit
    ]  # listed first: what is named later is young
    named = _named(bucket) if old else set()
    return [found for found in old if found.name not in named]


def _named(bucket: Bucket) -> set[str]:
    manifest = snapshots.read(bucket)
    pointers = in_parallel(lambda name: prepared.read(bucket, name), prepared.listing(bucket))
    both = [found for found in (manifest, *pointers) if found is not None]
    return {content.name for found in both for content in found.files.values()}


def _now(bucket: Bucket) -> datetime:
    """The time by the clock of the store."""
    name = f"{_CLOCKS}{uuid4().hex}"
    bucket.replace(name, name.encode(), None)
    try:
        for found in bucket.list(_CLOCKS):
            if found.name == name:
                return found.written
        raise ObjectStoreError(f"{bucket.url} does not list {name}, which was written a moment ago: nothing is removed")
    finally:
        bucket.delete([name])


def problems(bucket: Bucket) -> Iterator[tuple[str | None, str]]:
    """What is wrong in the object store: the source that is concerned (None: the index as a whole), and what.

    Raises:
        ObjectStoreError: the store does not answer.
    """
    sizes = {found.name: found.size for found in bucket.list(FOLDER)}
    try:
        manifest = snapshots.read(bucket)
    except ObjectStoreError as error:
        yield None, str(error)
    else:
        lost = _lost(manifest.files.values(), sizes) if manifest else []
        if lost:
            yield None, f"{len(lost)} objects of the stores are missing or cut, as {lost[0].name}"
    for name in prepared.listing(bucket):
        try:
            pointer = prepared.read(bucket, name)
        except ObjectStoreError as error:
            yield None, str(error)
            continue
        if pointer is not None and (lost := _lost(pointer.files.values(), sizes)):
            yield pointer.source, f"{len(lost)} of its tables are missing or cut: index it in full"


def _lost(named: Iterable[Content], sizes: dict[str, int]) -> list[Content]:
    return [content for content in named if sizes.get(content.name) != content.size]
