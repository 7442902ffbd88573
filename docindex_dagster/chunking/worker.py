"""What one parsing worker does: read files, cut them, return Arrow rows. It runs in a process of its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from docindex_dagster.chunking.check import check_drafts
from docindex_dagster.chunking.chunker import Chunker, ChunkOptions, SourceFile
from docindex_dagster.chunking.chunkers import is_ours, load_chunker
from docindex_dagster.chunking.draft import FileDrafts
from docindex_dagster.chunking.lines import chunk_lines
from docindex_dagster.chunking.rows import CutFile, FileIdentity, rows
from docindex_dagster.collection import without_collection
from docindex_dagster.sources.secrets import Secret, find_secrets, mask
from docindex_dagster.sources.text import read_document
from docindex_dagster.tokenizer import count_tokens

# What is read from a dense file on the way to its structure takes up to 400 times its bytes, in each worker.
_MOST_PARSED = 2 << 20  # bytes


@dataclass(frozen=True, slots=True)
class FileJob:
    """One file to cut."""

    root: Path
    source: str
    source_kind: str
    path: str
    source_type: str
    language: str | None
    chunker: str
    size: int
    commit: str | None
    is_uncommitted: bool
    content_hash: str = ""  # that discovery saw
    masked: tuple[Secret, ...] | None = None  # the secrets in a file of this hash; None: it is indexed as it is
    max_file_bytes: int = 1 << 20  # it may have grown since its size was looked at


@dataclass(frozen=True, slots=True)
class ChunkedFiles:
    """The rows of a batch of files, and the files that could not be read, with the reason."""

    rows: pa.Table
    unreadable: tuple[tuple[str, str], ...] = ()


@without_collection()
def chunk_files(jobs: Sequence[FileJob], options: ChunkOptions, fallback: str | None = None) -> ChunkedFiles:
    """Cut a batch of files. A file that cannot be read is reported; the others go on.

    With `fallback`, the reason why structure cannot be had, the files are cut by lines alone.
    """
    files, unreadable = [], []
    for job in jobs:
        try:
            files.append(_cut_file(job, options, fallback))
        except OSError as error:
            unreadable.append((job.path, f"unreadable: {error.strerror or error}"))
    return ChunkedFiles(rows(files, count_tokens), tuple(unreadable))


def _cut_file(job: FileJob, options: ChunkOptions, fallback: str | None) -> CutFile:
    decoded, content_hash = read_document(job.root, job.path, job.max_file_bytes)
    identity = FileIdentity(
        job.source,
        job.source_kind,
        job.path,
        content_hash,
        job.source_type,
        job.language,
        job.commit,
        job.is_uncommitted,
    )
    text = _masked(decoded.text, job, content_hash)
    chunker = load_chunker(job.chunker)
    if fallback is None and job.size > _MOST_PARSED:
        fallback = f"too-large: {job.size} bytes, structure is read of {_MOST_PARSED} at most"
    if fallback is None:
        try:
            return _cut_by(chunker, identity, text, job, options)
        except Exception as error:  # noqa: BLE001 a bug in a chunker costs one file its structure, not the run
            fallback = f"{type(error).__name__}: {error}"[:200]
    return CutFile(identity, FileDrafts(chunk_lines(text, options.code_chars), fallback=fallback))


def _masked(text: str, job: FileJob, content_hash: str) -> str:
    """The text without the secrets that discovery found, or that it has now if it has changed since."""
    if job.masked is None:
        return text
    return mask(text, job.masked if content_hash == job.content_hash else find_secrets(text))


def _cut_by(chunker: Chunker, identity: FileIdentity, text: str, job: FileJob, options: ChunkOptions) -> CutFile:
    drafts = chunker(SourceFile(job.path, text, job.language), options)
    cut = CutFile(identity, drafts)
    if not is_ours(job.chunker):
        check_drafts(drafts, text)
        rows([cut], count_tokens)  # values of a wrong type would cost the whole batch its rows
    return cut
