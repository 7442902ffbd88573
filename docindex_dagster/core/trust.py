"""Trust in projects: what their files ask for beyond reading the project itself, and what the user granted.

People clone first and read later, so a checkout may hold anything. What the user grants is kept in the user's
configuration folder, never in the project. direnv, git and VS Code are the models.
"""

import json
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path, user_config_path

from docindex_dagster.core.errors import SettingsError
from docindex_dagster.core.files import replacing, stamp
from docindex_dagster.core.hashing import digest, digest_parts
from docindex_dagster.core.locks import exclusive
from docindex_dagster.core.ownership import check_owner

VARIABLE = "DOCINDEX_TRUST"
"""Trusts every project if it is 1, or those in the folders that it names, without asking or storing anything."""

FOLDERS = "folders"
"""The folder in the cache whose folders are projects that docindex itself writes."""
_EVERYTHING, _NOTHING = {"1", "true", "yes"}, {"", "0", "false", "no"}
_FIRST = {".gitignore", "locks"}
_ID, _ID_BYTES = "id", 16  # the file in a home that tells it from those that docindex did not make


@dataclass(frozen=True, slots=True)
class Privilege:
    """Something that files of a project ask for, and that holds only once the user trusts them.

    Attributes:
        name: What asks, such as `embedding` or `dagster.yaml`.
        value: What it asks for, to be shown to the user.
        digest: A hash that changes with what is asked for.
    """

    name: str
    value: str
    digest: str

    @classmethod
    def of(cls, name: str, value: str, *identity: str) -> "Privilege":
        """Make a privilege; `identity` tells it from others of its name where the value alone does not."""
        return cls(name, value, digest_parts(name, value, *identity))


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
    entry = _stored_at(file, stamp(file)).get("projects", {}).get(str(place), {})
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


def has_begun() -> bool:
    """Whether there was ever a store, even if it was removed since."""
    return store().exists() or _lock().exists()


def begin() -> None:
    """Make the store, if there is none.

    Raises:
        OSError: It cannot be written.
        SettingsError: The store is damaged.
    """
    with _changing():
        pass


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


def revoke(root: Path) -> bool:
    """Take back all that is granted to the project at `root`; False if nothing was.

    Raises:
        OSError: This cannot be stored.
        SettingsError: The store is damaged.
    """
    with _changing() as stored:
        return stored.get("projects", {}).pop(os.path.realpath(root), None) is not None


def knows_home(home: Path) -> bool:
    """Whether docindex made a home for this user, or the user trusted it, or there is nothing in it to distrust.

    Raises:
        OwnershipError: As `trust_in`.
        SettingsError: As `trust_in`.
    """
    if trust_in(home).is_full:
        return True
    try:
        return knows_secret(home, _read_id(home))
    except OSError:
        return is_new_home(home)


def is_new_home(home: Path) -> bool:
    """Whether a folder holds nothing but what processes write first while they make a home of it."""
    try:
        return all(entry.name in _FIRST or entry.name.startswith(f".{_ID}.") for entry in home.iterdir())
    except OSError:
        return False


def adopt_home(home: Path) -> None:
    """Give a home a new secret id and remember it, so that this user's later processes open the home.

    Raises:
        OSError: The id cannot be stored.
        OwnershipError: As `trust_in`.
        SettingsError: The store is damaged.
    """
    secret = secrets.token_hex(_ID_BYTES)
    remember_secret(home, secret)
    with replacing(home / _ID, 0o600) as temporary:
        temporary.write_text(secret, encoding="ascii")


def hidden_name(home: Path) -> str:
    """Return the name of a folder that nobody who puts files into a home, as by a pull, can foresee.

    Empty for a home without an id, which holds nothing that docindex made, unless the user trusts whoever filled it.
    """
    return _hidden_name(home, stamp(home / _ID))


@lru_cache(maxsize=16)
def _hidden_name(home: Path, id_stamp: tuple[int, ...] | None) -> str:
    try:
        return "" if id_stamp is None else digest_parts("hidden", _read_id(home))[:_ID_BYTES]
    except OSError:  # of a group that may only read what is published
        return ""


def remember_secret(home: Path, secret: str) -> None:
    """Remember a secret that docindex is about to write to a home, so that `knows_secret` tells it from others.

    Raises:
        OSError: It cannot be stored.
        SettingsError: The store is damaged.
    """
    if home.is_relative_to(cache()):
        return
    try:
        with _changing() as stored:
            stored["homes"] = sorted({*stored.get("homes", ()), digest(secret.encode())})
    except OSError:
        if not trust_in(home).is_full:
            raise


def knows_secret(home: Path, secret: str) -> bool:
    """Return whether docindex wrote this secret to a home for this user, rather than whoever filled the folder.

    Raises:
        OwnershipError: As `trust_in`.
        SettingsError: As `trust_in`.
    """
    is_stored = digest(secret.encode()) in _stored_at(store(), stamp(store())).get("homes", ())
    return is_stored or home.is_relative_to(cache()) or trust_in(home).is_full


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


def _read_id(home: Path) -> str:
    descriptor = os.open(home / _ID, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(2 * _ID_BYTES).decode("ascii", "replace")


def _lock() -> Path:
    return store().with_suffix(".lock")


@contextmanager
def _changing() -> Iterator[dict[str, Any]]:
    """The content of the store, to be changed; it is written when the block ends well."""
    with exclusive(_lock(), f"process {os.getpid()}", on_wait=lambda _: None):
        stored = _read_store()
        yield stored
        with replacing(store(), 0o600) as temporary:
            temporary.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


@lru_cache(maxsize=2)
def _stored_at(_file: Path, _stamp: tuple[int, ...] | None) -> dict[str, Any]:
    """The content of the store, not to be changed; it is read anew when the file is another one."""
    return _read_store()


def _read_store() -> dict[str, Any]:
    try:
        return dict(json.loads(store().read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError) as error:
        raise SettingsError(f"{store()} is damaged; remove it, and run `docindex trust` in your projects") from error
