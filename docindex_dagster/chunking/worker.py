"""What one parsing worker does: read files, cut them, return Arrow rows. It runs in a process of its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from docindex_dagster.chunking.code import chunk_code
from docindex_dagster.chunking.documents import Sizes, chunk_document
from docindex_dagster.chunking.draft import FileDrafts
from docindex_dagster.chunking.lines import chunk_lines
from docindex_dagster.chunking.rows import CutFile, FileIdentity, rows
from docindex_dagster.code.languages import grammar_for
from docindex_dagster.sources.text import read_document
from docindex_dagster.tokenizer import count_tokens


@dataclass(frozen=True, slots=True)
class ChunkOptions:
    """The settings that decide how a file is cut."""

    sizes: Sizes
    code_chars: int


@dataclass(frozen=True, slots=True)
class FileJob:
    """One file to cut."""

    root: Path
    source: str
    source_kind: str
    path: str
    source_type: str
    language: str | None
    loader: str
    size: int
    commit: str | None
    is_uncommitted: bool


@dataclass(frozen=True, slots=True)
class ChunkedFiles:
    """The rows of a batch of files, and the files that could not be read, with the reason."""

    rows: pa.Table
    unreadable: tuple[tuple[str, str], ...] = ()


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
    decoded, content_hash = read_document(job.root, job.path)
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
    if fallback is None:
        try:
            return CutFile(identity, _cut(decoded.text, job, options))
        except Exception as error:  # noqa: BLE001 a bug in a chunker costs one file its structure, not the run
            fallback = f"{type(error).__name__}: {error}"[:200]
    return CutFile(identity, FileDrafts(chunk_lines(decoded.text, options.code_chars), fallback=fallback))


def _cut(text: str, job: FileJob, options: ChunkOptions) -> FileDrafts:
    if job.loader != "code":
        return chunk_document(text, path=job.path, loader=job.loader, sizes=options.sizes, count_tokens=count_tokens)
    if job.language is None or grammar_for(job.language) is None:
        return FileDrafts(chunk_lines(text, options.code_chars))
    return chunk_code(text, job.language, options.code_chars)
