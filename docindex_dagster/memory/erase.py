"""Erasing: of what was forgotten, no file of the home of its domain holds anything.

It is the end of a fold, which has published what stays. A file says that it was begun, so that the next fold ends an
erasure that was stopped anywhere. Blocks of a disk that files had before, and back-ups, are out of reach.
"""

from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from typing import Any

import orjson

from docindex_dagster.core.errors import ErasureError
from docindex_dagster.core.files import replacing, sync
from docindex_dagster.core.hashing import digest
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.residue import Erased, batches_of, strings
from docindex_dagster.memory.folded import read_folded, remove_unused
from docindex_dagster.memory.log import Log
from docindex_dagster.memory.message import Message, Offsets
from docindex_dagster.memory.results import Receipt
from docindex_dagster.stores import prune
from docindex_dagster.stores.generation import read_generation


def is_unfinished(home: Layout) -> bool:
    """Whether an erasure was begun and not ended."""
    return home.erasure.exists()


def begin(home: Layout, gone: Collection[str], there: Collection[str]) -> None:
    """Say on the disk that messages with these ids are to be erased, besides those of an erasure that was stopped.

    But for those that are there: what was forgotten may have been written again.
    """
    with replacing(home.erasure) as temporary:
        temporary.write_bytes(orjson.dumps(sorted({*gone, *_begun(home)}.difference(there))))


def finish(home: Layout, domain: str, log: Log, folded: Offsets) -> Receipt:
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
