"""Which cell a repository belongs to: rendezvous hashing, so that a further cell moves only what it takes.

D. G. Thaler and C. V. Ravishankar, "Using name-based mappings to increase hit rates", 1998.
"""

from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.core.keys import base_key
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings


def cell_of(key: str, cells: int) -> int:
    """The number of the cell that holds a source, from 0; the branches of a repository share it."""
    name = base_key(key)
    return max(range(cells), key=lambda cell: digest_parts(name, str(cell)))


def homes(settings: Settings) -> list[Layout]:
    """The homes on this machine of all cells."""
    return [home_of(settings, cell) for cell in range(settings.storage.cells)]


def home_of(settings: Settings, cell: int) -> Layout:
    """The home on this machine in which the stores of a cell lie."""
    return Layout(settings.home if settings.storage.cells == 1 else settings.home / "cells" / str(cell))
