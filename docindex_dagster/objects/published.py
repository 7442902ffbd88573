"""What is published, for those who need no stores: sensors, and reports on how sources stand."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from docindex_dagster.core.access import writing
from docindex_dagster.core.files import replacing
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive
from docindex_dagster.core.settings import Settings
from docindex_dagster.objects import prepared, shared_stores, snapshots
from docindex_dagster.objects.shared_stores import SharedStores
from docindex_dagster.objects.snapshots import Manifest

_FOLDER = "published"
_POLL_S = 1.0


def read(settings: Settings) -> SharedStores:
    """Return the shared stores as they are published, not open for publishing.

    Raises:
        ObjectStoreError: the store does not answer.
    """
    bucket = shared_stores.bucket_of(settings)
    return SharedStores(bucket, Layout(settings.home), snapshots.read(bucket) or Manifest())


def known(settings: Settings) -> Settings:
    """The settings with a home that says what is published, and that holds no stores.

    A source that is about to be taken out counts as gone.

    Raises:
        ObjectStoreError: the store does not answer.
    """
    stores = read(settings)
    pointers = stores.manifest.pointers
    leaving = {pointer.source for pointer in stores.pending() if pointer.is_withdrawn}
    layout = Layout(settings.home).inner(_FOLDER)
    with writing(settings), exclusive(layout.publication_lock, "who asks what is published", lambda _: None):
        for file in (layout.current, layout.next):
            generation = json.loads(pointers.get(file.name, "{}"))
            if generation:
                generation["sources"] = {key: one for key, one in generation["sources"].items() if key not in leaving}
            _write(file, generation)
        _write(layout.catalog, json.loads(pointers.get(layout.catalog.name, "[]")))
    return settings.model_copy(update={"home": layout.home})


def _write(file: Path, value: Any) -> None:
    """Let a file hold a value; no file for an empty one."""
    text = json.dumps(value)
    if not value:
        file.unlink(missing_ok=True)
    elif not file.is_file() or file.read_text(encoding="utf-8") != text:
        with replacing(file) as temporary:
            temporary.write_text(text, encoding="utf-8")


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
