"""A project that is asked again and again, by a program that lives long: an agent's server, a notebook."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from docindex_dagster.core.errors import CellError, DamagedStoreError, QueryError, SourceError, StoreError
from docindex_dagster.core.files import stamp
from docindex_dagster.core.settings import Settings, load_settings
from docindex_dagster.objects.cells import cell_of, homes
from docindex_dagster.search.cells import Cells, Index
from docindex_dagster.sources import registry
from docindex_dagster.stores.latest import LatestReader
from docindex_dagster.stores.reader import Reader

if TYPE_CHECKING:
    from docindex_dagster.search.remote_cells import LatestCells

_MAX_AGE_S = 10.0  # of settings whose file is the same
_ATTEMPTS = 5  # while cells publish
_Answer = TypeVar("_Answer")
_Index = TypeVar("_Index", Reader, Cells)


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
        self._latest = LatestReader(*homes(settings))
        self._cells = _cells_of(settings) if settings.serve.cells else None
        if settings.storage.url is not None and self._cells is None:
            from docindex_dagster.objects.replica import replicate

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
            StoreError: as `open_reader`, or there are cells on other machines; and what `ask` raises.
        """
        if self._cells is not None:
            raise StoreError(f"only the servers of the cells answer this: {', '.join(self._read.serve.cells)}")
        try:
            return _asked(ask, self._latest.reader())
        except DamagedStoreError:
            return _asked(ask, self._latest.reader(anew=True))

    def asking(self, ask: Callable[[Index], _Answer]) -> _Answer:
        """What `ask` makes of the published index, or of all its cells that answer.

        Raises:
            StoreError: as `reading`, or no cell answers.
        """
        if self._cells is None:
            return self.reading(ask)
        cells = self._cells.cells()
        for _ in range(_ATTEMPTS + len(cells.cells)):
            try:
                return _asked(ask, cells)
            except CellError as error:
                cells = self._cells.after(cells, error)
            except DamagedStoreError:  # it has published another generation
                cells = self._cells.after(cells)
        return _asked(ask, cells)


def _asked(ask: Callable[[_Index], _Answer], index: _Index) -> _Answer:
    """An answer; an error over what an index lacks says which cells are missing, since those may have it."""
    try:
        return ask(index)
    except (SourceError, QueryError) as error:
        if not index.missing:
            raise
        raise type(error)(f"{error}; {index.missing}") from error


def _cells_of(settings: Settings) -> "LatestCells":
    """The cells on other machines, and the declared sources of each, in the order of their numbers."""
    from docindex_dagster.search.remote_cells import LatestCells

    urls, token = settings.serve.cells, settings.serve.token
    held: dict[str, set[str]] = {url: set() for url in urls}
    for key in registry.sources(settings):
        held[urls[cell_of(key, len(urls))]].add(key)
    sources = {url: frozenset(keys) for url, keys in held.items()}
    return LatestCells(urls, token.get_secret_value() if token else None, sources)
