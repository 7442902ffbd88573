"""A project that is asked again and again, by a program that lives long: an agent's server, a notebook."""

from collections.abc import Callable
from typing import TypeVar

from docindex_dagster.core.errors import DamagedStoreError
from docindex_dagster.core.files import stamp
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings, load_settings
from docindex_dagster.stores.reader import LatestReader, Reader

_Answer = TypeVar("_Answer")


class Live:
    """Each question meets the settings and the published index as they are then; all of it, one generation.

    The index is opened once, and again when another generation is published. It stays where it was.
    """

    def __init__(self, settings: Settings) -> None:
        self._read = settings
        self._stamp = stamp(settings.config_file)
        self._latest = LatestReader(Layout(settings.home))
        if settings.storage.url is not None:
            from docindex_dagster.objects.replica import replicate

            replicate(settings)

    @property
    def settings(self) -> Settings:
        """Those of the file as it is now.

        Raises:
            SettingsError: as `load_settings`.
        """
        written = stamp(self._read.config_file)
        if written != self._stamp:
            found = load_settings(self._read.root).model_copy(update={"home": self._read.home})
            self._read, self._stamp = found, written
        return self._read

    def reading(self, ask: Callable[[Reader], _Answer]) -> _Answer:
        """What `ask` makes of the published index; of the next one where this one is cleared away meanwhile.

        Raises:
            StoreError: as `open_reader`, and what `ask` raises.
        """
        try:
            return ask(self._latest.reader())
        except DamagedStoreError:
            return ask(self._latest.reader(anew=True))
