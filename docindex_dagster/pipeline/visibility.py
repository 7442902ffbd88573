"""Where machines share the stores: whether what was prepared of a source can be searched."""

import time
from collections.abc import Callable

from docindex_dagster.core.settings import Settings
from docindex_dagster.objects import prepared, shared_stores, snapshots
from docindex_dagster.objects.snapshots import Manifest

_POLL_S = 1.0


def wait_until_published(settings: Settings, key: str, check: Callable[[], None]) -> bool:
    """Wait until searches find the tables that the pointer of a source names now; False where they were refused.

    Args:
        settings: they have a `storage.url`.
        key: of the source.
        check: called now and then; what it raises ends the wait.

    Raises:
        ObjectStoreError: the store does not answer.
    """
    bucket, name = shared_stores.bucket_of(settings), prepared.object_of(key)
    while True:
        pointer = prepared.read(bucket, name)  # also what a later run prepared
        manifest = snapshots.read(bucket) or Manifest()
        if pointer is None or manifest.published.get(name) == pointer.tag:
            return True
        if manifest.refused.get(name) == pointer.tag:
            return False
        check()
        time.sleep(_POLL_S)
