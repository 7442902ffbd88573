"""The stores of the publisher where all search servers find them: objects that never change, and one manifest.

A manifest names every file of the published generation, of the one to roll back to, and of one that is to take over.
Replacing it is the one step by which the world sees a publication. It is replaced on the condition that it is still the
one from which the publication started, and carries a number that never comes again, since a store knows an object by
its bytes alone: after a rollback those could be what they were.
"""

import gzip
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import uuid4

from docindex_dagster.core.errors import ObjectStoreError
from docindex_dagster.core.files import remove_tree, replacing, writer
from docindex_dagster.core.layout import Layout
from docindex_dagster.objects.bucket import Bucket
from docindex_dagster.objects.contents import Content, check_age, digest_of, download, link, upload

MANIFEST = "cells/0/CURRENT"  # the object's name, with a prefix from when there could be several
_RECORD = "snapshot.json"  # in the home: which manifest it follows, and which of its files it has
_CHANGING = "changing"  # in the home, while it may differ from the manifest that it follows
_LEVEL = 3  # of gzip: names repeat, hashes do not
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Manifest:
    """One published state of the stores.

    Attributes:
        number: one more than that of the manifest before.
        pointers: the texts of `CURRENT`, the file that it names, `NEXT`, and the catalogue, by their names.
        files: all other files of the stores, by their paths below that folder.
        published: the tags of the pointers whose tables the stores hold, by the names of their objects.
        refused: as `published`, of those whose tables broke a rule: the stores hold what was there before.
        tag: of the object.
        nonce: makes its bytes those of one writer.
    """

    number: int = 0
    pointers: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, Content] = field(default_factory=dict)
    published: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    tag: str | None = field(default=None, compare=False)
    nonce: str = ""


def read(bucket: Bucket, unless: str | None = None) -> Manifest | None:
    """The manifest; None where there is none, or it has the tag `unless`.

    Raises:
        ObjectStoreError: the store does not answer, or the object is no manifest.
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
    """Let a home hold exactly the stores as they are published; returns their manifest.

    `CURRENT` is replaced last, so that readers of this home see the generation before, or this one. The caller holds
    the publication lock of the home.

    Raises:
        ObjectStoreError: the store does not answer.
        FullDiskError: there is no space.
    """
    change(layout)
    for _ in range(_ATTEMPTS):
        manifest = read(bucket) or Manifest()
        try:
            _follow(bucket, layout, manifest)
            _changing(layout).unlink(missing_ok=True)
        except FileNotFoundError:  # it was replaced, and what it named removed
            continue
        return manifest
    raise ObjectStoreError(f"{bucket.url}: a file of the stores is missing; see docs/scale.md, “Failures”")


def change(layout: Layout) -> None:
    """Note that a home is about to differ from what is published, until a `pull` or `push` ends."""
    with replacing(_changing(layout)):
        pass  # an empty file


def distrust(layout: Layout) -> None:
    """Let the next `pull` read every file of a home, and replace those that are damaged."""
    _record(layout).unlink(missing_ok=True)


def push(bucket: Bucket, layout: Layout, base: Manifest, noted: Manifest | None = None) -> Manifest:
    """Publish the stores of a home, which started as those of `base`; returns their manifest.

    Where nothing differs from `base`, nothing is written. The caller holds the publication lock of the home.

    Args:
        bucket: where all find them.
        layout: the home.
        base: what `pull`, or the last `push`, gave.
        noted: `base` with what is `published` and `refused` now.

    Raises:
        ConflictError: another publisher replaced the manifest meanwhile; the next `pull` brings what it published.
        ObjectStoreError: the store does not answer.
    """
    begun = time.monotonic()
    here = _files(layout, base.files)
    new = upload(bucket, {path: file for path, file in here.items() if isinstance(file, Path)}, base.files.values())
    files = {path: new[path] if isinstance(file, Path) else file for path, file in here.items()}
    pointers = {file.name: file.read_text(encoding="utf-8") for file in _pointers(layout)}
    found = replace(noted or base, pointers=pointers, files=files)
    if found == base and base.tag is not None:
        _changing(layout).unlink(missing_ok=True)
        return base
    found = replace(found, number=base.number + 1, nonce=uuid4().hex)
    check_age(begun)
    tag = bucket.replace(MANIFEST, _encoded(found), base.tag)
    found = replace(found, tag=tag)
    _remember(layout, found)
    _changing(layout).unlink(missing_ok=True)
    return found


def _encoded(manifest: Manifest) -> bytes:
    values = {name: getattr(manifest, name) for name in ("number", "pointers", "published", "refused", "nonce")}
    files = {path: [content.digest, content.size, content.name] for path, content in manifest.files.items()}
    return gzip.compress(json.dumps({**values, "files": files}, ensure_ascii=False).encode(), _LEVEL, mtime=0)


def _follow(bucket: Bucket, layout: Layout, manifest: Manifest) -> None:
    here = _files(layout, manifest.files)
    lacking = {_below(layout, path): content for path, content in manifest.files.items() if here.get(path) != content}
    # A segment that two generations share.
    has = {
        digest: layout.stores / path
        for path, digest in _recorded(layout).items()
        if layout.stores / path not in lacking
    }
    shared = {file: content for file, content in lacking.items() if content.digest in has}
    for file, content in shared.items():
        link(has[content.digest], file)
    download(bucket, {file: lacking[file] for file in lacking.keys() - shared.keys()}, layout.home.parent)
    _remember(layout, manifest)
    for name, text in manifest.pointers.items():
        if name != layout.current.name:
            write_if_other(_place(layout, name), text)
    if text := manifest.pointers.get(layout.current.name, ""):
        write_if_other(layout.current, text)
    _remove_others(layout, manifest)


def write_if_other(path: Path, text: str) -> None:
    """Let a file hold a text; one that does stays as it is."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        with replacing(path) as temporary:
            temporary.write_text(text, encoding="utf-8")


