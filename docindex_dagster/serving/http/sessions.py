"""The token of a server, in a file where nobody chose one, and the sessions of browsers that it opens.

Sessions are signed cookies, which end when they expire, or when a browser logs out.
"""

import hashlib
import hmac
import os
import secrets
import stat
import time
from pathlib import Path

from docindex_dagster.core.errors import SettingsError
from docindex_dagster.core.files import append, replacing, stamp
from docindex_dagster.core.locks import exclusive

LONGEST_S = 30 * 24 * 60 * 60
"""How long a session lasts."""

_PRIVATE = 0o600
_OTHERS = 0o077


class Sessions:
    """The sessions that a token opens. A new token ends all of them."""

    def __init__(self, token: str | None, ended: Path | None = None) -> None:
        """Sign with a token.

        Args:
            token: of the server.
            ended: the file that names the sessions that have ended, for this server and others of the project; None
                to keep them in memory.
        """
        self._key = (token or "").encode()
        self._path = ended
        self._stamp: tuple[int, ...] | None = None
        self._ended: set[str] = set()
        self._codes: set[str] = set()

    @property
    def fingerprint(self) -> str:
        """Something that differs between tokens and says nothing of them."""
        return self._signature("fingerprint")[:8]

    def new_code(self) -> str:
        """Return a code that opens one session."""
        code = secrets.token_urlsafe(32)
        self._codes.add(code)
        return code

    def redeem(self, code: str) -> bool:
        """Return whether a code opens a session, which it does once."""
        is_known = code in self._codes
        self._codes.discard(code)
        return is_known

    def begin(self) -> str:
        """Return the cookie of a new session."""
        about = f"{int(time.time()) + LONGEST_S}.{secrets.token_hex(16)}"
        return f"{about}.{self._signature(about)}"

    def is_valid(self, cookie: str) -> bool:
        """Return whether a cookie is one of ours whose session goes on."""
        about, _, signature = cookie.rpartition(".")
        expires, _, name = about.partition(".")
        is_ours = hmac.compare_digest(signature.encode(), self._signature(about).encode())
        return is_ours and expires.isdecimal() and int(expires) > time.time() and not self._has_ended(name)

    def end(self, cookie: str) -> None:
        """End the session of a cookie, for whoever has a copy of it."""
        if not self.is_valid(cookie):
            return
        name = cookie.split(".")[1]
        self._ended.add(name)
        if self._path is not None:
            append(self._path, f"{name}\n".encode(), 0o600)

    def _has_ended(self, name: str) -> bool:
        if self._path is not None and (now := stamp(self._path)) != self._stamp:
            self._stamp = now
            if now is not None:
                self._ended.update(self._path.read_text(encoding="ascii").split())
        return name in self._ended

    def _signature(self, text: str) -> str:
        return hmac.new(self._key, b"docindex session " + text.encode(), hashlib.sha256).hexdigest()


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
