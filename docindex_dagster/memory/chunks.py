"""Messages as rows of `chunks`: what the stores hold of a domain, and what a search of its log looks at.

They are a function of the messages alone, so that it makes no difference whether a message was folded.
"""

from collections.abc import Iterable
from urllib.parse import quote

import pyarrow as pa

from docindex_dagster.chunking.chunker import Chunker, ChunkOptions, FileDrafts, SourceFile
from docindex_dagster.chunking.messages import SIZES, chunk_messages
from docindex_dagster.chunking.rows import CutFile, FileIdentity, rows
from docindex_dagster.core.errors import first_line
from docindex_dagster.core.hashing import digest
from docindex_dagster.core.schemas import MESSAGE_PATH
from docindex_dagster.core.tokenizer import count_tokens
from docindex_dagster.memory.message import Message

_KIND, _TYPE = "memory", "doc"  # documents: concepts are looked for in their text
_OPTIONS = ChunkOptions(SIZES, SIZES.target)


def path_of(message: Message) -> str:
    """Where a message lies in the source that its domain is; it begins as no path of a file does."""
    return f"{MESSAGE_PATH}{quote(message.session, safe='')}/{message.id}"


def message_of(path: str) -> str:
    """The id of the message that lies at a path."""
    return path.rpartition("/")[2]


def chunk_rows(domain: str, messages: Iterable[Message], chunker: Chunker) -> pa.Table:
    """The rows of messages, each message a file, sorted by path and position. A blank message has none."""
    ordered = sorted(messages, key=path_of)
    return rows([_cut(domain, message, chunker) for message in ordered], count_tokens)


def _cut(domain: str, message: Message, chunker: Chunker) -> CutFile:
    path = path_of(message)
    identity = FileIdentity(
        source=domain,
        source_kind=_KIND,
        path=path,
        content_hash=digest(message.text.encode()),
        source_type=_TYPE,
        language=None,
        commit=None,
        is_uncommitted=False,
    )
    return CutFile(identity, drafts_of(message, chunker))


def drafts_of(message: Message, chunker: Chunker) -> FileDrafts:
    """What a chunker gives of a message; where one of a package fails, ours cuts it, and the chunks say why."""
    file = SourceFile(path_of(message), message.text)
    try:
        return chunker(file, _OPTIONS)
    except Exception as error:  # noqa: BLE001 it may be of another package
        whole = chunk_messages(file, _OPTIONS)
        return FileDrafts(whole.drafts, fallback=f"{type(error).__name__}: {first_line(error)}")
