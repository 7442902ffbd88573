"""A home that is kept as the stores are published elsewhere: what search servers, and commands, answer from.

Nothing of a search is here: readers of the home see a new `CURRENT` as they do where it was published.
"""

import logging
from collections.abc import Callable
from pathlib import Path
from threading import Event, Lock, Thread

from docindex_dagster.core.access import writing
from docindex_dagster.core.errors import DocindexError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive_if_free
from docindex_dagster.core.settings import Settings
from docindex_dagster.objects import snapshots
from docindex_dagster.objects.bucket import Bucket
from docindex_dagster.objects.shared_stores import bucket_of
from docindex_dagster.stores import link_files

_INTERVAL_S = 2.0  # a look is one request, which is answered without a body where nothing is new
_LONGEST_S = 60.0  # between looks that fail

_log = logging.getLogger(__name__)
_lock = Lock()
_ends: dict[tuple[Path, str | None], Event] = {}


def follow(settings: Settings, on_problem: Callable[[str], None]) -> bool:
    """Let the home of this machine hold what is published now; whether anything came.

    Where the object store does not answer, and there is an index of an earlier look, `on_problem` is called, and that
    one stays.

    Raises:
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
