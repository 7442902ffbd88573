"""Stores that machines share, in a home on this machine: opened for publishing, or as a read-only replica.

Sensors and status reports need no stores, and call `read_published` and `known_published`. Search servers and commands
answer from a replica, whose readers pick up a new `CURRENT` in the same way as on the publishing machine.
"""

import json
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

from docindex_dagster.core.access import writable_home
from docindex_dagster.core.errors import DocindexError, SettingsError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import Held, Locks, exclusive, exclusive_if_free
from docindex_dagster.core.settings import Settings
from docindex_dagster.objects import prepared, snapshots
from docindex_dagster.objects.bucket import Bucket, open_bucket
from docindex_dagster.objects.prepared import Prepared
from docindex_dagster.objects.snapshots import Manifest
from docindex_dagster.stores import link_files

_FOLDER = "published"
_POLL_S = 1.0
_INTERVAL_S = 2.0  # a poll is one request, with an empty response if nothing is new
_MAX_INTERVAL_S = 60.0  # after failed polls

_log = logging.getLogger(__name__)
_lock = Lock()
_ends: dict[tuple[Path, str | None], Event] = {}


@dataclass(slots=True)
class SharedStores:
    """The shared stores in a home on this machine. `push` publishes local changes.

    Attributes:
        bucket: The object store.
        layout: The home.
        manifest: The last published manifest.
        lock: The publication lock between machines; None with a single machine.
    """

    bucket: Bucket
    layout: Layout
    manifest: Manifest
    lock: Held | None = None
    _published: dict[str, str] = field(init=False)  # the manifest's, with the changes for the next `push`
    _refused: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        """Start from the published state."""
        self._start_from(self.manifest)

    def _start_from(self, manifest: Manifest) -> None:
        self.manifest = manifest
        self._published, self._refused = dict(manifest.published), dict(manifest.refused)

    def pending(self) -> Iterator[Prepared]:
        """Yield the pointers that are neither published nor rejected, oldest first.

        Raises:
            ObjectStoreError: The store does not respond.
        """
        listed = sorted(self.bucket.list(prepared.FOLDER), key=lambda found: (found.written, found.name))
        for found in listed:
            if found.tag in {self._published.get(found.name), self._refused.get(found.name)}:
                continue
            pointer = prepared.read(self.bucket, found.name)
            if pointer is not None:
                yield pointer

    def note(self, pointer: Prepared, *, is_refused: bool = False) -> None:
        """Record for the next `push` that the stores contain a pointer's tables, or that they were rejected."""
        name = prepared.pointer_name(pointer.source)
        if is_refused:
            self._refused[name] = pointer.tag
        else:
            self._published[name] = pointer.tag
            self._refused.pop(name, None)

    def start_over(self) -> None:
        """Pull the published stores again and verify every file. Changes that were not pushed become pending again.

        Raises:
            ObjectStoreError: The store does not respond.
            FullDiskError: The disk is full.
        """
        snapshots.force_verification(self.layout)
        self._start_from(snapshots.pull(self.bucket, self.layout))

    def push(self) -> None:
        """Publish the stores in the home.

        Raises:
            ConflictError: Another publisher was faster; nothing was published.
            LostLockError: The lock was lost, so another publisher may be running; nothing was published.
            ObjectStoreError: The store does not respond.
        """
        if self.lock is not None:
            self.lock.check()
        updated = replace(self.manifest, published=dict(self._published), refused=dict(self._refused))
        self.manifest = snapshots.push(self.bucket, self.layout, self.manifest, updated)


@contextmanager
def open_for_publishing(
    settings: Settings, locks: Locks | None, owner: str, on_wait: Callable[[str], None]
) -> Iterator[SharedStores]:
    """Hold the publication lock, and pull the published stores to the home. The caller pushes its changes.

    Args:
        settings: Settings with a `storage.url`.
        locks: The locks between machines; None with a single machine.
        owner: The owner text that waiting processes see.
        on_wait: Called with the current owner of the lock before waiting.

    Raises:
        ObjectStoreError: The store does not respond.
        SettingsError: `storage.url` is not set, or the object store is unusable.
        FullDiskError: The disk is full.
    """
    bucket = configured_bucket(settings)
    layout = Layout(settings.home)
    with ExitStack() as held:
        held.enter_context(writable_home(settings))
        lock = held.enter_context(locks.exclusive("publication", owner, on_wait)) if locks else None
        held.enter_context(exclusive(layout.publication_lock, owner, on_wait))
        manifest = snapshots.pull(bucket, layout)
        # Unless the block pushes, the next pull restores the published state for readers of this home.
        snapshots.mark_changing(layout)
        yield SharedStores(bucket, layout, manifest, lock)


