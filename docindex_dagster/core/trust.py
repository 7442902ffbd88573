"""Trust in projects: the privileges that their files request, and the ones that the user granted.

People clone first and read later, so a checkout may contain anything. Grants are stored in the user's configuration
folder, never in the project. The design follows direnv, git and VS Code.

Anyone who can write to a project, a home or a cache controls what docindex does for its user. So docindex refuses a
folder that another user owns until this user trusts it, like git's `safe.directory` (CVE-2022-24765).
"""

import fcntl
import json
import os
import pwd
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path, user_config_path

from docindex_dagster.core.errors import OwnershipError, SettingsError
from docindex_dagster.core.files import atomic_write, stamp
from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.core.locks import exclusive
from docindex_dagster.core.safe_text import command

VARIABLE = "DOCINDEX_TRUST"
"""Variable that trusts every project if set to 1, or the projects in the folders it lists. Nothing is stored."""

FOLDERS = "folders"
"""Folder in the cache that contains the projects that docindex itself writes."""
_EVERYTHING, _NOTHING = {"1", "true", "yes"}, {"", "0", "false", "no"}
_SECRET, _SECRET_BYTES = "secret", 32
_SUDO_UID = "SUDO_UID"
_UNMAPPED = 65_534  # owner shown for users outside a container's user namespace, including root
_GET_GENERATION, _LONG_BYTES = 0x80087601, 8  # Linux's FS_IOC_GETVERSION, and the size of its result


@dataclass(frozen=True, slots=True)
class Privilege:
    """A request in a project's files that takes effect only once the user trusts it.

    Attributes:
        name: The setting or file that makes the request, such as `embedding` or `dagster.yaml`.
        value: The requested value, as shown to the user.
        digest: A hash that changes with the request.
        folders: The folders outside the project that the request names, with symlinks resolved.
    """

    name: str
    value: str
    digest: str
    folders: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, value: str, *identity: str, folders: Iterable[str] = ()) -> "Privilege":
        """Create a privilege; `identity` distinguishes privileges with the same name and value."""
        return cls(name, value, digest_parts(name, value, *identity), tuple(folders))


@dataclass(frozen=True, slots=True)
class Trust:
    """The privileges that a user has granted to one project.

    Attributes:
        is_full: Whether everything is granted.
        granted: The digests of the granted privileges.
        owner: The user ID of a different owner of the folder, whom the user trusts.
    """

    is_full: bool = False
    granted: frozenset[str] = frozenset()
    owner: int | None = None

    def grants(self, privilege: Privilege) -> bool:
        """Return whether a privilege is granted."""
        return self.is_full or privilege.digest in self.granted


def store() -> Path:
    """Return the file that stores this user's grants; it may not exist yet."""
    return user_config_path("docindex", appauthor=False) / "trust.json"


def cache() -> Path:
    """Return this user's cache folder; it may not exist yet."""
    return user_cache_path("docindex", appauthor=False)


def trust_in(root: Path) -> Trust:
    """Return the trust that the user has granted to the project at `root`.

    Raises:
        OwnershipError: Another user controls this user's configuration or cache folder.
        SettingsError: The store is damaged.
    """
    place = Path(os.path.realpath(root))
    if _is_covered(place):
        return Trust(is_full=True)
    file, own_cache = store(), cache()
    _check_own(file.parent, file, own_cache)
    if str(place.parent) == os.path.realpath(own_cache / FOLDERS):
        return Trust(is_full=True)
    entry = _stored().get("projects", {}).get(str(place), {})
    return Trust(granted=frozenset(entry.get("granted", ())), owner=entry.get("owner"))


def check_project(root: Path) -> None:
    """Check that only this user controls a project's folder, before anything is written to it.

    Raises:
        OwnershipError: The folder belongs to an untrusted user, or is world-writable.
        SettingsError: The store is damaged.
    """
    given = trust_in(root)
    if not given.is_full:
        check_owner(root, given.owner)


def grant(root: Path, privileges: Iterable[Privilege], *, owner: int | None = None, replaces: bool = False) -> None:
    """Grant privileges to the project at `root`.

    Args:
        root: The project's folder.
        privileges: The privileges to grant.
        owner: The user ID of a different owner of the folder, whom the user trusts.
        replaces: Whether to revoke all earlier grants.

    Raises:
        OSError: The grants cannot be stored.
        SettingsError: The store is damaged.
    """
    added = {privilege.digest for privilege in privileges}
    with _changing() as stored:
        entry = stored.setdefault("projects", {}).setdefault(os.path.realpath(root), {})
        entry["granted"] = sorted(added if replaces else {*entry.get("granted", ()), *added})
        if owner is not None:
            entry["owner"] = owner


def retain(root: Path, privileges: Iterable[Privilege]) -> None:
    """Take back what is granted to the project at `root`, except for some privileges.

    Raises:
        OSError: This cannot be stored.
        SettingsError: The store is damaged.
    """
    place = os.path.realpath(root)
    if not _stored().get("projects", {}).get(place, {}).get("granted"):  # the store may be read-only
        return
    kept = {privilege.digest for privilege in privileges}
    with _changing() as stored:
        entry = stored.get("projects", {}).get(place, {"granted": []})
        entry["granted"] = [digest for digest in entry["granted"] if digest in kept]


