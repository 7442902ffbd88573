"""Looking at the object store as a whole: whether all that is named is there."""

from collections.abc import Iterable, Iterator

from docindex_dagster.core.errors import ObjectStoreError
from docindex_dagster.objects import prepared, snapshots
from docindex_dagster.objects.bucket import Bucket
from docindex_dagster.objects.contents import FOLDER, Content


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
