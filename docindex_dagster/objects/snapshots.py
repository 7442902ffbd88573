"""Shared stores as immutable objects and one manifest, which search servers follow.

The manifest lists every file of the published generation, of the generation to roll back to, and of one that is to take
over. Replacing it makes a publication visible atomically. The replacement succeeds only if the manifest is still the
one that the publication started from. Each manifest has a unique number, because object stores derive ETags from the
bytes, and after a rollback these could otherwise repeat.
"""

import gzip
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import uuid4

from docindex_dagster.core.errors import ObjectStoreError
from docindex_dagster.core.files import atomic_write, remove_tree, writer_pid
from docindex_dagster.core.layout import Layout
from docindex_dagster.objects.bucket import Bucket
from docindex_dagster.objects.contents import Content, check_age, download, hash_file, link, upload

MANIFEST = "cells/0/CURRENT"  # object name; the prefix dates from when there could be several
_RECORD = "snapshot.json"  # file in the home: the manifest it follows, and the files it has
_CHANGING = "changing"  # file that exists while the home may differ from that manifest
_GZIP_LEVEL = 3  # names repeat, hashes do not
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Manifest:
    """A published state of the stores.

    Attributes:
        number: The number of the previous manifest plus one.
        pointers: The contents of `CURRENT`, the file that it names, `NEXT`, and the catalog, by file name.
        files: All other files of the stores, by their path below that folder.
        published: The ETags of the pointers whose tables are in the stores, by object name.
        refused: The ETags of rejected pointers, by object name; the stores contain the earlier tables.
        tag: The ETag of the object.
        nonce: A random value that makes the bytes unique to their writer.
    """

    number: int = 0
    pointers: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, Content] = field(default_factory=dict)
    published: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    tag: str | None = field(default=None, compare=False)
    nonce: str = ""


