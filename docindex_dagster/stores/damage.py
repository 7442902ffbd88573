"""Classification of store errors: damaged files, denied access, locks, a full disk, or a bug."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from docindex_dagster.core.errors import AccessError, DamagedStoreError, DocindexError, first_line
from docindex_dagster.core.files import error_number

_DENIED = {errno.EACCES, errno.EPERM, errno.EROFS}
# Errors of the machine rather than of the files.
_MACHINE_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE}
_LOCKED = "LockBusy"  # Tantivy's word


@contextmanager
def reading_stores() -> Iterator[None]:
    """Translate errors that LanceDB and Tantivy raise for damaged, missing or denied files.

    Raises:
        DamagedStoreError: files are damaged or missing.
        AccessError: this process may not access the files, which may be intact.
    """
    try:
        yield
    except BaseException as error:  # Tantivy panics on a truncated file, and a panic is not an Exception
        translated = _translate(error)
        if translated is None:
            raise
        raise translated from error


def _translate(error: BaseException) -> DocindexError | None:
    """Return the error to raise instead; None if the message is good enough, or the error is a bug."""
    if not isinstance(error, OSError | ValueError | RuntimeError) and type(error).__name__ != "PanicException":
        return None
    number = error_number(error)
    if number in _DENIED:
        return denied(error)
    if number in _MACHINE_ERRORS:
        return None
    if _LOCKED in str(error):
        return AccessError(f"another process holds a lock on the stores ({first_line(error)}). Try again later")
    return damaged(first_line(error))


def damaged(problem: str) -> DamagedStoreError:
    """Return the error for damaged stores that a repair fixes."""
    return DamagedStoreError(f"the stores are damaged ({problem})", "run `docindex doctor --repair`")


def denied(error: BaseException) -> AccessError:
    """Return the error for index files that this user may not access."""
    return AccessError(f"no permission to access files of the index ({first_line(error)}). Ask their owner for access")
