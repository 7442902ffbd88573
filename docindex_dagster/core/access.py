"""Permissions of `DOCINDEX_HOME`, which holds the texts of all sources regardless of their own file modes."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings, check_home

_BITS = 0o777
_OTHERS, _OTHERS_AND_GROUP = 0o027, 0o077  # umasks; with the first, the group can read but not write


@contextmanager
def writable_home(settings: Settings) -> Iterator[Layout]:
    """Prepare the home, and give files created in the block its permissions.

    Its user and, with `access.group`, its group can read them. If the home has other permissions, they are changed for
    the home and everything in it.
    """
    check_home(settings)
    layout = Layout(settings.home)
    layout.prepare()
    mask = _OTHERS if settings.access.group else _OTHERS_AND_GROUP
    if layout.home.stat().st_mode & _BITS != _BITS & ~mask:
        # Some file systems have no permissions, and another user's home keeps its own.
        with suppress(PermissionError):
            _change(layout.home, mask)
    before = os.umask(mask)
    try:
        yield layout
    finally:
        os.umask(before)


def _change(home: Path, mask: int) -> None:
    """Apply a umask to everything in the home, and to the home last, which marks the change as complete."""
    for parent, _, names in os.walk(home, topdown=False):
        for path in (*(Path(parent, name) for name in names), Path(parent)):
            mode = path.lstat().st_mode
            if not stat.S_ISLNK(mode):
                path.chmod(_changed(mode, mask))


def _changed(mode: int, mask: int) -> int:
    """Return a mode that gives the group the user's permissions, limited by the mask, and keeps the setgid bit."""
    user = mode & stat.S_IRWXU
    return mode & stat.S_ISGID | (user | user >> 3) & ~mask
