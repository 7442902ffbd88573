"""Folding: moving new messages from the log of a domain into the stores in the domain's home.

The generation names the file of its messages, and this file records how far the log was folded. So a message is either
in the generation or in the tail of the log, never in both or neither, whenever a process is killed.

If messages were forgotten, the fold ends with an erasure, after which no file of the home contains any of them. A
marker file lets the next fold finish an interrupted erasure. Freed disk blocks and backups are out of reach.
"""

import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import orjson
import pyarrow.compute as pc

from docindex_dagster.core import tables
from docindex_dagster.core.access import writable_home
from docindex_dagster.core.errors import (
    AccessError,
    DamagedStoreError,
    DomainError,
    ErasureError,
    FullDiskError,
    LogError,
    PluginError,
    SettingsError,
    StoreError,
)
from docindex_dagster.core.files import atomic_write, stamp, sync
from docindex_dagster.core.hashing import digest, digest_parts
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive
from docindex_dagster.core.residue import Erased, batches_of, strings
from docindex_dagster.core.safe_text import command
from docindex_dagster.core.settings import Settings
from docindex_dagster.core.traces import span
from docindex_dagster.embedding.build import build_embeddings
from docindex_dagster.embedding.protocol import Embedder
from docindex_dagster.embedding.providers import shared_embedder
from docindex_dagster.graph import extraction
from docindex_dagster.graph.extraction import Extraction, GraphPlan
from docindex_dagster.graph.source_graph import CONCEPT
from docindex_dagster.memory import domains
from docindex_dagster.memory.chunks import all_rows, keep_rows
from docindex_dagster.memory.concepts import with_fallback, with_follows
from docindex_dagster.memory.folded_messages import (
    Folded,
    offsets_of,
    oldest_of,
    read_folded,
    remove_unused,
    write_folded,
)
from docindex_dagster.memory.log import Log, open_log
from docindex_dagster.memory.message import (
    Entry,
    Message,
    Offsets,
    StoredMessage,
    Tombstone,
    current_messages,
    retention_start,
)
from docindex_dagster.memory.results import Folding, Receipt
from docindex_dagster.memory.segments import Segments
from docindex_dagster.stores import maintenance, prune
from docindex_dagster.stores.generation import read_generation
from docindex_dagster.stores.publish import Publication, publish
from docindex_dagster.stores.rows import SourceRows
from docindex_dagster.stores.staging import Model

_EMBEDDINGS = "embeddings"
_MICROSECONDS = 1_000_000  # per second
_A_DAY_S = 86_400  # grace period for expired messages, so that a domain is not folded for each of them
# These errors name only files, keys and numbers. Extractors, chunkers and model APIs may quote their input.
_SAFE_ERRORS = (AccessError, DomainError, FullDiskError, LogError, PluginError, SettingsError, StoreError)
_ignore: Callable[[str], None] = lambda _: None  # noqa: E731


def why_due(settings: Settings, domain: str, *, now: Callable[[], float] = time.time) -> str | None:
    """Return why a domain should be folded now, or None if it is not due.

    Raises:
        DomainError: The key is invalid.
        LogError: The log cannot be read.
    """
    home = domains.home(Layout(settings.home), domain)
    log = open_log(Layout(settings.home), domain)
    tail = log.read(offsets_of(home, domain) or Offsets()).entries
    if _is_erasure_unfinished(home) or any(isinstance(entry.record, Tombstone) for entry in tail):
        return "an erasure is pending"
    if len(tail) >= settings.memory.fold_messages:
        return f"{len(tail):,} unfolded messages"
    waits_s = now() - tail[0].record.at / _MICROSECONDS if tail else 0
    if waits_s >= settings.memory.fold_minutes * 60:
        return f"the oldest of {len(tail):,} unfolded messages is {waits_s / 60:.0f} minutes old"
    since = retention_start(settings.memory.retention_days, int((now() - _A_DAY_S) * _MICROSECONDS))
    if since and (oldest_of(home, domain) or since) < since:
        return "messages are older than memory.retention_days"
    return None


def state_of(home: Layout) -> str:
    """Return a hash that changes whenever something is written, folded or erased in the domain with this home.

    It uses only the names and sizes of files, and takes less than a millisecond.

    Raises:
        LogError: The folder of the log is a symbolic link.
    """
    sizes = sorted(Segments(home).sizes().items())
    return digest_parts(repr(sizes), repr(stamp(home.current)), str(_is_erasure_unfinished(home)))


