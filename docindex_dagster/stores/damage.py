"""Telling stores that are damaged from a disk that is full and from a program that is wrong."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from docindex_dagster.errors import DamagedStoreError, first_line

# These say something about the machine, not about what lies on its disk.
_NOT_DAMAGE = {errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.EROFS}


@contextmanager
def reading_stores() -> Iterator[None]:
    """Turn what LanceDB and Tantivy raise for damaged or missing files into one error.

    Raises:
        DamagedStoreError: in their stead.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _NOT_DAMAGE:
            raise
        raise damaged(first_line(error)) from error
    except (ValueError, RuntimeError) as error:
        raise damaged(first_line(error)) from error
    except BaseException as error:
        # Tantivy panics over a truncated file, and a panic is no Exception.
        if type(error).__name__ == "PanicException":
            raise damaged(first_line(error)) from error
        raise


def damaged(problem: str) -> DamagedStoreError:
    """The error for stores with a problem that a repair mends."""
    return DamagedStoreError(f"the stores are damaged ({problem})", "run `docindex doctor --repair`")
