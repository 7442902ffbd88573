"""Handing files to the workers, and putting together what these give."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from docindex_dagster.callgraph.table import REFERENCES
from docindex_dagster.chunking.chunker import ChunkOptions, Sizes
from docindex_dagster.chunking.chunkers import Choice, choice_of
from docindex_dagster.chunking.jobs import ChunkedFiles, FileJob
from docindex_dagster.chunking.pool import chunk_in_workers
from docindex_dagster.core.events import Progress, emit
from docindex_dagster.core.schemas import CHUNKS
from docindex_dagster.core.settings import ChunkingSettings
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import name_to_path
from docindex_dagster.sources.secrets import secrets_of

# Columns of `discovered_files` that a job has as they are.
_TAKEN_OVER = ("source", "path", "content_hash", "source_type", "language", "commit", "is_uncommitted", "size")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is made of files: chunks, references, or both."""

    chunks: bool = True
    references: bool = False

    @property
    def stage(self) -> str:
        """The stage whose progress it is."""
        return "chunks" if self.chunks else "references"


def cut(source: Source, files: pa.Table, settings: ChunkingSettings, wanted: Wanted) -> ChunkedFiles:
    """What workers make of files of a source, which are rows of its `discovered_files`.

    Raises:
        ChunkerError: a chunker is not there.
        WorkerError: no worker can be started.
    """
    sizes = Sizes(settings.target_tokens, settings.overlap_tokens, settings.max_tokens, settings.min_tokens)
    options, choice = ChunkOptions(sizes, settings.code_chars), choice_of(settings.chunkers)
    folder = source.folder()
    jobs = tuple(_job(source, folder, row, choice, wanted) for row in files.to_pylist())
    found, done, total = [ChunkedFiles(CHUNKS.empty_table())], 0, len(jobs)
    emit(Progress(source.key, wanted.stage, 0, total, "files"))
    for count, result in chunk_in_workers(jobs, options, workers=settings.workers, timeout_s=settings.parse_timeout_s):
        found.append(result)
        done += count
        emit(Progress(source.key, wanted.stage, done, total, "files"))
    return ChunkedFiles(
        pa.concat_tables([each.rows for each in found]),
        tuple(left_out for each in found for left_out in each.left_out),
        pa.concat_tables([REFERENCES.empty_table(), *(each.references for each in found)]),
    )


def _job(source: Source, folder: Path, row: dict[str, Any], choice: Choice, wanted: Wanted) -> FileJob:
    return FileJob(
        source_kind=source.kind,
        root=folder,
        chunker=choice.name_for(row["path"], row["loader"]),
        masked=secrets_of(row["masked"]),
        max_file_bytes=source.most_bytes(name_to_path(row["path"])),
        wants_chunks=wanted.chunks,
        wants_references=wanted.references,
        **{name: row[name] for name in _TAKEN_OVER},
    )
