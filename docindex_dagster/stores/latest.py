"""The reader of what is published now, for programs that answer many questions."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from threading import Lock

from docindex_dagster.core.errors import StoreError
from docindex_dagster.core.files import stamp
from docindex_dagster.core.git_folders import is_tracked
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.trust import trust_in
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
            StoreError: as `open_reader`, or git tracks files in the home by now, as after a pull.
        """
        with self._lock:
            published = stamp(self._layout.current)
            if self._reader is None or anew or published != self._stamp:
                _check_untracked(self._layout.home)
                self._reader = replace(open_reader(self._layout), known=_read_by(self._reader))
                self._stamp = published
            return self._reader


def _check_untracked(home: Path) -> None:
    if is_tracked(home) and not trust_in(home).is_full:
        raise StoreError(f"git tracks files in {home}, so anybody who pushes could change it: take them out of git")


def _read_by(reader: Reader | None) -> Mapping[tuple[str, str], Part]:
    """The vectors that a reader has read; it may be one whose files are gone."""
    if reader is None:
        return {}
    matrix: Matrix | None = vars(reader).get("matrix")
    return matrix.parts if matrix is not None else reader.known
