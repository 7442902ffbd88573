"""The work of one parsing worker: read files, chunk them, extract references, and return Arrow rows.

It runs in a separate process.
"""

import os
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import PurePosixPath

from docindex_dagster.callgraph.table import Extracted, reference_rows
from docindex_dagster.chunking.chunker import Chunker, ChunkOptions, Draft, FileDrafts, SourceFile, cut_at
from docindex_dagster.chunking.chunkers import is_built_in, load_chunker
from docindex_dagster.chunking.packing import chunk_lines, drop_long_continuations
from docindex_dagster.chunking.references import extract_references
from docindex_dagster.chunking.rows import ChunkedFiles, CutFile, FileJob, rows
from docindex_dagster.core.errors import ChunkerError
from docindex_dagster.core.garbage_collection import gc_disabled
from docindex_dagster.core.hashing import digest
from docindex_dagster.core.schemas import CHUNKS
from docindex_dagster.core.tokenizer import count_tokens
from docindex_dagster.documents.human_language import language_of
from docindex_dagster.documents.model import Converted, is_converted
from docindex_dagster.documents.pdf import convert
from docindex_dagster.sources.content import examine
from docindex_dagster.sources.paths import error_reason, name_to_path, read_complete
from docindex_dagster.sources.secrets import find_secrets, mask
from docindex_dagster.sources.text import decode

_DOCUMENT = "doc"
# Parsing a dense file takes up to 400 times its size in memory, in each worker.
_MAX_PARSED = 2 << 20  # bytes


@gc_disabled()
def chunk_files(jobs: Sequence[FileJob], options: ChunkOptions, fallback: str | None = None) -> ChunkedFiles:
    """Chunk a batch of files. Skip a file that changed since discovery and should no longer be indexed.

    With `fallback`, the reason why structure is not available, the files are chunked by lines only.
    """
    files: list[CutFile] = []
    irs: list[Extracted] = []
    left_out: list[tuple[str, str]] = []
    for job in jobs:
        try:
            data = read_complete(os.fsencode(job.root), name_to_path(job.path), job.max_file_bytes)
        except OSError as error:
            left_out.append((job.path, error_reason(error)))
            continue
        current, reason = _current_job(job, data)
        if reason is not None:
            left_out.append((job.path, reason))
            continue
        found, problem = _read(current, data, fallback), fallback or _too_large(current)
        cut = _chunk_file(current, found, options, problem) if job.wants_chunks else None
        if job.extracts_references:
            parsed = cut.content.parsed if cut and is_built_in(job.chunker) else None
            blank = Extracted(job.path, current.content_hash, str(job.language), None, problem)
            irs.append(extract_references(blank, found.text, parsed))
        if cut:
            files.append(_with_language(replace(cut, content=replace(cut.content, parsed=None))))
    table = rows(files, count_tokens) if files else CHUNKS.empty_table()
    return ChunkedFiles(table, tuple(left_out), reference_rows(irs))


def load_grammars() -> None:
    """Load what every code file needs ahead of the first one."""
    import_module("tree_sitter_language_pack")


def _too_large(job: FileJob) -> str | None:
    if job.size <= _MAX_PARSED or is_converted(job.language):
        return None
    return f"too-large: {job.size} bytes; structure is read from files of at most {_MAX_PARSED} bytes"


def _read(job: FileJob, data: bytes, fallback: str | None) -> Converted:
    """Return the text of a file, with secrets masked; empty if there is a fallback and the file needs conversion."""
    if job.language is None or not is_converted(job.language):
        return Converted(_masked(job, decode(data).text))
    found = convert(data, job.language) if fallback is None else Converted("")
    return replace(found, text=_masked(job, found.text))


def _with_language(file: CutFile) -> CutFile:
    if file.identity.source_type != _DOCUMENT:
        return file
    return replace(file, human_language=language_of(draft.text for draft in file.content.drafts))