def _remove_others(layout: Layout, manifest: Manifest) -> None:
    """Remove what is of generations that are gone, or of a publication that another one overtook."""
    for file in list(_pointers(layout)):
        if file.name not in manifest.pointers and file != layout.catalog:
            file.unlink()
    used = {layout.stores / path for path in manifest.files}
    folders = {file.parent for file in used}
    for folder in layout.entries(layout.tantivy):  # before all else: by it readers see that their generation is gone
        if folder not in folders:
            remove_tree(folder)
    for path in _paths(layout) - manifest.files.keys():
        (layout.stores / path).unlink(missing_ok=True)


def _files(layout: Layout, known: Mapping[str, Content]) -> dict[str, Content | Path]:
    """The files of the stores by their paths: what each is if it is `known` to be that, or else the file."""
    recorded = _recorded(layout)
    found: dict[str, Content | Path] = {}
    for path in _paths(layout):
        file, content = layout.stores / path, known.get(path)
        is_known = content is not None and (recorded.get(path) or digest_of(file)) == content.digest
        found[path] = content if content is not None and is_known else file
    return found


def _paths(layout: Layout) -> set[str]:
    """All files of the stores but pointers, locks, and what killed writers left half written."""
    pointers = {layout.stores / name for name in (layout.current.name, layout.next.name)}
    found = (file for file in layout.stores.rglob("*") if file.is_file() and file not in pointers)
    return {
        file.relative_to(layout.stores).as_posix()
        for file in found
        if not (file.parent == layout.stores and file in layout.all_previous)
        and file.suffix != ".lock"
        and writer(file) is None
        and not file.name.startswith(".tmp")
    }


def _pointers(layout: Layout) -> Iterator[Path]:
    found = (layout.current, layout.next, layout.catalog, *layout.all_previous)
    yield from (file for file in found if file.is_file())


def _place(layout: Layout, name: str) -> Path:
    return layout.catalog if name == layout.catalog.name else _below(layout, name)


def _record(layout: Layout) -> Path:
    return layout.home / _RECORD


def _changing(layout: Layout) -> Path:
    return layout.home / _CHANGING


def _recorded(layout: Layout) -> dict[str, str]:
    """The hashes of the files that are still those of which they were noted."""
    try:
        noted = json.loads(_record(layout).read_bytes())["files"]
        return {path: digest for path, (digest, *stamp) in noted.items() if stamp == _stamp(layout.stores / path)}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def followed(layout: Layout) -> str | None:
    """The tag of the manifest whose stores a home holds; None where it may hold other ones."""
    if _changing(layout).exists():
        return None
    try:
        tag = json.loads(_record(layout).read_bytes())["tag"]
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return tag if isinstance(tag, str) and layout.current.is_file() else None


def _remember(layout: Layout, manifest: Manifest) -> None:
    """Note which bytes files have, so that they are not read again to find out."""
    noted = {path: [content.digest, *_stamp(layout.stores / path)] for path, content in manifest.files.items()}
    with replacing(_record(layout)) as temporary:
        temporary.write_text(json.dumps({"tag": manifest.tag, "files": noted}), encoding="utf-8")


def _stamp(file: Path) -> list[int]:
    """What changes with each file of a name; a link to one changes its `ctime`, and not its bytes."""
    try:
        found = file.stat()
    except OSError:
        return []
    return [found.st_ino, found.st_size, found.st_mtime_ns]


def _below(layout: Layout, path: str) -> Path:
    """A file below the stores.

    Raises:
        ObjectStoreError: it leads out of them.
    """
    if Path(path).is_absolute() or ".." in Path(path).parts:
        raise ObjectStoreError(f"a manifest names the file {path!r}, which is none of the stores")
    return layout.stores / path