def read(bucket: Bucket, unless: str | None = None) -> Manifest | None:
    """Read the manifest; return None if it does not exist, or if its ETag is `unless`.

    Raises:
        ObjectStoreError: The store does not respond, or the object is not a valid manifest.
    """
    found = bucket.get(MANIFEST, unless)
    if found is None:
        return None
    try:
        values = json.loads(gzip.decompress(found.data))
        files = {path: Content(*content) for path, content in values.pop("files").items()}
        return Manifest(**values, files=files, tag=found.tag)
    except (OSError, EOFError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ObjectStoreError(f"{bucket.url}/{MANIFEST} is damaged ({error}): restore it from a backup") from error


def pull(bucket: Bucket, layout: Layout) -> Manifest:
    """Update the stores in a home to the published state exactly; return the manifest.

    `CURRENT` is replaced last, so readers of this home see either the previous generation or the new one. The caller
    holds the publication lock of the home.

    Raises:
        ObjectStoreError: The store does not respond.
        FullDiskError: The disk is full.
    """
    mark_changing(layout)
    for _ in range(_ATTEMPTS):
        manifest = read(bucket) or Manifest()
        try:
            _follow(bucket, layout, manifest)
            _changing(layout).unlink(missing_ok=True)
        except FileNotFoundError:  # the manifest was replaced, and its objects were deleted
            continue
        return manifest
    raise ObjectStoreError(f"{bucket.url}: a file of the stores is missing; see docs/explanation/several-machines.md")


def mark_changing(layout: Layout) -> None:
    """Mark a home as possibly different from the published state, until a `pull` or `push` completes."""
    with atomic_write(_changing(layout)):
        pass  # an empty file


def force_verification(layout: Layout) -> None:
    """Make the next `pull` read every file of a home, and replace damaged ones."""
    _record(layout).unlink(missing_ok=True)


def push(bucket: Bucket, layout: Layout, base: Manifest, noted: Manifest | None = None) -> Manifest:
    """Publish the stores of a home, which are based on `base`; return the new manifest.

    If nothing differs from `base`, nothing is written. The caller holds the publication lock of the home.

    Args:
        bucket: The object store.
        layout: The home.
        base: The result of `pull` or of the last `push`.
        noted: `base` with the current values of `published` and `refused`.

    Raises:
        ConflictError: Another publisher replaced the manifest first; the next `pull` downloads its publication.
        ObjectStoreError: The store does not respond.
    """
    begun = time.monotonic()
    local = _files(layout, base.files)
    new = upload(bucket, {path: file for path, file in local.items() if isinstance(file, Path)}, base.files.values())
    files = {path: new[path] if isinstance(file, Path) else file for path, file in local.items()}
    pointers = {file.name: file.read_text(encoding="utf-8") for file in _pointers(layout)}
    found = replace(noted or base, pointers=pointers, files=files)
    if found == base and base.tag is not None:
        _changing(layout).unlink(missing_ok=True)
        return base
    found = replace(found, number=base.number + 1, nonce=uuid4().hex)
    check_age(begun)
    tag = bucket.replace(MANIFEST, _encoded(found), base.tag)
    found = replace(found, tag=tag)
    _write_record(layout, found)
    _changing(layout).unlink(missing_ok=True)
    return found


def _encoded(manifest: Manifest) -> bytes:
    values = {name: getattr(manifest, name) for name in ("number", "pointers", "published", "refused", "nonce")}
    files = {path: [content.digest, content.size, content.name] for path, content in manifest.files.items()}
    return gzip.compress(json.dumps({**values, "files": files}, ensure_ascii=False).encode(), _GZIP_LEVEL, mtime=0)


def _follow(bucket: Bucket, layout: Layout, manifest: Manifest) -> None:
    local = _files(layout, manifest.files)
    missing = {_below(layout, path): content for path, content in manifest.files.items() if local.get(path) != content}
    # Two generations may share a segment.
    available = {
        digest: layout.stores / path
        for path, digest in _recorded(layout).items()
        if layout.stores / path not in missing
    }
    shared = {file: content for file, content in missing.items() if content.digest in available}
    for file, content in shared.items():
        link(available[content.digest], file)
    download(bucket, {file: missing[file] for file in missing.keys() - shared.keys()}, layout.home.parent)
    _write_record(layout, manifest)
    for name, text in manifest.pointers.items():
        if name != layout.current.name:
            write_if_changed(_pointer_path(layout, name), text)
    if text := manifest.pointers.get(layout.current.name, ""):
        write_if_changed(layout.current, text)
    _remove_others(layout, manifest)


def write_if_changed(path: Path, text: str) -> None:
    """Write a text to a file unless it already contains it."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        with atomic_write(path) as temporary:
            temporary.write_text(text, encoding="utf-8")


def _remove_others(layout: Layout, manifest: Manifest) -> None:
    """Remove the files of deleted generations, and of a publication that lost a conflict."""
    for file in list(_pointers(layout)):
        if file.name not in manifest.pointers and file != layout.catalog:
            file.unlink()
    used = {layout.stores / path for path in manifest.files}
    folders = {file.parent for file in used}
    for folder in layout.entries(layout.tantivy):  # first, since it shows readers that their generation is gone
        if folder not in folders:
            remove_tree(folder)
    for path in _paths(layout) - manifest.files.keys():
        (layout.stores / path).unlink(missing_ok=True)


def _files(layout: Layout, known: Mapping[str, Content]) -> dict[str, Content | Path]:
    """Return the files of the stores by path: the known content if it matches, else the file."""
    recorded = _recorded(layout)
    found: dict[str, Content | Path] = {}
    for path in _paths(layout):
        file, content = layout.stores / path, known.get(path)
        is_known = content is not None and (recorded.get(path) or hash_file(file)) == content.digest
        found[path] = content if content is not None and is_known else file
    return found


def _paths(layout: Layout) -> set[str]:
    """Return the paths of all files in the stores, except pointers, locks and partially written files."""
    pointers = {layout.stores / name for name in (layout.current.name, layout.next.name)}
    found = (file for file in layout.stores.rglob("*") if file.is_file() and file not in pointers)
    return {
        file.relative_to(layout.stores).as_posix()
        for file in found
        if not (file.parent == layout.stores and file in layout.all_previous)
        and file.suffix != ".lock"
        and writer_pid(file) is None
        and not file.name.startswith(".tmp")
    }


def _pointers(layout: Layout) -> Iterator[Path]:
    found = (layout.current, layout.next, layout.catalog, *layout.all_previous)
    yield from (file for file in found if file.is_file())


def _pointer_path(layout: Layout, name: str) -> Path:
    return layout.catalog if name == layout.catalog.name else _below(layout, name)


def _record(layout: Layout) -> Path:
    return layout.home / _RECORD


def _changing(layout: Layout) -> Path:
    return layout.home / _CHANGING


def _recorded(layout: Layout) -> dict[str, str]:
    """Return the recorded hashes of files that have not changed since."""
    try:
        recorded = json.loads(_record(layout).read_bytes())["files"]
        return {path: digest for path, (digest, *stamp) in recorded.items() if stamp == _stamp(layout.stores / path)}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def followed_tag(layout: Layout) -> str | None:
    """Return the ETag of the manifest that the stores in a home match; None if they may differ from it."""
    if _changing(layout).exists():
        return None
    try:
        tag = json.loads(_record(layout).read_bytes())["tag"]
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return tag if isinstance(tag, str) and layout.current.is_file() else None


def _write_record(layout: Layout, manifest: Manifest) -> None:
    """Record the hashes of files, so that they need not be read again."""
    recorded = {path: [content.digest, *_stamp(layout.stores / path)] for path, content in manifest.files.items()}
    with atomic_write(_record(layout)) as temporary:
        temporary.write_text(json.dumps({"tag": manifest.tag, "files": recorded}), encoding="utf-8")


def _stamp(file: Path) -> list[int]:
    """Return a value that changes when a file is replaced; without `ctime`, which changes with hard links."""
    try:
        found = file.stat()
    except OSError:
        return []
    return [found.st_ino, found.st_size, found.st_mtime_ns]


def _below(layout: Layout, path: str) -> Path:
    """Return a path below the stores.

    Raises:
        ObjectStoreError: The path is outside the stores.
    """
    if Path(path).is_absolute() or ".." in Path(path).parts:
        raise ObjectStoreError(f"invalid path {path!r} in a manifest: outside the stores")
    return layout.stores / path
