"""The reader of what is published now, for programs that answer many questions."""

from collections.abc import Mapping
from dataclasses import replace
from threading import Lock

from docindex_dagster.core.files import stamp
from docindex_dagster.core.layout import Layout
from docindex_dagster.stores.matrix import Matrix, Part
from docindex_dagster.stores.reader import Reader, open_reader


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


def _read_by(reader: Reader | None) -> Mapping[tuple[str, str], Part]:
    """The vectors that a reader has read; it may be one whose files are gone."""
    if reader is None:
        return {}
    matrix: Matrix | None = vars(reader).get("matrix")
    return matrix.parts if matrix is not None else reader.known
