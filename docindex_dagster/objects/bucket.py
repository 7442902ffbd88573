"""The object store: objects by name, conditional puts, and errors that say what to do; not what objects mean.

A conditional put is the only step by which something shared changes, so its answer must be certain. A server may do it
and then fail to say so; a put that is tried again then meets its own first attempt. So whoever calls writes bytes
that nobody else writes, and after any failure they are read back: they are there, or they are not.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from docindex_dagster.core.errors import ConflictError, ObjectStoreError, SettingsError, first_line
from docindex_dagster.core.files import reporting_full_disk
from docindex_dagster.core.installation import needs_extra
from docindex_dagster.core.retry import Retry

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_T = TypeVar("_T")
_R = TypeVar("_R")
_RETRY = Retry(retries=6, first_wait_s=0.2, longest_wait_s=10.0)
# The library tries again itself, and waits twice as long each time.
_RETRIES, _TRYING = 5, timedelta(seconds=90)
# But not where the answer to a listing or a deletion is cut; what is being read goes on where it was.
_RETRY_CUT = Retry(retries=3, first_wait_s=0.2)
_THREADS = 8
_PART = 8 << 20  # bytes of a request: the library ends one that takes half a minute, however large the object is


@dataclass(frozen=True, slots=True)
class Found:
    """An object that was read: its bytes, and the tag that changes with them."""

    data: bytes
    tag: str


@dataclass(frozen=True, slots=True)
class Listed:
    """An object in a listing: its name, tag, size in bytes, and when it was written, by the clock of the store."""

    name: str
    tag: str
    size: int
    written: datetime


@dataclass(frozen=True, slots=True)
class Bucket:
    """Objects below a URL.

    Attributes:
        url: of it, for messages.
    """

    url: str
    _store: "ObjectStore"

    def get(self, name: str, unless: str | None = None) -> Found | None:
        """An object; None where there is none, or its tag is `unless`.

        Raises:
            ObjectStoreError: the store does not answer.
        """
        import obstore
        from obstore.exceptions import NotModifiedError

        try:
            with self._reporting(f"reading {name}"):
                got = obstore.get(self._store, name, options={"if_none_match": unless} if unless else None)
                return Found(bytes(got.bytes()), got.meta["e_tag"] or "")
        except (FileNotFoundError, NotModifiedError):
            return None

    def replace(self, name: str, data: bytes, tag: str | None) -> str:
        """Put an object in the place of the one with a tag (None: where there is none); returns its tag.

        Args:
            name: of the object.
            data: bytes that no other caller writes, ever.
            tag: of the object that was read.

        Raises:
            ConflictError: it was replaced meanwhile.
            ObjectStoreError: the store refuses, or does not answer.
        """
        return _RETRY.call(
            lambda: self._replace(name, data, tag),
            lambda error: isinstance(error, ObjectStoreError) and not isinstance(error, ConflictError),
            lambda _: None,
        )

    def _replace(self, name: str, data: bytes, tag: str | None) -> str:
        import obstore
        from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

        try:
            put = obstore.put(self._store, name, data, mode={"e_tag": tag} if tag else "create", use_multipart=False)
            return put["e_tag"] or ""
        except (BaseError, OSError) as error:
            there = self.get(name)
            if there is not None and there.data == data:  # it was done all the same, by this attempt or by one before
                return there.tag
            if isinstance(error, (AlreadyExistsError, PreconditionError)):
                raise ConflictError(f"{self.url}/{name} was replaced meanwhile") from error
            raise ObjectStoreError(f"{self.url}: replacing {name} failed: {first_line(error)}") from error

    def list(self, prefix: str) -> Sequence[Listed]:
        """All objects below a prefix, which ends with a slash.

        Raises:
            ObjectStoreError: the store does not answer.
        """
        return _RETRY_CUT.call(lambda: [*self._list(prefix)], _is_cut, lambda _: None)

    def _list(self, prefix: str) -> Iterator[Listed]:
        import obstore

        with self._reporting(f"listing {prefix}"):
            for batch in obstore.list(self._store, prefix.rstrip("/")):
                for found in batch:
                    yield Listed(found["path"], found["e_tag"] or "", found["size"], found["last_modified"])

    def delete(self, names: Iterable[str]) -> None:
        """Remove objects; one that is gone already is no error.

        Raises:
            ObjectStoreError: the store refuses.
        """
        wanted = [*names]
        if wanted:
            _RETRY_CUT.call(lambda: self._delete(wanted), _is_cut, lambda _: None)

    def _delete(self, names: Sequence[str]) -> None:
        import obstore

        with self._reporting(f"deleting {names[0]}"):
            obstore.delete(self._store, names)

    def upload(self, name: str, file: Path) -> None:
        """Put a file.

        Raises:
            ObjectStoreError: the store refuses.
        """
        import obstore

        with self._reporting(f"writing {name}"):
            obstore.put(self._store, name, file)

    def download(self, name: str, size: int, file: Path) -> None:
        """Write the first bytes of an object into a file, which the caller has chosen so that nobody looks at it yet.

        Args:
            name: of the object.
            size: how many bytes; of an object that has fewer, all of them.
            file: where to.

        Raises:
            FileNotFoundError: there is no such object.
            ObjectStoreError: the store does not answer.
            FullDiskError: there is no space for it.
        """
        import obstore

        with reporting_full_disk(file.parent), self._reporting(f"reading {name}"), file.open("wb") as out:
            while out.tell() < size:
                part = obstore.get(self._store, name, options={"range": (out.tell(), min(out.tell() + _PART, size))})
                size = min(size, part.meta["size"])
                out.write(part.bytes())

    @contextmanager
    def _reporting(self, doing: str) -> Iterator[None]:
        from obstore.exceptions import BaseError, NotModifiedError

        try:
            yield
        except (FileNotFoundError, NotModifiedError):
            raise
        except (BaseError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:  # it is the disk's
                raise
            raise ObjectStoreError(f"{self.url}: {doing} failed: {first_line(error)}") from error


def _is_cut(error: BaseException) -> bool:
    """Whether an answer began, and did not come to its end: the library says so in words alone."""
    return isinstance(error, ObjectStoreError) and "body" in str(error)


def open_bucket(url: str) -> Bucket:
    """The objects below a URL such as `s3://BUCKET/PREFIX`; keys and endpoint come from the environment (`AWS_...`).

    Raises:
        SettingsError: what it needs is not installed, or the URL or environment cannot be used.
    """
    try:
        from obstore.exceptions import BaseError
        from obstore.store import from_url
    except ModuleNotFoundError as error:
        raise SettingsError(needs_extra("storage.url", "scale")) from error
    try:
        store = from_url(
            url,
            retry_config={"max_retries": _RETRIES, "retry_timeout": _TRYING},
        )
    except (BaseError, ValueError, OSError) as error:
        raise SettingsError(f"storage.url = {url!r} cannot be used: {first_line(error)}") from error
    return Bucket(url.rstrip("/"), store)


def in_parallel(work: Callable[[_T], _R], items: Iterable[_T]) -> list[_R]:
    """What `work` gives for each item, some at once, in their order; requests wait for the network most of the time."""
    with ThreadPoolExecutor(min(_THREADS, 4 * (os.cpu_count() or 1))) as pool:
        return list(pool.map(work, items))
