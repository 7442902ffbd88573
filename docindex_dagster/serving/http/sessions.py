"""Token of a server, stored in a file unless configured, and the browser sessions that it opens.

Sessions are signed cookies. They end when they expire or when the browser logs out.
"""

import hashlib
import hmac
import os
import secrets
import stat
import time
from pathlib import Path

from docindex_dagster.core.errors import SettingsError
from docindex_dagster.core.files import append, atomic_write, stamp
from docindex_dagster.core.locks import exclusive

LONGEST_S = 30 * 24 * 60 * 60
"""Lifetime of a session, in seconds."""

_PRIVATE = 0o600
_OTHERS = 0o077


class Sessions:
    """The sessions that a token opens. A new token ends all of them."""

    def __init__(self, token: str | None, ended: Path | None = None) -> None:
        """Create sessions signed with a token.

        Args:
            token: the server's token.
            ended: the file with the sessions that have ended, shared by all servers of the project; None to keep them
                in memory.
        """
        self._key = (token or "").encode()
        self._path = ended
        self._stamp: tuple[int, ...] | None = None
        self._ended: set[str] = set()
        self._codes: set[str] = set()

    @property
    def fingerprint(self) -> str:
        """A text that differs between tokens and reveals nothing about them."""
        return self._signature("fingerprint")[:8]

    def new_code(self) -> str:
        """Return a code that opens one session."""
        code = secrets.token_urlsafe(32)
        self._codes.add(code)
        return code

    def redeem(self, code: str) -> bool:
        """Return whether a code opens a session. Each code works once."""
        is_known = code in self._codes
        self._codes.discard(code)
        return is_known

    def begin(self) -> str:
        """Return the cookie of a new session."""
        payload = f"{int(time.time()) + LONGEST_S}.{secrets.token_hex(16)}"
        return f"{payload}.{self._signature(payload)}"

    def is_valid(self, cookie: str) -> bool:
        """Return whether a cookie is from this server and its session has not ended."""
        payload, _, signature = cookie.rpartition(".")
        expires, _, name = payload.partition(".")
        is_ours = hmac.compare_digest(signature.encode(), self._signature(payload).encode())
        return is_ours and expires.isdecimal() and int(expires) > time.time() and not self._has_ended(name)

    def end(self, cookie: str) -> None:
        """End the session of a cookie, including for any copies of it."""
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
    """Return the token in a file of this user. Create the file if it does not exist.

    A file that other users could read is replaced by one with a new token.

    Args:
        path: the file.
        lock: the lock to hold meanwhile, since several servers of a project may start simultaneously.

    Raises:
        SettingsError: the file cannot be read or written.
    """
    try:
        with exclusive(lock, "docindex serve", lambda _: None):
            if (token := _read(path)) is not None:
                return token
            path.unlink(missing_ok=True)  # overwriting the file would keep its permissions
            token = secrets.token_urlsafe(32)
            with atomic_write(path, _PRIVATE) as temporary:
                temporary.write_text(f"{token}\n", encoding="ascii")
            return token
    except OSError as error:
        raise SettingsError(
            f"cannot store a token in {path}: {error.strerror or error}; "
            "set DOCINDEX_SERVE__TOKEN to a long random string instead"
        ) from error


def _read(path: Path) -> str | None:
    """Return the token; None unless only this user can read and change the file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, encoding="ascii", errors="replace") as file:
        info = os.fstat(descriptor)
        is_private = stat.S_ISREG(info.st_mode) and info.st_uid == os.geteuid() and not info.st_mode & _OTHERS
        return (file.read(1000).strip() or None) if is_private else None
