"""A project that is asked again and again, by a program that lives long: an agent's server, a notebook."""

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

_MAX_AGE_S = 10.0  # of settings whose file is the same
_Answer = TypeVar("_Answer")


class LateLive:
    """Project that may not exist yet: every access raises what `open_live` raises, until it succeeds."""

    def __init__(self, open_live: "Callable[[], Live]") -> None:
        self._open = open_live
        self._found: Live | None = None

    def __getattr__(self, name: str) -> Any:
        """An attribute of the project.

        Raises:
            DocindexError: there is none.
        """
        self._found = self._found or self._open()
        return getattr(self._found, name)


class Live:
    """Each question meets the settings and the published index as they are then; all of it, one generation.

    The index is opened once, and again when another generation is published. It stays where it was.
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
        """Those of the file as it is now.

        Raises:
            SettingsError: as `load_settings`.
        """
        written, now = stamp(self._read.config_file), time.monotonic()
        if written != self._stamp or now - self._read_at >= _MAX_AGE_S:  # a link may lead a source elsewhere by now
            found = load_settings(self._read.root).model_copy(update={"home": self._read.home})
            self._read, self._stamp, self._read_at = found, written, now
        return self._read

    def reading(self, ask: Callable[[Reader], _Answer]) -> _Answer:
        """What `ask` makes of the stores here; of the next ones where these are cleared away meanwhile.

        Raises:
            StoreError: as `open_reader`; and what `ask` raises.
        """
        try:
            return ask(self._latest.reader())
        except DamagedStoreError:
            return ask(self._latest.reader(anew=True))


class LatestReader:
    """Gives the reader of what is published now, and opens it once; for programs that answer many questions."""

    def __init__(self, layout: Layout) -> None:
        """What is published in a home."""
        self._layout = layout
        self._lock = Lock()
        self._stamp: tuple[int, ...] | None = None
        self._reader: Reader | None = None

    def reader(self, *, anew: bool = False) -> Reader:
        """The reader; with `anew`, another one though the same is published, since a file that it had is gone.

        Raises:
            StoreError: as `open_reader`.
        """
        with self._lock:
            published = stamp(self._layout.current)
            if self._reader is None or anew or published != self._stamp:
                self._reader = replace(open_reader(self._layout), known=_read_by(self._reader))
                self._stamp = published
            return self._reader


def _read_by(reader: Reader | None) -> Mapping[str, tuple[Part, ...]]:
    """The parts that a reader has read; it may be one whose files are gone."""
    if reader is None:
        return {}
    parts: Parts | None = vars(reader).get("parts")
    return parts.by_file if parts is not None else reader.known
