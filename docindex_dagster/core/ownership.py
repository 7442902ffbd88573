"""Ownership of projects, homes and caches: whoever can write them decides what docindex does for its user.

git's `safe.directory` is the model: a folder of another user is refused until this user trusts it (CVE-2022-24765).
"""

import os
import pwd
import stat
from pathlib import Path

from docindex_dagster.core.errors import OwnershipError
from docindex_dagster.core.printable import command

_SUDO_UID = "SUDO_UID"
_UNMAPPED = 65_534  # the owner of what belongs to users outside of a container's user namespace, root among them


def check_owner(path: Path, trusted_owner: int | None = None) -> None:
    """Check that nobody but this user, or root, decides what lies at a path. A path without a file is fine.

    Args:
        path: A file or folder.
        trusted_owner: The user id of an owner whom this user trusts. That of the path's owner lifts every check.

    Raises:
        OwnershipError: The path belongs to another user, or every user may write it or a folder above it.
    """
    try:
        found = path.stat()
    except OSError:  # whoever opens it reports why that fails
        return
    if found.st_uid == trusted_owner:
        return
    own = _own_ids()
    if found.st_uid not in own:
        raise OwnershipError(
            f"{path} belongs to {_name_of(found.st_uid)}; if you trust that user, run {_trusting(path)}"
        )
    real = path.resolve()
    for place in (real, *real.parents):
        status = place.stat()
        mode = status.st_mode
        if status.st_uid not in {*own, trusted_owner, _UNMAPPED}:
            raise OwnershipError(
                f"{place} belongs to {_name_of(status.st_uid)}, who could replace {path}; if you trust that user, run "
                f"{_trusting(path)}"
            )
        # In a folder with the sticky bit, such as /tmp, users cannot replace what belongs to others.
        if mode & stat.S_IWOTH and (place == real or not mode & stat.S_ISVTX):
            raise OwnershipError(
                f"every user may write {place} and so replace {path}; run {command('chmod', 'o-w', place)}, or "
                f"{_trusting(path)} if you trust all users of this machine"
            )


def _trusting(path: Path) -> str:
    """The command that trusts the owner of a path."""
    return command("docindex", "trust", path if path.is_dir() else path.parent)


def _own_ids() -> set[int]:
    """The user ids whose files are as good as this user's own: root can do anything, and sudo keeps its caller's."""
    sudo = os.environ.get(_SUDO_UID, "") if os.geteuid() == 0 else ""
    return {os.geteuid(), 0, *([int(sudo)] if sudo.isdecimal() else [])}


def _name_of(uid: int) -> str:
    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user {uid}"
