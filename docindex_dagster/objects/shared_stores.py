"""The stores that machines share, in a home of this machine: open for publishing, or a replica of what is published.

Sensors and status reports, which need no stores, call `read_published` and `known_published`. Search servers, and
commands, answer from a replica, whose readers see a new `CURRENT` as they do where it was published.
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

from docindex_dagster.core.access import writing
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
_INTERVAL_S = 2.0  # a look is one request, which is answered without a body where nothing is new
_LONGEST_S = 60.0  # between looks that fail

_log = logging.getLogger(__name__)
_lock = Lock()
_ends: dict[tuple[Path, str | None], Event] = {}


@dataclass(slots=True)
class SharedStores:
    """The shared stores in a home of this machine, as published until `push` publishes what became of them.

    Attributes:
        bucket: where all find them.
        layout: the home.
        manifest: what was published last.
        lock: between machines, under which this is done; None where there is one machine.
    """

    bucket: Bucket
    layout: Layout
    manifest: Manifest
    lock: Held | None = None
    _published: dict[str, str] = field(init=False)  # as the manifest has them, with what the next `push` says
    _refused: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        """Begin with what is published."""
        self._start_from(self.manifest)

    def _start_from(self, manifest: Manifest) -> None:
        self.manifest = manifest
        self._published, self._refused = dict(manifest.published), dict(manifest.refused)

    def pending(self) -> Iterator[Prepared]:
        """The pointers that are not published, and were not refused; oldest first.

        Raises:
            ObjectStoreError: the store does not answer.
        """
        listed = sorted(self.bucket.list(prepared.FOLDER), key=lambda found: (found.written, found.name))
        for found in listed:
            if found.tag in {self._published.get(found.name), self._refused.get(found.name)}:
                continue
            pointer = prepared.read(self.bucket, found.name)
            if pointer is not None:
                yield pointer

    def note(self, pointer: Prepared, *, is_refused: bool = False) -> None:
        """Let the next `push` say that the stores hold what a pointer names, or that its tables broke a rule."""
        name = prepared.object_of(pointer.source)
        if is_refused:
            self._refused[name] = pointer.tag
        else:
            self._published[name] = pointer.tag
            self._refused.pop(name, None)

    def start_over(self) -> None:
        """Bring the published stores here again, and look at every file; what was not pushed is pending again.

        Raises:
            ObjectStoreError: the store does not answer.
            FullDiskError: there is no space for the stores.
        """
        snapshots.distrust(self.layout)
        self._start_from(snapshots.pull(self.bucket, self.layout))

    def push(self) -> None:
        """Publish what the home holds.

        Raises:
            ConflictError: another publisher was faster; nothing of this is published.
            LostLockError: the lock was lost meanwhile, so another publisher is at work; nothing of this is published.
            ObjectStoreError: the store does not answer.
        """
        if self.lock is not None:
            self.lock.check()
        noted = replace(self.manifest, published=dict(self._published), refused=dict(self._refused))
        self.manifest = snapshots.push(self.bucket, self.layout, self.manifest, noted)


@contextmanager
def opened(
    settings: Settings, locks: Locks | None, owner: str, on_wait: Callable[[str], None]
) -> Iterator[SharedStores]:
    """Hold the lock of the shared stores, with what is published in the home; who changes that calls `push`.

    Args:
        settings: they have a `storage.url`.
        locks: between machines; None where there is one alone.
        owner: who holds it, for those who wait.
        on_wait: called with the owner of the lock before a wait.

    Raises:
        ObjectStoreError: the store does not answer.
        SettingsError: as `bucket_of`.
        FullDiskError: there is no space for the stores.
    """
    bucket = bucket_of(settings)
    layout = Layout(settings.home)
    with ExitStack() as held:
        held.enter_context(writing(settings))
        lock = held.enter_context(locks.exclusive("publication", owner, on_wait)) if locks else None
        held.enter_context(exclusive(layout.publication_lock, owner, on_wait))
        manifest = snapshots.pull(bucket, layout)
        # If the block ends otherwise than by a push, readers of this home get what is published.
        snapshots.change(layout)
        yield SharedStores(bucket, layout, manifest, lock)


def bucket_of(settings: Settings) -> Bucket:
    """The object store of a deployment.

    Raises:
        SettingsError: the settings name none, or it cannot be used.
    """
    if settings.storage.url is None:
        raise SettingsError(f"{settings.config_file}: storage.url is not set")
    return open_bucket(settings.storage.url)


def read_published(settings: Settings) -> SharedStores:
    """Return the shared stores as they are published, not open for publishing.

    Raises:
        SettingsError: no object store is set, or it cannot be used.
        ObjectStoreError: the store does not answer.
    """
    bucket = bucket_of(settings)
    return SharedStores(bucket, Layout(settings.home), snapshots.read(bucket) or Manifest())


def known_published(settings: Settings) -> Settings:
    """The settings with a home that says what is published, and that holds no stores.

    A source that is about to be taken out counts as gone.

    Raises:
        SettingsError: no object store is set, or it cannot be used.
        ObjectStoreError: the store does not answer.
    """
    stores = read_published(settings)
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


def wait_until_published(settings: Settings, key: str, check: Callable[[], None]) -> bool:
    """Wait until searches find the tables that the pointer of a source names now; False where they were refused.

    Args:
        settings: they have a `storage.url`.
        key: of the source.
        check: called now and then; what it raises ends the wait.

    Raises:
        SettingsError: as `bucket_of`.
        ObjectStoreError: the store does not answer.
    """
    bucket, name = bucket_of(settings), prepared.object_of(key)
    while True:
        pointer = prepared.read(bucket, name)  # also what a later run prepared
        manifest = snapshots.read(bucket) or Manifest()
        if pointer is None or manifest.published.get(name) == pointer.tag:
            return True
        if manifest.refused.get(name) == pointer.tag:
            return False
        check()
        time.sleep(_POLL_S)


def _write(file: Path, value: Any) -> None:
    """Let a file hold a value; no file for an empty one."""
    if value:
        snapshots.write_if_other(file, json.dumps(value))
    else:
        file.unlink(missing_ok=True)


def follow(settings: Settings, on_problem: Callable[[str], None]) -> bool:
    """Let the home of this machine hold what is published now; whether anything came.

    Where the object store does not answer, and there is an index of an earlier look, `on_problem` is called, and that
    one stays.

    Raises:
        SettingsError: as `bucket_of`.
        ObjectStoreError: it does not answer, and there is no index here.
        FullDiskError: there is no space for it.
    """
    bucket = bucket_of(settings)
    with writing(settings) as layout:
        try:
            return _follow(bucket, layout)
        except DocindexError as error:
            if not layout.current.is_file():
                raise
            on_problem(f"{error}; answers are of the index that was here before")
            return False


def replicate(settings: Settings) -> Callable[[], None]:
    """Do as `follow` every two seconds, in a thread, one for each home; returns what ends it."""
    place = (settings.home, settings.storage.url)
    with _lock:
        if place not in _ends:
            _ends[place] = Event()
            Thread(target=_poll, args=(settings, _ends[place]), name="replica", daemon=True).start()
        return _ends[place].set


def _poll(settings: Settings, end: Event) -> None:
    wait_s, is_linked = _INTERVAL_S, False
    while not end.is_set():
        problems: list[str] = []
        try:
            if follow(settings, problems.append):
                is_linked = False
            elif not problems and not is_linked:  # there is time for what no publisher makes
                link_files.bring_up_to_date(Layout(settings.home))
                is_linked = True
        except Exception as error:  # noqa: BLE001 a server whose thread ended would answer from an old index for ever
            problems.append(f"{type(error).__name__}: {error}")
        for problem in problems:
            _log.warning("%s", problem)
        wait_s = min(2 * wait_s, _LONGEST_S) if problems else _INTERVAL_S
        end.wait(wait_s)


def _follow(bucket: Bucket, layout: Layout) -> bool:
    if snapshots.read(bucket, snapshots.followed(layout)) is None:
        return False
    with exclusive_if_free(layout.publication_lock, "a replica") as is_free:
        if is_free:  # else a publisher works here, and brings the home up to date
            snapshots.pull(bucket, layout)
        return is_free
