"""Messages as rows of `chunks`, both for the stores of a domain and for the search of its log.

The rows depend only on the messages, so it makes no difference whether a message was folded.
"""

from collections.abc import Iterable
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.chunking.chunker import Chunker, ChunkOptions, FileDrafts, SourceFile
from docindex_dagster.chunking.chunkers import load_chunker, versions
from docindex_dagster.chunking.documents import SIZES, chunk_messages
from docindex_dagster.chunking.rows import CutFile, FileIdentity, rows
from docindex_dagster.core import tables
from docindex_dagster.core.errors import first_line
from docindex_dagster.core.hashing import digest
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.schemas import CHUNKS, MESSAGE_PATH
from docindex_dagster.core.tokenizer import count_tokens
from docindex_dagster.memory.message import Message

_KIND, _TYPE = "memory", "doc"  # the type of documents, so that concepts are extracted
_TABLE = "chunks"
_CUT_BY = b"docindex.cut_by"  # key in the metadata of the table: the chunker of the messages
_OPTIONS = ChunkOptions(SIZES, SIZES.target)


def path_of(message: Message) -> str:
    """Return the path of a message in the source of its domain; the prefix distinguishes it from file paths."""
    return f"{MESSAGE_PATH}{quote(message.session, safe='')}/{message.id}"


def message_of(path: str) -> str:
    """Return the id of the message at a path."""
    return path.rpartition("/")[2]


def all_rows(home: Layout, domain: str, messages: Iterable[Message], cut_by: str) -> pa.Table:
    """Return the rows of messages, as from `chunk_rows`, reusing those of the last fold.

    Args:
        home: The home of the domain.
        domain: The key of the domain.
        messages: All messages.
        cut_by: The name of the chunker.

    Raises:
        ChunkerError: The chunker is not available.
    """
    wanted = {path_of(message): message for message in messages}
    known = _known(home, domain, cut_by)
    known = known.filter(pc.is_in(known["path"], pa.array(wanted, pa.string())))
    # A client may have reused an id for another text.
    hashes = dict(zip(known["path"].to_pylist(), known["content_hash"].to_pylist(), strict=True))
    new = [message for path, message in wanted.items() if hashes.get(path) != _hash(message)]
    if not new:
        return known
    others = known.filter(pc.invert(pc.is_in(known["path"], pa.array(map(path_of, new), pa.string()))))
    made = pa.concat_tables([others, chunk_rows(domain, new, load_chunker(cut_by))])
    return made.sort_by([("path", "ascending"), ("chunk_index", "ascending")]).combine_chunks()


def keep_rows(home: Layout, domain: str, rows: pa.Table, cut_by: str) -> None:
    """Store the rows of a domain for the next fold, and for the first search.

    Raises:
        FullDiskError: The disk is full.
    """
    version = tables.column_version(rows, "row_hash")
    marked = rows.replace_schema_metadata({_CUT_BY: _identity(cut_by)})
    tables.write(home.table(_TABLE, domain), tables.stamp(marked, version))


def _known(home: Layout, domain: str, cut_by: str) -> pa.Table:
    path = home.table(_TABLE, domain)
    is_same = (tables.metadata_value(path, _CUT_BY) or "").encode() == _identity(cut_by)
    table = tables.read(path) if is_same else None
    if table is None or not table.schema.equals(CHUNKS):
        return CHUNKS.empty_table()
    return table.replace_schema_metadata(None)


def _identity(cut_by: str) -> bytes:
    """Identify a chunker, including the version of its package."""
    return versions([cut_by])[0].encode()


def _hash(message: Message) -> str:
    return digest(message.text.encode())


def chunk_rows(domain: str, messages: Iterable[Message], chunker: Chunker) -> pa.Table:
    """Return the rows of messages, one file per message, sorted by path and position. Blank messages have none."""
    ordered = sorted(messages, key=path_of)
    return rows([_cut(domain, message, chunker) for message in ordered], count_tokens)


def _cut(domain: str, message: Message, chunker: Chunker) -> CutFile:
    path = path_of(message)
    identity = FileIdentity(
        source=domain,
        source_kind=_KIND,
        path=path,
        content_hash=_hash(message),
        source_type=_TYPE,
        language=None,
        commit=None,
        is_uncommitted=False,
    )
    return CutFile(identity, drafts_of(message, chunker))


def drafts_of(message: Message, chunker: Chunker) -> FileDrafts:
    """Return the chunks of a message; if a chunker plugin fails, use the built-in one, and record why."""
    file = SourceFile(path_of(message), message.text)
    try:
        return chunker(file, _OPTIONS)
    except Exception as error:  # noqa: BLE001 may come from another package
        fallback = chunk_messages(file, _OPTIONS)
        return FileDrafts(fallback.drafts, fallback=f"{type(error).__name__}: {first_line(error)}")
