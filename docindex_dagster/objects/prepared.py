"""The tables of a source where all workers find them: objects that never change, and one pointer that says which.

A run takes the pointer with it when it begins, and replaces that one alone when it ends. So of two runs of a source
one wins, whatever became of the lock that should have kept them apart.
"""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from uuid import uuid4

from docindex_dagster.core.errors import DamagedObjectError, ObjectStoreError
from docindex_dagster.core.layout import Layout, file_name
from docindex_dagster.objects.bucket import Bucket
from docindex_dagster.objects.contents import Content, check_age, digest_of, download, upload

FOLDER = "prepared/"
"""The prefix of all pointers."""
_SUFFIX = ".json"
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a pointer says of a source.

    Attributes:
        source: its key.
        number: one more than that of the pointer before; it never comes again.
        files: the tables by their paths below the home; none where the source is to be taken out of the index.
        by: which run wrote it.
        state: of the source, and of the settings, that the tables were made from; "" where they are not of one state.
        tag: of the object; it changes with each pointer.
        nonce: makes its bytes those of one writer.
    """

    source: str
    number: int
    files: Mapping[str, Content]
    by: str = ""
    state: str = ""
    tag: str = field(default="", compare=False)
    nonce: str = field(default_factory=lambda: uuid4().hex)

    @property
    def is_withdrawn(self) -> bool:
        """Whether the source is to be taken out of the index."""
        return not self.files


def object_of(key: str) -> str:
    """The name of the pointer of a source."""
    return f"{FOLDER}{file_name(key)}{_SUFFIX}"


def read(bucket: Bucket, name: str) -> Prepared | None:
    """The pointer that is an object; None where there is none.

    Raises:
        ObjectStoreError: the store does not answer, or the object is no pointer.
    """
    found = bucket.get(name)
    if found is None:
        return None
    try:
        values = json.loads(found.data)
        files = {path: Content(**content) for path, content in values.pop("files").items()}
        return Prepared(**values, files=files, tag=found.tag)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ObjectStoreError(f"{bucket.url}/{name} is damaged ({error}): remove it, and index the source") from error


def listing(bucket: Bucket) -> dict[str, str]:
    """The tags of all pointers by the names of their objects."""
    return {found.name: found.tag for found in bucket.list(FOLDER)}


def pull(bucket: Bucket, layout: Layout, key: str) -> Prepared | None:
    """Let a home hold the tables that the pointer of a source names, and no other ones of it.

    Where there is no pointer, None is returned, and what the home has stays: the first run goes on from an index that
    was made before machines shared it. The caller holds the lock of the source in this home. A table that is there
    already is not fetched.

    Raises:
        DamagedObjectError: a table is missing in the store, or damaged there.
        ObjectStoreError: the store does not answer.
        FullDiskError: there is no space.
    """
    for _ in range(_ATTEMPTS):
        try:
            return _pull(bucket, layout, key)
        except FileNotFoundError:  # the pointer was replaced, and what it named removed
            continue
        except DamagedObjectError as error:
            raise DamagedObjectError(f"{error}: index {key} in full") from error
    raise DamagedObjectError(f"{bucket.url}: a table of {key} is missing: index the source in full")


def _pull(bucket: Bucket, layout: Layout, key: str) -> Prepared | None:
    prepared = read(bucket, object_of(key))
    if prepared is None:
        return None
    wanted = dict(prepared.files)
    here = {path.relative_to(layout.home).as_posix(): path for path in files_of(layout, key)}
    contents = {path: _below(layout.home, path) for path in wanted}
    lacking = {file: wanted[path] for path, file in contents.items() if not _holds(file, wanted[path])}
    download(bucket, lacking, layout.home.parent)
    for path in here.keys() - wanted.keys():
        here[path].unlink()
    return prepared


def _holds(file: Path, content: Content) -> bool:
    return file.is_file() and file.stat().st_size == content.size and digest_of(file) == content.digest


def push(
    bucket: Bucket,
    layout: Layout,
    key: str,
    base: Prepared | None,
    by: str,
    *,
    state: str = "",
    anew: bool = False,
) -> Prepared:
    """Replace the pointer of a source by one to the tables that a home holds.

    Also where they are the same: a run that ended is published, and so undoes a rollback.

    Args:
        bucket: where all find them.
        layout: the home.
        key: of the source.
        base: what `pull` gave.
        by: which run this is.
        state: that the tables were made from, as sensors compute it, who have no tables.
        anew: also upload what `base` names: it may be lost.

    Raises:
        ConflictError: another run replaced the pointer meanwhile.
        ObjectStoreError: the store does not answer.
    """
    begun = time.monotonic()
    files = {path.relative_to(layout.home).as_posix(): path for path in files_of(layout, key)}
    contents = upload(bucket, files, base.files.values() if base and not anew else ())
    check_age(begun)
    return _replace(bucket, Prepared(key, base.number + 1 if base else 1, contents, by, state), base)


def withdraw(bucket: Bucket, key: str, by: str) -> Prepared | None:
    """Let the pointer of a source say that it is to be taken out of the index; None where there is no pointer.

    One that says so is written anew: a rollback may have brought back what publishers took out for it.

    Raises:
        ConflictError: a run replaced the pointer meanwhile.
        ObjectStoreError: the store does not answer.
    """
    base = read(bucket, object_of(key))
    return None if base is None else _replace(bucket, Prepared(key, base.number + 1, {}, by), base)


def _replace(bucket: Bucket, new: Prepared, base: Prepared | None) -> Prepared:
    values = {name: value for name, value in asdict(new).items() if name != "tag"}
    data = json.dumps(values, ensure_ascii=False).encode()
    tag = bucket.replace(object_of(new.source), data, base.tag if base else None)
    return replace(new, tag=tag)


def files_of(layout: Layout, key: str) -> Iterator[Path]:
    """The files of a home that go along with the tables of a source: these, and the summaries that were paid for."""
    found = [layout.table(asset, key) for asset in layout.assets()]
    yield from (path for path in [*found, layout.summaries(key)] if path.is_file())


def _below(home: Path, path: str) -> Path:
    """A path below the home.

    Raises:
        ObjectStoreError: it leads out of it.
    """
    parts = Path(path).parts
    if Path(path).is_absolute() or ".." in parts or parts[:1] not in {("tables",), ("summaries",)}:
        raise ObjectStoreError(f"a pointer names the file {path!r}, which is no table")
    return home / path