def _current_job(job: FileJob, data: bytes) -> tuple[FileJob, str | None]:
    """Return the job for the file's current bytes, and the reason if the file should no longer be indexed."""
    content_hash = digest(data)
    if content_hash == job.content_hash:
        return job, None
    now = examine(name_to_path(job.path), data, skips_secrets=job.masked is not None)
    return replace(job, size=len(data), content_hash=content_hash, masked=now.masked), now.reason


def _chunk_file(job: FileJob, found: Converted, options: ChunkOptions, fallback: str | None) -> CutFile:
    name = PurePosixPath(job.path).stem  # the only searchable text of a file without text
    if is_converted(job.language) and not found.text.strip():
        return CutFile(job, FileDrafts(cut_at(name, ()), fallback=fallback or found.problem))
    chunker = load_chunker(job.chunker)
    if fallback is None:
        try:
            cut = _run_chunker(chunker, found, job, options)
            drafts = cut.content.drafts or tuple(
                replace(draft, start_byte=None, end_byte=None) for draft in cut_at(name, ())
            )
            problem = cut.content.fallback or found.problem
            return replace(cut, content=replace(cut.content, drafts=drafts, fallback=problem))
        except Exception as error:  # noqa: BLE001 a bug in a chunker affects the structure of one file, not the run
            fallback = f"{type(error).__name__}: {error}"[:200]
    by_lines = chunk_lines(found.text, options.code_chars)
    return CutFile(job, FileDrafts(_readable(by_lines, job), fallback=fallback))


def _readable(drafts: tuple[Draft, ...], job: FileJob) -> tuple[Draft, ...]:
    return drafts if job.source_type == _DOCUMENT else drop_long_continuations(drafts)


def _masked(job: FileJob, text: str) -> str:
    """Return the text with secrets masked; secrets of a converted file are not known from discovery."""
    if is_converted(job.language):
        return mask(text, find_secrets(text)) if job.masked is not None else text
    return mask(text, job.masked) if job.masked else text


def _run_chunker(chunker: Chunker, found: Converted, job: FileJob, options: ChunkOptions) -> CutFile:
    drafts = chunker(SourceFile(job.path, found.text, job.language, found.pages), options)
    cut = CutFile(job, drafts)
    if not is_built_in(job.chunker):
        check_drafts(drafts, found.text)
        rows([cut], count_tokens)  # values of a wrong type would make the whole batch fail
        return cut
    return replace(cut, content=replace(drafts, drafts=_readable(drafts.drafts, job)))


def check_drafts(found: FileDrafts, text: str) -> None:
    """Check that the drafts of a third-party chunker fit their file.

    Raises:
        ChunkerError: A draft has no text, or has lines, bytes or a parent that the file does not have; or there is no
            draft although the file is not blank.
    """
    if not found.drafts and text.strip():
        raise ChunkerError("no draft returned")
    data, lines = text.encode(), text.count("\n") + 1
    for index, draft in enumerate(found.drafts):
        problem = _problem(draft, index, data, lines)
        if problem:
            raise ChunkerError(f"draft {index} of {len(found.drafts)} {problem}")


def _problem(draft: Draft, index: int, data: bytes, lines: int) -> str | None:
    if not draft.text.strip():
        return "has no text"
    if not 1 <= draft.start_line <= draft.end_line <= lines:
        return f"has lines {draft.start_line} to {draft.end_line} of {lines}"
    if draft.parent_index is not None and not 0 <= draft.parent_index < index:
        return f"continues draft {draft.parent_index}, which is not before it"
    if draft.start_byte is None or draft.end_byte is None:
        return None if draft.start_byte is draft.end_byte else "has only one of start_byte and end_byte"
    if not 0 <= draft.start_byte <= draft.end_byte or data[draft.start_byte : draft.end_byte] != draft.text.encode():
        return f"does not match bytes {draft.start_byte} to {draft.end_byte} of the file"
    return None
