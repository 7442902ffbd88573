"""What there is of a domain, seen by the names and sizes of its files alone: a look costs less than a millisecond."""

from docindex_dagster.core.files import stamp
from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.core.layout import Layout
from docindex_dagster.memory.erase import is_unfinished
from docindex_dagster.memory.segments import Segments


def state_of(home: Layout) -> str:
    """A hash that is another one once something was written, folded or erased in the domain whose home this is.

    Raises:
        LogError: the folder of the log is a symbolic link.
    """
    sizes = sorted(Segments(home).sizes().items())
    return digest_parts(repr(sizes), repr(stamp(home.current)), str(is_unfinished(home)))
