"""Disk cleanup: removal of orphans, old versions, and erased text.

Erasing leaves no text in the stores that is not published. A store only marks deleted rows, and the previous state is
kept for a rollback. So the published generation is rewritten from its rows, and everything else is removed: older
versions, and the previous and the pending generation, which the next runs rebuild from the tables. Finally, `verify`
searches the files byte by byte for erased text.
"""

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import orjson
import pyarrow as pa

from docindex_dagster.core.errors import ErasureError
from docindex_dagster.core.files import folder_bytes, is_running, reporting_full_disk, sync_new, writer_pid
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive_if_free
from docindex_dagster.core.residue import BREAK, Erased, batches_of, strings
from docindex_dagster.sources import mirror
from docindex_dagster.sources.mirror import remove_path
from docindex_dagster.stores import cleanup, doctor, lance_table, maintenance, packs, row_files, takeover
from docindex_dagster.stores.damage import damaged, reading_stores
from docindex_dagster.stores.generation import Generation, PublishedSource, read_generation, replace_generation
from docindex_dagster.stores.staging import Model, Staged

_IDS = ("chunk_id", "row_hash", "embed_text_hash")
_TEXTS = ("text", "summary")


@dataclass(frozen=True, slots=True)
class Orphan:
    """An unneeded file or folder, the reason, its size in bytes, and whether a run is currently using it."""

    path: Path
    reason: str
    size: int
    is_busy: bool


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A file or folder that seems unneeded, and the locks that protect it while it is in use."""

    path: Path
    reason: str
    locks: tuple[Path, ...] = ()


def orphans(layout: Layout, keys: Collection[str], *, erase: bool = False) -> list[Orphan]:
    """Return what the home contains for no source in `keys`, which are the declared or published sources.

    With `erase`, include caches of texts that may reappear.
    """
    return [orphan for found in _candidates(layout, keys, erase=erase) for orphan in _examine(found, remove=False)]


def prune(layout: Layout, keys: Collection[str], *, keep_previous: bool = True, erase: bool = False) -> list[Orphan]:
    """Remove orphans and compact the stores; return the orphans. The caller must hold the publication lock.

    `keys` must be read under this lock as well: a source declared later is not indexed before the lock is released.
    Orphans that a run is using, such as an unfinished clone, are kept and returned as busy.

    Old rows are removed from the stores, except those of the published generation and, with `keep_previous`, of the
    previous one, for a rollback. Readers of older generations must reopen the index. With `erase`, no unpublished text
    is left in the stores and caches; busy orphans then require another call.

    Raises:
        StoreError: the published generation is unreadable, or it is damaged and the previous one would be removed;
            nothing was removed.
        ErasureError: with `erase`, a file still contains unpublished text.
        FullDiskError: the disk is too full for a second copy of the stores; nothing was removed.
    """
    generation = read_generation(layout)
    if generation is not None and not keep_previous and not erase:
        doctor.check(layout, generation)
    if erase:
        erase_stores(layout)
    else:
        cleanup.compact(layout, keep_previous=keep_previous)
    orphans = [orphan for found in _candidates(layout, keys, erase=erase) for orphan in _examine(found, remove=True)]
    if erase and layout.erased.exists():
        busy = {orphan.path for orphan in orphans if orphan.is_busy}
        verify(layout, Erased.load(layout.erased), spared=busy)
    return orphans


def _candidates(layout: Layout, keys: Collection[str], *, erase: bool) -> list[_Candidate]:
    found = [
        *(_caches(layout) if erase else ()),
        *_orphaned_files(layout, keys),
        *_unfinished_clones(layout),
        *_unused_tables(layout),
        *_stopped_maintenance(layout),
        *_temporary_files(layout),
    ]
    return list({candidate.path: candidate for candidate in found}.values())


def _examine(candidate: _Candidate, *, remove: bool) -> Iterator[Orphan]:
    """Take the locks without waiting; skip paths deleted in the meantime."""
    with ExitStack() as held:
        is_free = all(held.enter_context(exclusive_if_free(lock, "docindex prune")) for lock in candidate.locks)
        if not os.path.lexists(candidate.path):
            return
        orphan = Orphan(candidate.path, candidate.reason, _size(candidate.path), is_busy=not is_free)
        if remove and is_free:
            remove_path(candidate.path)
    yield orphan


def _orphaned_files(layout: Layout, keys: Collection[str]) -> Iterator[_Candidate]:
    """Yield tables, vectors, clones and checkouts of removed sources."""
    needed = {
        *(layout.table(asset, key) for key in keys for asset in layout.assets()),
        *(layout.checkout(key) for key in keys),
        *(layout.repository(key) for key in keys),
        *(layout.cached_vectors(key) for key in keys),
        *(layout.summaries(key) for key in keys),
        *(layout.spilled_vectors(key) for key in keys),
    }
    for folder in layout.folders_by_source():
        for path in layout.entries(folder):
            is_clone_to_be = folder == layout.repositories and mirror.unfinished(path) is not None
            if path not in needed and writer_pid(path) is None and not is_clone_to_be:
                locks = tuple(layout.locks_of(path))
                yield _Candidate(path, "its source is neither declared nor indexed", locks)


def _caches(layout: Layout) -> Iterator[_Candidate]:
    """Yield caches of summaries and vectors for texts that may reappear."""
    for folder in layout.caches():
        for path in layout.entries(folder):
            if writer_pid(path) is None:
                yield _Candidate(path, "it caches results for texts that may reappear", tuple(layout.locks_of(path)))


def _unfinished_clones(layout: Layout) -> Iterator[_Candidate]:
    """Yield unfinished clones, of running or killed runs."""
    for path in layout.entries(layout.repositories):
        repository = mirror.unfinished(path)
        if repository is not None:
            yield _Candidate(path, "this clone is unfinished", (layout.clone_lock(repository),))


def _unused_tables(layout: Layout) -> Iterator[_Candidate]:
    """Yield LanceDB tables that no generation uses."""
    generations = [read_generation(layout), read_generation(layout, previous=True), takeover.pending(layout)]
    tables = {f"{generation.table}.lance" for generation in generations if generation}
    if tables:
        for path in layout.entries(layout.lance):
            if path.name not in tables:
                yield _Candidate(path, "no generation uses it")


def _stopped_maintenance(layout: Layout) -> Iterator[_Candidate]:
    """Yield the table copy of a stopped maintenance."""
    if layout.maintenance.exists():
        yield _Candidate(layout.maintenance, "the maintenance of the stores was stopped", (layout.maintenance_lock,))


def _temporary_files(layout: Layout) -> Iterator[_Candidate]:
    """Yield temporary files of killed writers."""
    for folder in (layout.home, layout.stores, layout.graph, *layout.folders_by_source()):
        for path in layout.entries(folder):
            process = writer_pid(path)
            if process is not None and not is_running(process):
                yield _Candidate(path, "its writer was killed")


def _size(path: Path) -> int:
    if path.is_dir() and not path.is_symlink():
        return folder_bytes(path)
    with suppress(FileNotFoundError):
        return path.lstat().st_size
    return 0


def erase_stores(layout: Layout) -> None:
    """Remove everything from the stores except the rows of the published generation.

    The caller must hold the publication lock. If interrupted, the generation stays published in its old or its new
    form; a second call completes the erasure. Open readers must reopen the index. The erased strings are saved for
    `verify`.

    Raises:
        StoreError: the published generation is unreadable or damaged; nothing was removed.
        FullDiskError: the disk is too full for a second copy of the stores; nothing was removed.
    """
    current = read_generation(layout)
    if current is None:
        return
    doctor.check(layout, current)
    cleanup.stop_maintenance(layout)
    with reading_stores():
        _save_erased(layout, current)
    model = Model(current.model, 0, current.endpoint)
    with reading_stores():
        with Staged.opened(layout, model, current, rewritten=True) as staged:
            staged.go_live(_rewrite_row_files(layout, current), _publish_verified, changed_rows=0)
        with reporting_full_disk(layout.stores):
            lance_table.drop_other_versions(staged.table)
        lance_table.remove_unused(layout, {staged.table.name}, spare_last=False)
        lance_table.remove_unnamed(layout)
    leftovers = [folder for folder in layout.entries(layout.tantivy) if folder != staged.folder]
    if leftovers:
        raise ErasureError(f"cannot remove {leftovers[0]}, which may contain erased text")


def verify(layout: Layout, erased: Erased, *, spared: Collection[Path] = ()) -> tuple[int, int]:
    """Search all files in the home for erased strings; return the number of files searched and of their bytes.

    Clones, checkouts, Dagster's records, domains, feedback and questions are not searched. Erased text that readers of
    the stores and tables still see is not searched for, since it may be part of a published text; its ids are.

    Args:
        layout: of the home with the index.
        erased: the result of `Erased.load` after the erasure.
        spared: files and folders that a run is using, to be removed by a later erasure.

    Raises:
        ErasureError: a file still contains an erased string, or cannot be read.
        StoreError: the stores or tables cannot be read.
    """
    if not erased.is_empty:
        with reading_stores():
            for data in _visible_strings(layout):
                erased.texts.discard(data)
                erased.texts.discard(data.lower())  # the full-text index stores lower case
            erased.ids.discard(BREAK.join(_ids_in_use(layout)))
    unsearched = {
        *(layout.repositories, layout.checkouts, layout.dagster, layout.memory),
        *(layout.feedback, layout.older_feedback, layout.questions, layout.erasure, layout.erased),
        *spared,
    }
    found = erased.search(_files(layout.home, unsearched))
    layout.erased.unlink(missing_ok=True)
    return found


def _files(home: Path, unsearched: Collection[Path]) -> Iterator[Path]:
    """Yield the files in a folder, except some files and folders."""
    for folder, folders, names in os.walk(home):
        folders[:] = [name for name in folders if Path(folder, name) not in unsearched]
        files = (Path(folder, name) for name in names)
        yield from (file for file in files if file.is_file() and file not in unsearched)


def _save_erased(layout: Layout, current: Generation) -> None:
    """Add the strings that are no longer published to those saved by an unfinished erasure."""
    erased = Erased.load(layout.erased)
    published = lance_table.open_for_reading(layout, current.table, current.table_version)
    known = {
        hash(value) for key in current.sources for rows in lance_table.texts(published, key) for value in strings(rows)
    }
    others = lance_table.other_rows(layout, published, (*_IDS, *_TEXTS))
    for rows in chain(others, row_files.batches_on_disk(layout)):
        for windows, columns in ((erased.ids, _IDS), (erased.texts, _TEXTS)):
            for value in _strings_of(rows, columns):
                if hash(value) not in known:
                    windows.add(value)
    if not erased.is_empty:
        erased.save(layout.erased)


def _strings_of(rows: pa.Table | pa.RecordBatch, names: Sequence[str]) -> Iterator[bytes]:
    """Yield the strings in those of the columns that exist."""
    return strings(rows.select([name for name in names if name in rows.schema.names]))


def _visible_strings(layout: Layout) -> Iterator[bytes]:
    """Yield the strings that readers of the stores and tables see, in file order."""
    current = read_generation(layout)
    if current is None:
        return
    table = lance_table.open_for_reading(layout, current.table, current.table_version)
    for rows in lance_table.chunks(table):
        yield b"".join(strings(rows))
        yield b"".join(map(orjson.dumps, rows.to_pylist()))  # the format of the full-text index
    for batch in row_files.batches_on_disk(layout, row_files.names(current) | packs.names(current)):
        yield b"".join(strings(batch))
    for file in (layout.home / "tables").rglob("*.parquet"):
        yield from (b"".join(strings(batch)) for batch in batches_of(file))
    library_files = (layout.tantivy.glob("*/*.json"), layout.lance.glob("*/_versions/*"))
    for file in (layout.current, *chain.from_iterable(library_files)):  # these contain only names and settings
        yield file.read_bytes()


def _ids_in_use(layout: Layout) -> Iterator[bytes]:
    """Yield the ids of chunks that are published, or will be by the next runs."""
    current = read_generation(layout)
    if current is not None:
        table = lance_table.open_for_reading(layout, current.table, current.table_version)
        for rows in lance_table.chunks(table):
            yield from _strings_of(rows, _IDS)
    for file in layout.tables("chunks"):
        for batch in batches_of(file):
            yield from _strings_of(batch, _IDS)


def _rewrite_row_files(layout: Layout, current: Generation) -> dict[str, PublishedSource]:
    """Return the source entries, with new row files and packs that contain nothing else."""
    keys = [key for key, source in current.sources.items() if source.pack is not None]
    packed = maintenance.pack(layout, current, keys, layout.packs)
    if packed:
        sync_new(layout.entries(layout.packs), layout.home.parent)
    return {
        key: replace(source, pack=packed.get(key), rows=row_files.merge_row_files(layout, key, source))
        for key, source in current.sources.items()
    }


def _publish_verified(layout: Layout, generation: Generation) -> None:
    """Publish a generation once its consistency is verified, and discard all others."""
    doctor.check(layout, generation)
    expected = sum(source.chunks for source in generation.sources.values())
    table = lance_table.open_for_reading(layout, generation.table, generation.table_version)
    if table.count_rows() != expected:
        raise damaged(f"LanceDB holds {table.count_rows()} rows, but {expected} are published")
    written = replace(generation, previous="", optimized_version=generation.table_version, changed_rows=0)
    replace_generation(layout, written)
    takeover.drop(layout)