def configured_bucket(settings: Settings) -> Bucket:
    """Return the object store of a deployment.

    Raises:
        SettingsError: `storage.url` is not set, or the object store is unusable.
    """
    if settings.storage.url is None:
        raise SettingsError(f"{settings.config_file}: storage.url is not set")
    return open_bucket(settings.storage.url)


def read_published(settings: Settings) -> SharedStores:
    """Return the shared stores as published, read-only.

    Raises:
        SettingsError: `storage.url` is not set, or the object store is unusable.
        ObjectStoreError: The store does not respond.
    """
    bucket = configured_bucket(settings)
    return SharedStores(bucket, Layout(settings.home), snapshots.read(bucket) or Manifest())


def settings_of_published(settings: Settings) -> Settings:
    """Return settings with a home that contains the published catalog and generations, but no stores.

    Sources that are about to be removed are left out.

    Raises:
        SettingsError: `storage.url` is not set, or the object store is unusable.
        ObjectStoreError: The store does not respond.
    """
    stores = read_published(settings)
    pointers = stores.manifest.pointers
    withdrawn = {pointer.source for pointer in stores.pending() if pointer.is_withdrawn}
    layout = Layout(settings.home).inner(_FOLDER)
    with writable_home(settings), exclusive(layout.publication_lock, "a status query", lambda _: None):
        for file in (layout.current, layout.next):
            generation = json.loads(pointers.get(file.name, "{}"))
            if generation:
                sources = {key: source for key, source in generation["sources"].items() if key not in withdrawn}
                generation["sources"] = sources
            _write(file, generation)
        _write(layout.catalog, json.loads(pointers.get(layout.catalog.name, "[]")))
    return settings.model_copy(update={"home": layout.home})


def wait_until_published(settings: Settings, key: str, check: Callable[[], None]) -> bool:
    """Wait until the tables in a source's current pointer are searchable; return False if they were rejected.

    Args:
        settings: Settings with a `storage.url`.
        key: The key of the source.
        check: Called regularly; an error that it raises ends the wait.

    Raises:
        SettingsError: `storage.url` is not set, or the object store is unusable.
        ObjectStoreError: The store does not respond.
    """
    bucket, name = configured_bucket(settings), prepared.pointer_name(key)
    while True:
        pointer = prepared.read(bucket, name)  # a later run may have replaced it
        manifest = snapshots.read(bucket) or Manifest()
        if pointer is None or manifest.published.get(name) == pointer.tag:
            return True
        if manifest.refused.get(name) == pointer.tag:
            return False
        check()
        time.sleep(_POLL_S)


def _write(file: Path, value: Any) -> None:
    """Write a value to a file; delete the file if the value is empty."""
    if value:
        snapshots.write_if_changed(file, json.dumps(value))
    else:
        file.unlink(missing_ok=True)


def follow(settings: Settings, on_problem: Callable[[str], None]) -> bool:
    """Update the home on this machine to the published state; return whether anything changed.

    If the object store does not respond but the home has an earlier state, call `on_problem` and keep that state.

    Raises:
        SettingsError: `storage.url` is not set, or the object store is unusable.
        ObjectStoreError: The store does not respond, and the home has no earlier state.
        FullDiskError: The disk is full.
    """
    bucket = configured_bucket(settings)
    with writable_home(settings) as layout:
        try:
            return _follow(bucket, layout)
        except DocindexError as error:
            if not layout.current.is_file():
                raise
            on_problem(f"{error}; searches use the last downloaded index")
            return False


def replicate(settings: Settings) -> Callable[[], None]:
    """Call `follow` every two seconds in a background thread, one per home; return a function that stops it."""
    replica = (settings.home, settings.storage.url)
    with _lock:
        if replica not in _ends:
            _ends[replica] = Event()
            Thread(target=_poll, args=(settings, _ends[replica]), name="replica", daemon=True).start()
        return _ends[replica].set


def _poll(settings: Settings, end: Event) -> None:
    wait_s, is_linked = _INTERVAL_S, False
    while not end.is_set():
        problems: list[str] = []
        try:
            if follow(settings, problems.append):
                is_linked = False
            elif not problems and not is_linked:  # idle: build the link files, which publishers do not build
                link_files.bring_up_to_date(Layout(settings.home))
                is_linked = True
        except Exception as error:  # noqa: BLE001 if the thread died, the server would use a stale index forever
            problems.append(f"{type(error).__name__}: {error}")
        for problem in problems:
            _log.warning("%s", problem)
        wait_s = min(2 * wait_s, _MAX_INTERVAL_S) if problems else _INTERVAL_S
        end.wait(wait_s)


def _follow(bucket: Bucket, layout: Layout) -> bool:
    if snapshots.read(bucket, snapshots.followed_tag(layout)) is None:
        return False
    with exclusive_if_free(layout.publication_lock, "a replica") as is_free:
        if is_free:  # otherwise a publisher is using this home, and updates it
            snapshots.pull(bucket, layout)
        return is_free