def fold(
    settings: Settings,
    domain: str,
    *,
    embedder: Embedder | None = None,
    on_wait: Callable[[str], None] = _ignore,
    erase: bool = False,
) -> Folding:
    """Fold a domain, after waiting for other folds of it; with `erase`, delete all unpublished data.

    Raises:
        DomainError: The key is invalid.
        LogError: The log cannot be read.
        StoreError: The folded messages cannot be read.
        EmbeddingError: The provider failed; the published data is kept.
        ChunkerError: The configured chunker is not available.
        FullDiskError: The disk is full; the published data is kept.
    """
    started_at = time.monotonic()
    with writable_home(settings) as layout, span("memory.fold"):
        home = domains.home(layout, domain)
        owner = f"{domain} of process {os.getpid()}"
        with exclusive(home.source_lock(domain), owner, on_wait):
            with exclusive(home.publication_lock, owner, on_wait):
                run = _Run(settings, domain, home, open_log(layout, domain), embedder)
                done = run.fold(erase=erase)
            # Under the first lock, because an erasure would find forgotten messages in the copy.
            maintenance.bring_up_to_date(home)
    return replace(done, seconds=time.monotonic() - started_at)


@dataclass(frozen=True, slots=True)
class _Run:
    """One fold, which holds the locks of its domain."""

    settings: Settings
    domain: str
    home: Layout
    log: Log
    embedder: Embedder | None

    def fold(self, *, erase: bool) -> Folding:
        before = read_folded(self.home, self.domain)
        cut = self.log.cut()
        with span("memory.read"):
            read = self.log.read(before.offsets, cut)
        since = retention_start(self.settings.memory.retention_days, time.time_ns() // 1000)
        messages = current_messages(before.messages, read.entries, since)
        known = _stored_ids(before, read.entries)
        current = {each.message.id for each in messages}
        has_tombstones = any(isinstance(entry.record, Tombstone) for entry in read.entries)
        must_erase = erase or _is_erasure_unfinished(self.home) or has_tombstones or not known.issubset(current)
        if must_erase:
            _begin_erasure(self.home, known, current)
        is_new = bool(read.entries) or messages != list(before.messages)
        warnings = self._publish(messages, cut) if is_new else []
        receipt = None
        if must_erase:
            with span("memory.erase"):
                receipt = _finish_erasure(self.home, self.domain, self.log, cut)
        else:
            self._remove_folded()
        old, new = ({each.message.id for each in found} for found in (before.messages, messages))
        generation = read_generation(self.home)
        source = generation.sources.get(self.domain) if generation else None
        return Folding(
            self.domain,
            len(messages),
            len(new - old),
            len(old - new),
            chunks=source.chunks if source else 0,
            concepts=_concepts_of(extraction.read(self.home, self.domain)),
            edges=source.edges if source else 0,
            generation=generation.number if generation else None,
            version=source.version if source else "",
            warnings=tuple(warnings),
            receipt=receipt,
        )

    def _publish(self, messages: Sequence[StoredMessage], cut: Offsets) -> list[str]:
        """Publish all messages up to a cut, and return warnings."""
        embedder = self.embedder or shared_embedder(self.settings.embedding)
        plan, warning = with_fallback(self.settings)
        plain_messages = [each.message for each in messages]
        with span("memory.chunk", count=len(plain_messages)):
            cut_by = self.settings.memory.chunker
            chunks = all_rows(self.home, self.domain, plain_messages, cut_by)
            keep_rows(self.home, self.domain, chunks, cut_by)
        with span("memory.embed"):
            table = self.home.table(_EMBEDDINGS, self.domain)
            embeddings = build_embeddings(chunks, tables.read(table), embedder, self.domain).table
            tables.write(table, embeddings)
        with span("memory.graph"):
            before = extraction.read(self.home, self.domain)
            extracted = extraction.extract(self.home, self.domain, chunks, None, plan=plan, previous=before)
            extraction.write(self.home, self.domain, extracted)
            graph = with_follows(extracted.graph, plain_messages) if extracted.graph else None
        revision = write_folded(self.home, messages, cut)
        complete = replace(
            extracted, graph=graph, references=revision
        )  # its edges also depend on the order of messages
        rows = SourceRows(self.domain, chunks, embeddings, complete, revision)
        with span("memory.publish"):
            found = _publish(self.home, rows, Model.of(embedder), plan)
        remove_unused(self.home, self.domain)
        return [each for each in (warning, extracted.missing, *found.warnings) if each]

    def _remove_folded(self) -> None:
        """Remove the log segments that the previous generation also contains, so that a rollback stays possible."""
        current = offsets_of(self.home, self.domain)
        if current is None:
            return
        has_previous = read_generation(self.home, previous=True) is not None
        previous = offsets_of(self.home, self.domain, previous=True) if has_previous else current
        if previous is not None:
            ends = {segment: min(end, previous.end(segment)) for segment, end in current.ends.items()}
            self.log.remove(Offsets(ends))


def _stored_ids(before: Folded, entries: Sequence[Entry]) -> set[str]:
    """Return the ids of all messages in files."""
    written = [entry.record for entry in entries if isinstance(entry.record, Message)]
    return {each.id for each in (*written, *(each.message for each in before.messages))}


def _concepts_of(extracted: Extraction | None) -> int:
    if extracted is None or extracted.graph is None:
        return 0
    return pc.sum(pc.equal(extracted.graph.nodes["type"], CONCEPT), min_count=0).as_py() or 0


def _publish(home: Layout, rows: SourceRows, model: Model, plan: GraphPlan) -> Publication:
    """Publish; rebuild damaged stores from the rows, which are complete."""
    try:
        return publish(home, rows, model, plan=plan)
    except DamagedStoreError:
        return publish(home, rows, model, plan=plan, force=True)


def is_wordless(error: BaseException) -> bool:
    """Return whether an error text contains no text of messages, so that it may be recorded; records are permanent."""
    return isinstance(error, _SAFE_ERRORS)


def reason(error: BaseException, key: str) -> str:
    """Return why a domain could not be folded, in a form that may be recorded."""
    if is_wordless(error):
        return str(error)
    command_line = command("docindex", "memory", "fold", "--domain", key)
    return f"{type(error).__name__}: details may quote messages and are not recorded: run {command_line} to see them"


def _is_erasure_unfinished(home: Layout) -> bool:
    """Return whether an erasure was started but not finished."""
    return home.erasure.exists()


def _begin_erasure(home: Layout, gone: Collection[str], current: Collection[str]) -> None:
    """Record on disk the messages to erase, by id, in addition to those of an interrupted erasure.

    Ids of current messages are excluded, because forgotten messages may have been written again.
    """
    with atomic_write(home.erasure) as temporary:
        temporary.write_bytes(orjson.dumps(sorted({*gone, *_interrupted_ids(home)}.difference(current))))


def _finish_erasure(home: Layout, domain: str, log: Log, folded: Offsets) -> Receipt:
    """Erase everything that is not in the published generation. The caller holds the locks of the domain.

    Args:
        home: The home of the domain.
        domain: The key of the domain.
        log: The log of the domain.
        folded: How far the log was folded; later records are kept.

    Raises:
        ErasureError: A file still contains forgotten data; the next fold tries again.
        FullDiskError: The disk has no space for a second copy of the stores.
    """
    _save_erased(home, domain, log)
    prune.erase_stores(home)
    remove_unused(home, domain)
    log.remove(folded)
    remaining = log.read()
    if any(folded.end(segment) for segment in remaining.offsets.ends):
        raise ErasureError(f"an older docindex process still writes to {home.log}: stop it, then erase again")
    written_again = {entry.record.id for entry in remaining.entries if isinstance(entry.record, Message)}
    gone = set(_interrupted_ids(home)) - written_again
    files, size = prune.verify(home, _load_erased(home, log, gone))
    generation = read_generation(home)
    receipt = Receipt(
        domain,
        tuple(sorted(digest(each.encode()) for each in gone)),
        generation.number if generation else None,
        files,
        size,
        datetime.now(UTC).isoformat(timespec="seconds"),
    )
    with home.receipts.open("ab") as file:
        file.write(orjson.dumps(receipt, option=orjson.OPT_APPEND_NEWLINE))
    sync([home.receipts])
    home.erasure.unlink()
    return receipt


def _save_erased(home: Layout, domain: str, log: Log) -> None:
    """Add the texts that are not in the published generation to those that an unfinished erasure saved."""
    erased = Erased.load(home.erased)
    published = {each.message.text.encode() for each in read_folded(home, domain).messages}
    for text in _texts(home, log):
        if text not in published:
            erased.texts.add(text)
    erased.save(home.erased)


def _load_erased(home: Layout, log: Log, gone: Collection[str]) -> Erased:
    """Return the ids of erased messages, and the saved texts except those that are kept."""
    erased = Erased.load(home.erased)
    for message_id in gone:
        erased.ids.add(message_id.encode())
    for text in _texts(home, log):
        erased.texts.discard(text)
        erased.texts.discard(orjson.dumps(text.decode()))
    return erased


def _texts(home: Layout, log: Log) -> Iterator[bytes]:
    """Yield the texts of all messages, in files and in the log."""
    for file in home.messages.glob("*"):
        for batch in batches_of(file):
            yield from strings(batch.select(["text"]))
    for entry in log.read().entries:
        if isinstance(entry.record, Message):
            yield entry.record.text.encode()


def _interrupted_ids(home: Layout) -> list[str]:
    """Return the ids that an interrupted erasure was to erase."""
    try:
        found: Any = orjson.loads(home.erasure.read_bytes())
    except (OSError, ValueError):
        return []
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []
