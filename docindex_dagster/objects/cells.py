"""Which cell a repository belongs to: rendezvous hashing, so that a further cell moves only what it takes.

D. G. Thaler and C. V. Ravishankar, "Using name-based mappings to increase hit rates", 1998.
"""

from collections.abc import Sequence

from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.core.keys import base_key
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings


def cell_of(key: str, cells: int) -> int:
    """The number of the cell that holds a source, from 0; the branches of a repository share it."""
    name = base_key(key)
    return max(range(cells), key=lambda cell: digest_parts(name, str(cell)))


def replica_cells(settings: Settings) -> Sequence[int]:
    """The numbers of the cells that searches on this machine answer from."""
    return settings.storage.replica_cells or range(settings.storage.cells)


def homes(settings: Settings) -> list[Layout]:
    """The homes on this machine of the cells that searches answer from."""
    return [home_of(settings, cell) for cell in replica_cells(settings)]


def home_of(settings: Settings, cell: int) -> Layout:
    """The home on this machine in which the stores of a cell lie."""
    layout = Layout(settings.home)
    return layout if settings.storage.cells == 1 else layout.inner("cells", str(cell))
