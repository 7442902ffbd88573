"""Giving back disk space: what nothing needs any more, and what the stores keep only until it is cleaned up.

Erasing leaves nothing in the stores of a text that is not published any more. A store that takes a row out only marks
it as deleted, and what was published before stays for a rollback. So the published generation is written anew from its
rows, and all else goes: older versions, the generation before it, and one that is to take over, which the next runs
make again from the tables. At the end, `verify` searches the files for what was erased, byte by byte.
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
from docindex_dagster.core.files import folder_bytes, is_running, reporting_full_disk, sync_new, writer
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive_if_free
from docindex_dagster.core.residue import BREAK, Erased, batches_of, strings
from docindex_dagster.sources import mirror
from docindex_dagster.sources.mirror import dispose
from docindex_dagster.stores import cleanup, doctor, lance_table, maintenance, packs, row_files, takeover
from docindex_dagster.stores.damage import damaged, reading_stores
from docindex_dagster.stores.generation import Generation, PublishedSource, read_generation, replace_generation
from docindex_dagster.stores.staging import Model, Staged

_IDS = ("chunk_id", "row_hash", "embed_text_hash")
_TEXTS = ("text", "summary")


@dataclass(frozen=True, slots=True)
class Orphan:
    """A file or folder that nothing needs, why, its size in bytes, and whether a run that uses it now keeps it."""

    path: Path
    reason: str
    size: int
    is_busy: bool


@dataclass(frozen=True, slots=True)
class _Candidate:
    """What seems to be needed by nothing, and the locks without which it may be in use."""

    path: Path
    reason: str
    locks: tuple[Path, ...] = ()


def orphans(layout: Layout, keys: Collection[str], *, erase: bool = False) -> list[Orphan]:
    """What lies below the home and belongs to no source of `keys`, which are those that are declared or published.

    With `erase`, also what is kept for texts that may come back.
    """
    return [orphan for found in _candidates(layout, keys, erase=erase) for orphan in _examine(found, remove=False)]


def prune(layout: Layout, keys: Collection[str], *, keep_previous: bool = True, erase: bool = False) -> list[Orphan]:
    """Remove orphans and compact the stores; returns the orphans. The caller holds the publication lock.

    `keys` were read under it, too: nothing of a source that is declared later is indexed before it is free. What a run
    works with now, such as a clone that is being made, stays, and is returned as busy.

    Old rows go from the stores but for those of the published generation and, with `keep_previous`, of the one before
    it, so that a rollback stays possible. A reader that is open on an older generation has to open anew. With `erase`
    nothing stays of a text that is not published any more, neither in the stores nor in what is kept for texts that may
    come back; what is busy then has to be pruned again.

    Raises:
        StoreError: what is published cannot be read, or is damaged while the generation before it, which may not be, is
            to go; nothing was removed.
        ErasureError: with `erase`, a file still holds text that is not published any more.
        FullDiskError: there is no space for a second copy of the stores; nothing was removed.
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
        *(_of_texts_that_are_gone(layout) if erase else ()),
        *_of_no_source(layout, keys),
        *_unfinished_clones(layout),
        *_of_no_generation(layout),
        *_of_stopped_maintenance(layout),
        *_of_dead_processes(layout),
    ]
    return list({candidate.path: candidate for candidate in found}.values())


def _examine(found: _Candidate, *, remove: bool) -> Iterator[Orphan]:
    """Take the locks without waiting; what was deleted meanwhile was no orphan."""
    with ExitStack() as held:
        is_free = all(held.enter_context(exclusive_if_free(lock, "docindex prune")) for lock in found.locks)
        if not os.path.lexists(found.path):
            return
        orphan = Orphan(found.path, found.reason, _size(found.path), is_busy=not is_free)
        if remove and is_free:
            dispose(found.path)
    yield orphan


def _of_no_source(layout: Layout, keys: Collection[str]) -> Iterator[_Candidate]:
    """Tables, vectors, clones and checkouts of sources that are gone."""
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
            if path not in needed and writer(path) is None and not is_clone_to_be:
                locks = tuple(layout.locks_of(path))
                yield _Candidate(path, "its source is neither declared nor indexed", locks)


def _of_texts_that_are_gone(layout: Layout) -> Iterator[_Candidate]:
    """Summaries, and vectors, that save asking for them again should their texts come back."""
    for folder in layout.caches():
        for path in layout.entries(folder):
            if writer(path) is None:
                yield _Candidate(path, "it is kept for texts that may come back", tuple(layout.locks_of(path)))


def _unfinished_clones(layout: Layout) -> Iterator[_Candidate]:
    """Clones that are being made, under a lock, or that were when their run was killed."""
    for path in layout.entries(layout.repositories):
        repository = mirror.unfinished(path)
        if repository is not None:
            yield _Candidate(path, "this clone was never finished", (layout.clone_lock(repository),))


def _of_no_generation(layout: Layout) -> Iterator[_Candidate]:
    """LanceDB tables of models that no generation uses."""
    generations = [read_generation(layout), read_generation(layout, previous=True), takeover.pending(layout)]
    tables = {f"{generation.table}.lance" for generation in generations if generation}
    if tables:
        for path in layout.entries(layout.lance):
            if path.name not in tables:
                yield _Candidate(path, "no generation uses it")


def _of_stopped_maintenance(layout: Layout) -> Iterator[_Candidate]:
    """The copy of a table that was not put in its place."""
    if layout.maintenance.exists():
        yield _Candidate(layout.maintenance, "the maintenance of the stores was stopped", (layout.maintenance_lock,))


