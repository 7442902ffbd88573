"""Who may read what lies below `DOCINDEX_HOME`: the texts of all sources, whatever the modes of their own files."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings, check_home

_BITS = 0o777
_OTHERS, _OTHERS_AND_GROUP = 0o027, 0o077  # masks of what is taken from a mode; a group reads, and writes nothing


@contextmanager
def writing(settings: Settings) -> Iterator[Layout]:
    """Prepare the home, and let what this process makes in the block be read by those alone who may read the home.

    They are its user and, with `access.group`, its group. A home that says otherwise is changed with all that is in it.
    """
    check_home(settings)
    layout = Layout(settings.home)
    layout.prepare()
    mask = _OTHERS if settings.access.group else _OTHERS_AND_GROUP
    if layout.home.stat().st_mode & _BITS != _BITS & ~mask:
        # Some file systems know no permissions; and another user's home stays what it is.
        with suppress(PermissionError):
            _change(layout.home, mask)
    before = os.umask(mask)
    try:
        yield layout
    finally:
        os.umask(before)


def _change(home: Path, mask: int) -> None:
    """Give all below the home the permissions of a mask, the home last: by it is seen that all is done."""
    for parent, _, names in os.walk(home, topdown=False):
        for path in (*(Path(parent, name) for name in names), Path(parent)):
            mode = path.lstat().st_mode
            if not stat.S_ISLNK(mode):
                path.chmod(_changed(mode, mask))


def _changed(mode: int, mask: int) -> int:
    """A mode whose group may do what its user may, as far as the mask lets it; new files stay its folder's group's."""
    user = mode & stat.S_IRWXU
    return mode & stat.S_ISGID | (user | user >> 3) & ~mask
