"""Trust in projects: what their files ask for beyond reading the project itself, and what the user granted.

People clone first and read later, so a checkout may hold anything. What the user grants is kept in the user's
configuration folder, never in the project. direnv, git and VS Code are the models.

Whoever can write a project, a home or a cache decides what docindex does for its user. So a folder of another user is
refused until this user trusts it, as git's `safe.directory` has it (CVE-2022-24765).
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
from docindex_dagster.core.files import replacing, stamp
from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.core.locks import exclusive
from docindex_dagster.core.safe_text import command

VARIABLE = "DOCINDEX_TRUST"
"""Trusts every project if it is 1, or those in the folders that it names, without asking or storing anything."""

FOLDERS = "folders"
"""The folder in the cache whose folders are projects that docindex itself writes."""
_EVERYTHING, _NOTHING = {"1", "true", "yes"}, {"", "0", "false", "no"}
_SECRET, _SECRET_BYTES = "secret", 32
_SUDO_UID = "SUDO_UID"
_UNMAPPED = 65_534  # the owner of what belongs to users outside of a container's user namespace, root among them
_GET_GENERATION, _LONG_BYTES = 0x80087601, 8  # FS_IOC_GETVERSION of Linux, and what it fills in


@dataclass(frozen=True, slots=True)
class Privilege:
    """Something that files of a project ask for, and that holds only once the user trusts them.

    Attributes:
        name: What asks, such as `embedding` or `dagster.yaml`.
        value: What it asks for, to be shown to the user.
        digest: A hash that changes with what is asked for.
        folders: Those outside the project, links resolved, that it names.
    """

    name: str
    value: str
    digest: str
    folders: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, value: str, *identity: str, folders: Iterable[str] = ()) -> "Privilege":
        """Make a privilege; `identity` tells it from others of its name where the value alone does not."""
        return cls(name, value, digest_parts(name, value, *identity), tuple(folders))


@dataclass(frozen=True, slots=True)
class Trust:
    """What a user has granted to one project.

    Attributes:
        is_full: Whether everything is granted.
        granted: The digests of the privileges.
        owner: The user id of another owner of the folder, whom the user trusts.
    """

    is_full: bool = False
    granted: frozenset[str] = frozenset()
    owner: int | None = None

    def grants(self, privilege: Privilege) -> bool:
        """Whether a privilege holds."""
        return self.is_full or privilege.digest in self.granted


def store() -> Path:
    """The file that keeps what this user granted; it may not exist yet."""
    return user_config_path("docindex", appauthor=False) / "trust.json"


def cache() -> Path:
    """The folder of the caches of this user; it may not exist yet."""
    return user_cache_path("docindex", appauthor=False)


def trust_in(root: Path) -> Trust:
    """Return what the user has granted to the project at `root`.

    Raises:
        OwnershipError: The user's own configuration or cache folder is in the hands of another user.
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
    """Check, before anything is written to a folder, that nobody but this user decides what lies in it.

    Raises:
        OwnershipError: The folder belongs to another user whom this user does not trust, or every user may write it.
        SettingsError: As `trust_in`.
    """
    given = trust_in(root)
    if not given.is_full:
        check_owner(root, given.owner)


def grant(root: Path, privileges: Iterable[Privilege], *, owner: int | None = None, replaces: bool = False) -> None:
    """Grant privileges to the project at `root`, beside or in the place of those that it has.

    Args:
        root: The folder of the project.
        privileges: What to grant.
        owner: The user id of another owner of the folder, whom the user trusts.
        replaces: Whether all that was granted before is taken back.

    Raises:
        OSError: They cannot be stored.
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
    """Take back all that is granted to the project at `root`; False if nothing was.

    Raises:
        OSError: This cannot be stored.
        SettingsError: The store is damaged.
    """
    with _changing() as stored:
        return stored.get("projects", {}).pop(os.path.realpath(root), None) is not None


def hidden_name(root: Path, *, make: bool) -> str | None:
    """Return the name of the folder in `.docindex` that holds this user's index of the project at `root`.

    It follows from a secret of the user and from the identity of the project's folder. So nobody who puts files into
    the project, as by a pull, can foresee it, and an index that was given away is not found in a copy of the project.

    Args:
        root: The folder of the project.
        make: Whether to make the secret if there is none.

    Returns:
        The name; None if there is no secret.

    Raises:
        SettingsError: The secret cannot be stored, or the store is damaged.
    """
    secret = _stored().get(_SECRET) or (_make_secret() if make else None)
    if secret is None:
        return None
    place = Path(os.path.realpath(root))
    try:
        number = place.stat().st_ino  # not its device, whose number may change when the machine starts again
    except OSError:  # the project is still to be made
        return digest_parts(secret, str(place))
    return digest_parts(secret, str(place), str(number), _generation(place))


def _generation(folder: Path) -> str:
    """What tells a folder from a later one with its inode, which ext4 gives again at once; empty where nothing does."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return fcntl.ioctl(descriptor, _GET_GENERATION, bytes(_LONG_BYTES)).hex()
    except OSError:  # the file system has no such numbers, and mostly gives no inode again
        return ""
    finally:
        os.close(descriptor)


def _make_secret() -> str:
    try:
        with _changing() as stored:
            return str(stored.setdefault(_SECRET, secrets.token_hex(_SECRET_BYTES)))
    except OSError as error:
        raise SettingsError(
            f"cannot write {store()}, which says where indexes lie: {error.strerror or error}; "
            "set DOCINDEX_HOME to a folder outside of the project"
        ) from error


@lru_cache(maxsize=4)
def _check_own(*places: Path) -> None:
    """Check once in a process that the user's own files are nobody else's."""
    for place in places:
        check_owner(place)


def _is_covered(place: Path) -> bool:
    """Whether `DOCINDEX_TRUST` names a project, or all of them."""
    text = os.environ.get(VARIABLE, "")
    if text.lower() in _NOTHING | _EVERYTHING:
        return text.lower() in _EVERYTHING
    return any(place.is_relative_to(os.path.realpath(folder)) for folder in text.split(os.pathsep) if folder)


@contextmanager
def _changing() -> Iterator[dict[str, Any]]:
    """The content of the store, to be changed; it is written when the block ends well."""
    with exclusive(store().with_suffix(".lock"), f"process {os.getpid()}", on_wait=lambda _: None):
        stored = _read_store()
        yield stored
        with replacing(store(), 0o600) as temporary:
            temporary.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


def _stored() -> dict[str, Any]:
    """The content of the store, not to be changed; empty if there is none that this user can reach."""
    file = store()
    found = stamp(file)
    return {} if found is None else _stored_at(file, found)


@lru_cache(maxsize=2)
def _stored_at(_file: Path, _stamp: tuple[int, ...]) -> dict[str, Any]:
    """The content of the store, which is read anew when the file is another one."""
    return _read_store()


def _read_store() -> dict[str, Any]:
    try:
        return dict(json.loads(store().read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError) as error:
        raise SettingsError(
            f"{store()} is damaged; remove it, then run `docindex trust` and `docindex index` in your projects"
        ) from error


def check_owner(path: Path, trusted_owner: int | None = None) -> None:
    """Check that only this user or root controls a path. A path that does not exist passes.

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