def _of_dead_processes(layout: Layout) -> Iterator[_Candidate]:
    """Temporary files of writers that were killed."""
    for folder in (layout.home, layout.stores, layout.graph, *layout.folders_by_source()):
        for path in layout.entries(folder):
            process = writer(path)
            if process is not None and not is_running(process):
                yield _Candidate(path, "its writer was killed")


def _size(path: Path) -> int:
    if path.is_dir() and not path.is_symlink():
        return folder_bytes(path)
    with suppress(FileNotFoundError):
        return path.lstat().st_size
    return 0


def erase_stores(layout: Layout) -> None:
    """Leave nothing in the stores but the rows of the published generation. The caller holds the publication lock.

    Stopped anywhere, it leaves the generation published, in its old form or its new one; a second call does the rest. A
    reader that is open has to open anew. What is erased is saved for `verify`.

    Raises:
        StoreError: what is published cannot be read, or is damaged; nothing was removed.
        FullDiskError: there is no space for a second copy of the stores; nothing was removed.
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
            staged.go_live(_written_anew(layout, current), _publish_alone, changed_rows=0)
        with reporting_full_disk(layout.stores):
            lance_table.drop_other_versions(staged.table)
        lance_table.remove_unused(layout, {staged.table.name}, spare_last=False)
        lance_table.remove_unnamed(layout)
    left = [folder for folder in layout.entries(layout.tantivy) if folder != staged.folder]
    if left:
        raise ErasureError(f"{left[0]} cannot be removed; it may hold what was to be erased")


def verify(layout: Layout, erased: Erased, *, spared: Collection[Path] = ()) -> tuple[int, int]:
    """Search all files below the home for what was erased; return how many there are, and their bytes.

    Clones, checkouts, Dagster's record, domains, feedback and questions are not searched. Of what readers of the stores
    and tables show, ids alone are: a text may occur in one that stays.

    Args:
        layout: where the index lives.
        erased: what `Erased.load` found after the erasure.
        spared: files and folders that a run uses, and that another erasure will remove.

    Raises:
        ErasureError: a file still holds some of it, or cannot be read.
        StoreError: the stores or tables cannot be read.
    """
    if not erased.is_empty:
        with reading_stores():
            for data in _shown(layout):
                erased.texts.discard(data)
                erased.texts.discard(data.lower())  # as the full-text index has it
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
    """Yield the files below a folder, but for some files and folders."""
    for folder, folders, names in os.walk(home):
        folders[:] = [name for name in folders if Path(folder, name) not in unsearched]
        files = (Path(folder, name) for name in names)
        yield from (file for file in files if file.is_file() and file not in unsearched)


def _save_erased(layout: Layout, current: Generation) -> None:
    """Add what is not published any more to what an unfinished erasure saved."""
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
    """Yield the strings of those of some columns that rows have."""
    return strings(rows.select([name for name in names if name in rows.schema.names]))


def _shown(layout: Layout) -> Iterator[bytes]:
    """Yield the strings that readers of the stores and tables see, in the order in which files hold them."""
    current = read_generation(layout)
    if current is None:
        return
    table = lance_table.open_for_reading(layout, current.table, current.table_version)
    for rows in lance_table.chunks(table):
        yield b"".join(strings(rows))
        yield b"".join(map(orjson.dumps, rows.to_pylist()))  # as the full-text index stores them
    for batch in row_files.batches_on_disk(layout, row_files.names(current) | packs.names(current)):
        yield b"".join(strings(batch))
    for file in (layout.home / "tables").rglob("*.parquet"):
        yield from (b"".join(strings(batch)) for batch in batches_of(file))
    of_libraries = (layout.tantivy.glob("*/*.json"), layout.lance.glob("*/_versions/*"))
    for file in (layout.current, *chain.from_iterable(of_libraries)):  # these hold names and settings alone
        yield file.read_bytes()


def _ids_in_use(layout: Layout) -> Iterator[bytes]:
    """Yield the ids of the chunks that are published, or will be by the next runs."""
    current = read_generation(layout)
    if current is not None:
        table = lance_table.open_for_reading(layout, current.table, current.table_version)
        for rows in lance_table.chunks(table):
            yield from _strings_of(rows, _IDS)
    for file in layout.tables("chunks"):
        for batch in batches_of(file):
            yield from _strings_of(batch, _IDS)


def _written_anew(layout: Layout, current: Generation) -> dict[str, PublishedSource]:
    """The sources, with files and packs that hold nothing else."""
    keys = [key for key, source in current.sources.items() if source.pack is not None]
    packed = maintenance.pack(layout, current, keys, layout.packs)
    if packed:
        sync_new(layout.entries(layout.packs), layout.home.parent)
    return {
        key: replace(source, pack=packed.get(key), rows=row_files.alone(layout, key, source))
        for key, source in current.sources.items()
    }


def _publish_alone(layout: Layout, generation: Generation) -> None:
    """Publish a generation, once it is known to be whole, and give up all others."""
    doctor.check(layout, generation)
    expected = sum(source.chunks for source in generation.sources.values())
    table = lance_table.open_for_reading(layout, generation.table, generation.table_version)
    if table.count_rows() != expected:
        raise damaged(f"LanceDB holds {table.count_rows()} rows of {expected} that are published")
    written = replace(generation, previous="", optimized_version=generation.table_version, changed_rows=0)
    replace_generation(layout, written)
    takeover.drop(layout)
