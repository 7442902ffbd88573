"""Folding: what the log of a domain has since the last fold goes into the stores of the domain's home.

The generation names the file of its messages, and that says how far the log was folded. So a message is in the
generation or in the tail of the log, never in both and never in neither, wherever a process is killed.

If something was forgotten, the fold ends with an erasure, after which no file of the home holds any of it. A marker
file lets the next fold finish an erasure that was interrupted. Freed disk blocks and backups are out of reach.
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
from docindex_dagster.core.access import writing
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
from docindex_dagster.core.files import replacing, stamp, sync
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
from docindex_dagster.memory.message import Entry, Message, Offsets, Tombstone, Written, contents, oldest
from docindex_dagster.memory.results import Folding, Receipt
from docindex_dagster.memory.segments import Segments
from docindex_dagster.stores import maintenance, prune
from docindex_dagster.stores.generation import read_generation
from docindex_dagster.stores.publish import Publication, publish
from docindex_dagster.stores.rows import SourceRows
from docindex_dagster.stores.staging import Model

_EMBEDDINGS = "embeddings"
_MICROSECONDS = 1_000_000  # of a second
_A_DAY_S = 86_400  # for which messages that are too old may wait, so that a domain is not folded for each of them
# They name files, keys and numbers. An extractor, a chunker or the API of a model may quote what it was given.
_WORDLESS = (AccessError, DomainError, FullDiskError, LogError, PluginError, SettingsError, StoreError)
_ignore: Callable[[str], None] = lambda _: None  # noqa: E731


def why_due(settings: Settings, domain: str, *, now: Callable[[], float] = time.time) -> str | None:
    """Why a domain should be folded now; None where it need not be.

    Raises:
        DomainError: the key is none.
        LogError: the log cannot be read.
    """
    home = domains.home(Layout(settings.home), domain)
    log = open_log(Layout(settings.home), domain)
    tail = log.read(offsets_of(home, domain) or Offsets()).entries
    if _is_erasure_unfinished(home) or any(isinstance(entry.record, Tombstone) for entry in tail):
        return "something is to be erased"
    if len(tail) >= settings.memory.fold_messages:
        return f"{len(tail):,} messages wait"
    waits_s = now() - tail[0].record.at / _MICROSECONDS if tail else 0
    if waits_s >= settings.memory.fold_minutes * 60:
        return f"the oldest of {len(tail):,} messages waits for {waits_s / 60:.0f} minutes"
    since = oldest(settings.memory.retention_days, int((now() - _A_DAY_S) * _MICROSECONDS))
    if since and (oldest_of(home, domain) or since) < since:
        return "messages are older than memory.retention_days"
    return None


def state_of(home: Layout) -> str:
    """A hash that changes once something was written, folded or erased in the domain whose home this is.

    It looks at names and sizes of files alone, in less than a millisecond.

    Raises:
        LogError: the folder of the log is a symbolic link.
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
    """Fold a domain, waiting for another fold of it; with `erase`, let nothing stay that is not published.

    Raises:
        DomainError: the key is none.
        LogError: the log cannot be read.
        StoreError: what was folded before cannot be read.
        EmbeddingError: the provider failed; what was published stays.
        ChunkerError: the chunker of the settings is not there.
        FullDiskError: there is no space left; what was published stays.
    """
    began = time.monotonic()
    with writing(settings) as layout, span("memory.fold"):
        home = domains.home(layout, domain)
        owner = f"{domain} of process {os.getpid()}"
        with exclusive(home.source_lock(domain), owner, on_wait):
            with exclusive(home.publication_lock, owner, on_wait):
                run = _Run(settings, domain, home, open_log(layout, domain), embedder)
                done = run.fold(erase=erase)
            # Under the first lock, since an erasure would find what is to be forgotten in the copy.
            maintenance.bring_up_to_date(home)
    return replace(done, seconds=time.monotonic() - began)


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
        since = oldest(self.settings.memory.retention_days, time.time_ns() // 1000)
        messages = contents(before.messages, read.entries, since)
        known = _known(before, read.entries)
        there = {each.message.id for each in messages}
        is_something_forgotten = any(isinstance(entry.record, Tombstone) for entry in read.entries)
        erases = erase or _is_erasure_unfinished(self.home) or is_something_forgotten or not known.issubset(there)
        if erases:
            _begin_erasure(self.home, known, there)
        is_new = bool(read.entries) or messages != list(before.messages)
        warnings = self._publish(messages, cut) if is_new else []
        receipt = None
        if erases:
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

    def _publish(self, messages: Sequence[Written], cut: Offsets) -> list[str]:
        """Publish messages, which are all up to a cut; returns warnings."""
        embedder = self.embedder or shared_embedder(self.settings.embedding)
        plan, warning = with_fallback(self.settings)
        spoken = [each.message for each in messages]
        with span("memory.chunk", count=len(spoken)):
            cut_by = self.settings.memory.chunker
            chunks = all_rows(self.home, self.domain, spoken, cut_by)
            keep_rows(self.home, self.domain, chunks, cut_by)
        with span("memory.embed"):
            table = self.home.table(_EMBEDDINGS, self.domain)
            embeddings = build_embeddings(chunks, tables.read(table), embedder, self.domain).table
            tables.write(table, embeddings)
        with span("memory.graph"):
            before = extraction.read(self.home, self.domain)
            made = extraction.extract(self.home, self.domain, chunks, None, plan=plan, previous=before)
            extraction.write(self.home, self.domain, made)
            graph = with_follows(made.graph, spoken) if made.graph else None
        revision = write_folded(self.home, messages, cut)
        whole = replace(made, graph=graph, references=revision)  # its edges come from what was said in which order, too
        rows = SourceRows(self.domain, chunks, embeddings, whole, revision)
        with span("memory.publish"):
            found = _publish(self.home, rows, Model.of(embedder), plan)
        remove_unused(self.home, self.domain)
        return [each for each in (warning, made.missing, *found.warnings) if each]

    def _remove_folded(self) -> None:
        """Remove the segments of the log that the generation before holds, too, so that one can go back to it."""
        current = offsets_of(self.home, self.domain)
        if current is None:
            return
        has_previous = read_generation(self.home, previous=True) is not None
        previous = offsets_of(self.home, self.domain, previous=True) if has_previous else current
        if previous is not None:
            ends = {segment: min(end, previous.end(segment)) for segment, end in current.ends.items()}
            self.log.remove(Offsets(ends))


def _known(before: Folded, entries: Sequence[Entry]) -> set[str]:
    """The ids of all messages that are in files."""
    written = [entry.record for entry in entries if isinstance(entry.record, Message)]
    return {each.id for each in (*written, *(each.message for each in before.messages))}


def _concepts_of(made: Extraction | None) -> int:
    if made is None or made.graph is None:
        return 0
    return pc.sum(pc.equal(made.graph.nodes["type"], CONCEPT), min_count=0).as_py() or 0


def _publish(home: Layout, rows: SourceRows, model: Model, plan: GraphPlan) -> Publication:
    """Publish; stores that are damaged are built anew from the rows, which are all that there is."""
    try:
        return publish(home, rows, model, plan=plan)
    except DamagedStoreError:
        return publish(home, rows, model, plan=plan, force=True)


def is_wordless(error: BaseException) -> bool:
    """Whether what an error says holds no word of a message, and may be recorded: records cannot be erased."""
    return isinstance(error, _WORDLESS)


def reason(error: BaseException, key: str) -> str:
    """Why a domain could not be folded, as it may be recorded."""
    if is_wordless(error):
        return str(error)
    again = command("docindex", "memory", "fold", "--domain", key)
    return f"{type(error).__name__}: what it says may quote messages, and is not recorded: {again} shows it"


def _is_erasure_unfinished(home: Layout) -> bool:
    """Whether an erasure was begun and not ended."""
    return home.erasure.exists()


def _begin_erasure(home: Layout, gone: Collection[str], there: Collection[str]) -> None:
    """Say on the disk that messages with these ids are to be erased, besides those of an erasure that was stopped.

    But for those that are there: what was forgotten may have been written again.
    """
    with replacing(home.erasure) as temporary:
        temporary.write_bytes(orjson.dumps(sorted({*gone, *_begun(home)}.difference(there))))


def _finish_erasure(home: Layout, domain: str, log: Log, folded: Offsets) -> Receipt:
    """Erase all that is not in the published generation. The caller holds the locks of the domain.

    Args:
        home: of the domain.
        domain: its key.
        log: its log.
        folded: how far it was folded; what came later stays.

    Raises:
        ErasureError: a file still holds some of it; the next fold tries again.
        FullDiskError: there is no space for a second copy of the stores.
    """
    _save_erased(home, domain, log)
    prune.erase_stores(home)
    remove_unused(home, domain)
    log.remove(folded)
    left = log.read()
    if any(folded.end(segment) for segment in left.offsets.ends):
        raise ErasureError(f"an older docindex still writes into {home.log}: end that process, then erase again")
    written_again = {entry.record.id for entry in left.entries if isinstance(entry.record, Message)}
    gone = set(_begun(home)) - written_again
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
    """Add the texts that are not in the published generation to what an unfinished erasure saved."""
    erased = Erased.load(home.erased)
    published = {each.message.text.encode() for each in read_folded(home, domain).messages}
    for text in _texts(home, log):
        if text not in published:
            erased.texts.add(text)
    erased.save(home.erased)


def _load_erased(home: Layout, log: Log, gone: Collection[str]) -> Erased:
    """Return the ids of messages that are gone, and what was saved but for what stays."""
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


def _begun(home: Layout) -> list[str]:
    """The ids that an erasure which was stopped was to erase."""
    try:
        found: Any = orjson.loads(home.erasure.read_bytes())
    except (OSError, ValueError):
        return []
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []
