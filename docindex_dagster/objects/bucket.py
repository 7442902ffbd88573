"""Client for the object store: named objects, conditional puts and clear errors. Knows nothing about their content.

Shared state changes only through conditional puts, so their result must be certain. A server may perform a put and then
fail to respond, in which case a retry conflicts with the first attempt. So every caller writes unique bytes, and after
a failure the client reads the object back to find out whether the put succeeded.
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
from docindex_dagster.core.installation import missing_extra_message
from docindex_dagster.core.retry import Retry

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_T = TypeVar("_T")
_R = TypeVar("_R")
_RETRY = Retry(retries=6, first_wait_s=0.2, longest_wait_s=10.0)
# obstore retries requests itself, with exponential backoff.
_MAX_RETRIES, _RETRY_TIMEOUT = 5, timedelta(seconds=90)
# It does not retry a listing or deletion whose response is truncated; reads resume where they stopped.
_TRUNCATED_RETRY = Retry(retries=3, first_wait_s=0.2)
_THREADS = 8
_PART = 8 << 20  # bytes per request, since obstore aborts a request after 30 s, however large the object is


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object that was read: its bytes and its ETag, which changes with them."""

    data: bytes
    tag: str


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """An object in a listing: its name, ETag, size in bytes, and modification time according to the store's clock."""

    name: str
    tag: str
    size: int
    written: datetime


@dataclass(frozen=True, slots=True)
class Bucket:
    """The objects below a URL.

    Attributes:
        url: The URL, for messages.
    """

    url: str
    _store: "ObjectStore"

    def get(self, name: str, unless: str | None = None) -> StoredObject | None:
        """Return an object; None if it does not exist, or if its ETag is `unless`.

        Raises:
            ObjectStoreError: The store does not respond.
        """
        import obstore
        from obstore.exceptions import NotModifiedError

        try:
            with self._reporting(f"reading {name}"):
                got = obstore.get(self._store, name, options={"if_none_match": unless} if unless else None)
                return StoredObject(bytes(got.bytes()), got.meta["e_tag"] or "")
        except (FileNotFoundError, NotModifiedError):
            return None

    def replace(self, name: str, data: bytes, tag: str | None) -> str:
        """Replace the object with this ETag, or create it if `tag` is None; return the new ETag.

        Args:
            name: The name of the object.
            data: The new bytes, which no other caller ever writes.
            tag: The ETag of the object that the caller read.

        Raises:
            ConflictError: Another writer replaced the object first.
            ObjectStoreError: The store rejects the request or does not respond.
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
            current = self.get(name)
            if current is not None and current.data == data:  # this attempt or an earlier one succeeded
                return current.tag
            if isinstance(error, (AlreadyExistsError, PreconditionError)):
                raise ConflictError(f"{self.url}/{name} was replaced by another process") from error
            raise ObjectStoreError(f"{self.url}: replacing {name} failed: {first_line(error)}") from error

    def list(self, prefix: str) -> Sequence[ObjectInfo]:
        """List all objects below a prefix, which ends with a slash.

        Raises:
            ObjectStoreError: The store does not respond.
        """
        return _TRUNCATED_RETRY.call(lambda: [*self._list(prefix)], _is_truncated, lambda _: None)

    def _list(self, prefix: str) -> Iterator[ObjectInfo]:
        import obstore

        with self._reporting(f"listing {prefix}"):
            for batch in obstore.list(self._store, prefix.rstrip("/")):
                for found in batch:
                    yield ObjectInfo(found["path"], found["e_tag"] or "", found["size"], found["last_modified"])

    def delete(self, names: Iterable[str]) -> None:
        """Delete objects, ignoring missing ones.

        Raises:
            ObjectStoreError: The store rejects the request.
        """
        targets = [*names]
        if targets:
            _TRUNCATED_RETRY.call(lambda: self._delete(targets), _is_truncated, lambda _: None)

    def _delete(self, names: Sequence[str]) -> None:
        import obstore

        with self._reporting(f"deleting {names[0]}"):
            obstore.delete(self._store, names)

    def upload(self, name: str, file: Path) -> None:
        """Upload a file.

        Raises:
            ObjectStoreError: The store rejects the request.
        """
        import obstore

        with self._reporting(f"writing {name}"):
            obstore.put(self._store, name, file)

    def download(self, name: str, size: int, file: Path) -> None:
        """Write the first bytes of an object to a file that nobody else reads yet.

        Args:
            name: The name of the object.
            size: How many bytes to download; a smaller object is downloaded completely.
            file: The target file.

        Raises:
            FileNotFoundError: The object does not exist.
            ObjectStoreError: The store does not respond.
            FullDiskError: The disk is full.
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
            if isinstance(error, OSError) and error.errno is not None:  # an error of the local disk
                raise
            raise ObjectStoreError(f"{self.url}: {doing} failed: {first_line(error)}") from error


def _is_truncated(error: BaseException) -> bool:
    """Return whether a response was truncated, which obstore reports only in the message."""
    return isinstance(error, ObjectStoreError) and "body" in str(error)


def open_bucket(url: str) -> Bucket:
    """Open the objects below a URL such as `s3://BUCKET/PREFIX`; keys and endpoint come from variables (`AWS_...`).

    Raises:
        SettingsError: The extra is not installed, or the URL or environment is invalid.
    """
    try:
        from obstore.exceptions import BaseError
        from obstore.store import from_url
    except ModuleNotFoundError as error:
        raise SettingsError(missing_extra_message("storage.url", "scale")) from error
    try:
        store = from_url(
            url,
            retry_config={"max_retries": _MAX_RETRIES, "retry_timeout": _RETRY_TIMEOUT},
        )
    except (BaseError, ValueError, OSError) as error:
        raise SettingsError(f"cannot use storage.url = {url!r}: {first_line(error)}") from error
    return Bucket(url.rstrip("/"), store)


def in_parallel(work: Callable[[_T], _R], items: Iterable[_T]) -> list[_R]:
    """Apply `work` to all items concurrently, and return the results in order. Suited to network-bound requests."""
    with ThreadPoolExecutor(min(_THREADS, 4 * (os.cpu_count() or 1))) as pool:
        return list(pool.map(work, items))
