"""Telling stores that are damaged from those that are denied or locked, a disk that is full, and a wrong program."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from docindex_dagster.core.errors import AccessError, DamagedStoreError, DocindexError, first_line
from docindex_dagster.core.files import error_number

_DENIED = {errno.EACCES, errno.EPERM, errno.EROFS}
# These say something about the machine, not about what lies on its disk.
_OF_THE_MACHINE = {errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE}
_LOCKED = "LockBusy"  # Tantivy's word


@contextmanager
def reading_stores() -> Iterator[None]:
    """Turn what LanceDB and Tantivy raise for files that are damaged, missing or denied into errors that say so.

    Raises:
        DamagedStoreError: in their stead.
        AccessError: the files may be well, but this process may not use them.
    """
    try:
        yield
    except BaseException as error:  # Tantivy panics over a truncated file, and a panic is no Exception
        reported = _as_reported(error)
        if reported is None:
            raise
        raise reported from error


def _as_reported(error: BaseException) -> DocindexError | None:
    """What is raised in place of an error; None where its own message will do, or where it is a bug."""
    if not isinstance(error, OSError | ValueError | RuntimeError) and type(error).__name__ != "PanicException":
        return None
    number = error_number(error)
    if number in _DENIED:
        return denied(error)
    if number in _OF_THE_MACHINE:
        return None
    if _LOCKED in str(error):
        return AccessError(f"another process holds a lock of the stores ({first_line(error)}); try again later")
    return damaged(first_line(error))


def damaged(problem: str) -> DamagedStoreError:
    """The error for stores with a problem that a repair mends."""
    return DamagedStoreError(f"the stores are damaged ({problem})", "run `docindex doctor --repair`")


def denied(error: BaseException) -> AccessError:
    """The error for an index whose files this user may not use."""
    return AccessError(f"files of the index are denied to this user ({first_line(error)}); ask their owner")
