"""A project that answers many searches in a long-lived process, such as an agent's server or a notebook."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from threading import Lock
from typing import Any, TypeVar

from docindex_dagster.core.errors import DamagedStoreError
from docindex_dagster.core.files import stamp
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings, load_settings
from docindex_dagster.stores.parts import Part, Parts
from docindex_dagster.stores.reader import Reader, open_reader

_MAX_AGE_S = 10.0  # of cached settings if their file is unchanged
_Answer = TypeVar("_Answer")


class LazyLive:
    """Project that may not exist yet: every access raises what `open_live` raises, until it succeeds."""

    def __init__(self, open_live: "Callable[[], Live]") -> None:
        self._open = open_live
        self._found: Live | None = None

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the project.

        Raises:
            DocindexError: the project does not exist.
        """
        self._found = self._found or self._open()
        return getattr(self._found, name)


class Live:
    """A project whose every search uses the current settings and a single generation of the published index.

    The index is opened once, and again when another generation is published. The home folder stays fixed.
    """

    def __init__(self, settings: Settings) -> None:
        self._read = settings
        self._stamp, self._read_at = stamp(settings.config_file), time.monotonic()
        self._latest = LatestReader(Layout(settings.home))
        if settings.storage.url is not None:
            from docindex_dagster.objects.shared_stores import replicate

            replicate(settings)

    @property
    def settings(self) -> Settings:
        """The current settings of the file.

        Raises:
            SettingsError: see `load_settings`.
        """
        current, now = stamp(self._read.config_file), time.monotonic()
        if current != self._stamp or now - self._read_at >= _MAX_AGE_S:  # symlinks of sources may have changed
            loaded = load_settings(self._read.root).model_copy(update={"home": self._read.home})
            self._read, self._stamp, self._read_at = loaded, current, now
        return self._read

    def reading(self, ask: Callable[[Reader], _Answer]) -> _Answer:
        """Call `ask` with the stores; retry with the next stores if these are removed during the call.

        Raises:
            StoreError: see `open_reader`; also errors of `ask`.
        """
        try:
            return ask(self._latest.reader())
        except DamagedStoreError:
            return ask(self._latest.reader(reopen=True))


class LatestReader:
    """A cache for the reader of the published index, for programs that answer many searches."""

    def __init__(self, layout: Layout) -> None:
        """Read the index published in a home."""
        self._layout = layout
        self._lock = Lock()
        self._stamp: tuple[int, ...] | None = None
        self._reader: Reader | None = None

    def reader(self, *, reopen: bool = False) -> Reader:
        """Return the reader; `reopen` forces a new one because a file of the previous reader is gone.

        Raises:
            StoreError: see `open_reader`.
        """
        with self._lock:
            published = stamp(self._layout.current)
            if self._reader is None or reopen or published != self._stamp:
                self._reader = replace(open_reader(self._layout), known=_parts_read(self._reader))
                self._stamp = published
            return self._reader


def _parts_read(reader: Reader | None) -> Mapping[str, tuple[Part, ...]]:
    """Return the parts that a reader has read; the files of the reader may be gone."""
    if reader is None:
        return {}
    parts: Parts | None = vars(reader).get("parts")
    return parts.by_file if parts is not None else reader.known
