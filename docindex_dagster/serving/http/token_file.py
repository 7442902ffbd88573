"""The file that holds the token of a server for which nobody chose one."""

import os
import secrets
import stat
from pathlib import Path

from docindex_dagster.core.errors import SettingsError
from docindex_dagster.core.files import replacing
from docindex_dagster.core.locks import exclusive

_PRIVATE = 0o600
_OTHERS = 0o077


def stored_token(path: Path, lock: Path) -> str:
    """Return the token in a file of this user, and make the file if there is none.

    A file that other users could read is replaced, with a new token.

    Args:
        path: of the file.
        lock: held meanwhile, since several servers of a project may start at once.

    Raises:
        SettingsError: the file cannot be read or written.
    """
    try:
        with exclusive(lock, "docindex serve", lambda _: None):
            if (token := _read(path)) is not None:
                return token
            path.unlink(missing_ok=True)  # a replaced file would keep its permissions
            token = secrets.token_urlsafe(32)
            with replacing(path, _PRIVATE) as temporary:
                temporary.write_text(f"{token}\n", encoding="ascii")
            return token
    except OSError as error:
        raise SettingsError(
            f"cannot store a token in {path}: {error.strerror or error}; "
            "set DOCINDEX_SERVE__TOKEN to a long random text instead"
        ) from error


def _read(path: Path) -> str | None:
    """The token; None unless this user alone can read and change the file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, encoding="ascii", errors="replace") as file:
        about = os.fstat(descriptor)
        is_private = stat.S_ISREG(about.st_mode) and about.st_uid == os.geteuid() and not about.st_mode & _OTHERS
        return (file.read(1000).strip() or None) if is_private else None