def revoke(root: Path) -> bool:
    """Revoke everything granted to the project at `root`; return False if nothing was.

    Raises:
        OSError: The change cannot be stored.
        SettingsError: The store is damaged.
    """
    with _changing() as stored:
        return stored.get("projects", {}).pop(os.path.realpath(root), None) is not None


def hidden_name(root: Path, *, make: bool) -> str | None:
    """Return the name of the folder in `.docindex` that holds this user's index of the project at `root`.

    The name is derived from the user's secret and the identity of the project's folder. So nobody who adds files to
    the project, for example through a pull, can predict it. In a copy of the project, docindex does not find an index
    that was copied along.

    Args:
        root: The project's folder.
        make: Whether to create the secret if it does not exist.

    Returns:
        The name; None without a secret.

    Raises:
        SettingsError: The secret cannot be stored, or the store is damaged.
    """
    secret = _stored().get(_SECRET) or (_make_secret() if make else None)
    if secret is None:
        return None
    place = Path(os.path.realpath(root))
    try:
        number = place.stat().st_ino  # not the device number, which may change after a reboot
    except OSError:  # the project does not exist yet
        return digest_parts(secret, str(place))
    return digest_parts(secret, str(place), str(number), _generation(place))


def _generation(folder: Path) -> str:
    """Return the inode generation of a folder, since ext4 reuses inode numbers immediately; empty if unsupported."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return fcntl.ioctl(descriptor, _GET_GENERATION, bytes(_LONG_BYTES)).hex()
    except OSError:  # the file system has no generation numbers; most of these do not reuse inodes
        return ""
    finally:
        os.close(descriptor)


def _make_secret() -> str:
    try:
        with _changing() as stored:
            return str(stored.setdefault(_SECRET, secrets.token_hex(_SECRET_BYTES)))
    except OSError as error:
        raise SettingsError(
            f"cannot write {store()}, which determines where indexes are stored: {error.strerror or error}; "
            "set DOCINDEX_HOME to a folder outside the project"
        ) from error


@lru_cache(maxsize=4)
def _check_own(*places: Path) -> None:
    """Check once per process that nobody else controls the user's own files."""
    for place in places:
        check_owner(place)


def _is_covered(place: Path) -> bool:
    """Return whether `DOCINDEX_TRUST` covers a project."""
    text = os.environ.get(VARIABLE, "")
    if text.lower() in _NOTHING | _EVERYTHING:
        return text.lower() in _EVERYTHING
    return any(place.is_relative_to(os.path.realpath(folder)) for folder in text.split(os.pathsep) if folder)


@contextmanager
def _changing() -> Iterator[dict[str, Any]]:
    """Lock the store and yield its content for editing; write it back if the block succeeds."""
    with exclusive(store().with_suffix(".lock"), f"process {os.getpid()}", on_wait=lambda _: None):
        stored = _read_store()
        yield stored
        with atomic_write(store(), 0o600) as temporary:
            temporary.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


def _stored() -> dict[str, Any]:
    """Return the content of the store, which callers must not modify; empty if the store is not accessible."""
    file = store()
    found = stamp(file)
    return {} if found is None else _stored_at(file, found)


@lru_cache(maxsize=2)
def _stored_at(_file: Path, _stamp: tuple[int, ...]) -> dict[str, Any]:
    """Return the content of the store; the stamp in the cache key forces a new read after each change."""
    return _read_store()


def _read_store() -> dict[str, Any]:
    try:
        return dict(json.loads(store().read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError) as error:
        raise SettingsError(
            f"{store()} is damaged; delete it, then run `docindex trust` and `docindex index` in your projects"
        ) from error


def check_owner(path: Path, trusted_owner: int | None = None) -> None:
    """Check that only this user or root controls a path. A path that does not exist passes.

    Args:
        path: A file or folder.
        trusted_owner: The user ID of an owner whom this user trusts. If that user owns the path, it passes.

    Raises:
        OwnershipError: The path belongs to another user, or it or a parent folder is world-writable.
    """
    try:
        found = path.stat()
    except OSError:  # the code that opens the path reports the error
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
        # In a folder with the sticky bit, such as /tmp, users cannot replace other users' files.
        if mode & stat.S_IWOTH and (place == real or not mode & stat.S_ISVTX):
            raise OwnershipError(
                f"{place} is world-writable, so any user could replace {path}; run "
                f"{command('chmod', 'o-w', place)}, or {_trusting(path)} if you trust all users of this machine"
            )


def _trusting(path: Path) -> str:
    """Return the command that trusts the owner of a path."""
    return command("docindex", "trust", path if path.is_dir() else path.parent)


def _own_ids() -> set[int]:
    """Return the user IDs whose files are as safe as this user's own: root's, and those of the user who ran sudo."""
    sudo = os.environ.get(_SUDO_UID, "") if os.geteuid() == 0 else ""
    return {os.geteuid(), 0, *([int(sudo)] if sudo.isdecimal() else [])}


def _name_of(uid: int) -> str:
    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user {uid}"
