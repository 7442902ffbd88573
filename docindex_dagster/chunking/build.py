"""The `chunks` and `references` of a source: rows of unchanged files and commits are reused, others are rebuilt.

Workers chunk the files; this module combines their results.
"""

from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.callgraph.table import (
    REFERENCES,
    Extracted,
    as_table,
    of_files,
    reference_rows,
    referring,
    settled,
    usable,
    without,
)
from docindex_dagster.chunking.chunker import ChunkOptions, Sizes
from docindex_dagster.chunking.chunkers import Choice, load_choice
from docindex_dagster.chunking.commits import commit_chunks, commit_texts
from docindex_dagster.chunking.inputs import (
    DECISIVE,
    MADE_FROM,
    REFRESHED,
    SAME_FILE,
    ChunkInputs,
    made_with,
    references_fingerprint,
)
from docindex_dagster.chunking.pool import chunk_in_workers
from docindex_dagster.chunking.rows import ChunkedFiles, FileJob, with_row_hashes
from docindex_dagster.chunking.summaries import Summariser, SummaryCounts, summarise
from docindex_dagster.chunking.table_rules import verify_chunks
from docindex_dagster.core.events import Progress, emit
from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.core.schemas import CHUNKS
from docindex_dagster.core.settings import ChunkingSettings
from docindex_dagster.core.tables import column_version, concat_sorted_by_path, replace_rows, stamp
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import name_to_path
from docindex_dagster.sources.secrets import parse_masked

_FINGERPRINT = b"docindex.chunking"
# Files that fell back because of a temporary problem are retried.
_TRANSIENT_FALLBACK = r"^(time-out|crash): "
_MAX_COMBINED_BYTES = 1 << 20  # bytes of files; beyond this, chunks become searchable before references are extracted
_FEW_FILES = 100  # for more files, all rows are copied
# Columns of `discovered_files` that are copied to a job.
_COPIED_COLUMNS = ("source", "path", "content_hash", "source_type", "language", "commit", "is_uncommitted", "size")


@dataclass(frozen=True, slots=True)
class ChunkingResult:
    """The new table, and skipped files with reasons.

    `references` has rows for the files chunked in this run, if requested. `summaries` is None if summaries are off.
    """

    table: pa.Table
    left_out: tuple[tuple[str, str], ...]
    references: pa.Table
    summaries: SummaryCounts | None


def build_chunks(
    source: Source,
    inputs: ChunkInputs,
    previous: pa.Table | None,
    settings: ChunkingSettings,
    summariser: Summariser | None = None,
    *,
    wants_references: bool = False,
) -> ChunkingResult:
    """Chunk the files of a source that should be indexed, and create a chunk for each commit.

    Args:
        source: The location of the files.
        inputs: The result of `gather`.
        previous: The `chunks` of an earlier run, or None.
        settings: Sizes and timeouts.
        summariser: Writes summaries, the same as passed to `gather`; None for no summaries.
        wants_references: Also extract references from the same trees, provided that few files are chunked.

    Returns:
        The table, sorted by (path, chunk_index) and stamped with its data version.

    Raises:
        VerificationError: The rows break a rule; nothing may be written.
        ChunkerError: A chunker does not exist.
        WorkerError: No worker can be started.
    """
    version = made_with(inputs.files, settings, summariser)
    texts = commit_texts(source, inputs.commits)
    columns = [inputs.files.select(DECISIVE), texts.select(DECISIVE)]
    present = pa.concat_tables(columns, promote_options="default")
    reused = _reusable(present, previous, version)
    left = _without(inputs.files, reused)
    is_small = (pc.sum(left["size"], min_count=0).as_py() or 0) <= _MAX_COMBINED_BYTES
    made = _process(source, left, settings, _Wanted(references=wants_references and is_small))
    left_out = made.left_out
    is_as_seen = not left_out and pc.all(pc.is_in(_file_keys(made.rows), _file_keys(present)), min_count=0).as_py()
    new = [made.rows, commit_chunks(_without(texts, reused))]
    made = replace(made, rows=CHUNKS.empty_table())  # avoids holding large tables in memory twice
    table = _combine(reused, _refresh(reused, present), new)
    summaries = None
    if summariser is not None:
        table, summaries = summarise(table, summariser, source.key)
        table = _sorted(table)
    table = table.combine_chunks()
    verify_chunks(table, present, tuple(path for path, _ in left_out))
    metadata = {_FINGERPRINT: version.encode()}
    is_summarised = summaries is None or summaries.is_complete
    if is_summarised and is_as_seen and not pc.any(_is_transient(table), min_count=0).as_py():
        metadata[MADE_FROM] = inputs.made_from.encode()
    stamped = stamp(table.replace_schema_metadata(metadata), digest_parts(version, column_version(table, "row_hash")))
    return ChunkingResult(stamped, made.left_out, made.references, summaries)


def _reusable(files: pa.Table, previous: pa.Table | None, version: str) -> pa.Table:
    """Return the previous rows of files whose bytes are unchanged and that would be chunked the same way."""
    if previous is None or not previous.num_rows or not previous.schema.equals(CHUNKS):
        return CHUNKS.empty_table()
    if (previous.schema.metadata or {}).get(_FINGERPRINT) != version.encode():
        return CHUNKS.empty_table()
    is_same = pc.is_in(_file_keys(previous), _file_keys(files))
    return _wanted_rows(previous.replace_schema_metadata(None), pc.and_not(is_same, _is_transient(previous)))


def _wanted_rows(rows: pa.Table, is_wanted: pa.ChunkedArray) -> pa.Table:
    """Return the rows of wanted files, which are sorted by path; copy only a few rows if few files are excluded."""
    others = pc.unique(rows["path"].filter(pc.invert(is_wanted)))
    if len(others) > _FEW_FILES:
        return rows.filter(is_wanted)
    return replace_rows(rows, sorted(others.to_pylist()), rows.slice(0, 0))


def _combine(reused: pa.Table, refreshed: pa.Table, found: list[pa.Table]) -> pa.Table:
    """Combine all rows, sorted by path and position. Reused rows keep their order if none was refreshed.

    The list of new rows, in which the chunks of a file are in order, is emptied.
    """
    new = concat_sorted_by_path(found)
    paths = pc.unique(new["path"])
    if not reused.num_rows:
        return new
    if refreshed is reused and len(paths) <= _FEW_FILES:
        return replace_rows(reused, paths.to_pylist(), new)
    return _sorted(pa.concat_tables([refreshed, new]))


def _sorted(rows: pa.Table) -> pa.Table:
    return rows.sort_by([("path", "ascending"), ("chunk_index", "ascending")])


def _is_transient(chunks: pa.Table) -> pa.ChunkedArray:
    return pc.fill_null(pc.match_substring_regex(chunks["fallback"], _TRANSIENT_FALLBACK), fill_value=False)


def _without(rows: pa.Table, reused: pa.Table) -> pa.Table:
    return rows.filter(pc.invert(pc.is_in(rows["path"], pc.unique(reused["path"]))))


def _file_keys(table: pa.Table) -> pa.ChunkedArray:
    columns = [table[name] for name in SAME_FILE]
    return pc.binary_join_element_wise(*columns, "\0", null_handling="replace", null_replacement="")


def _refresh(reused: pa.Table, files: pa.Table) -> pa.Table:
    """Update the commit columns of reused rows, and the row hash of those that changed."""
    position = pc.index_in(reused["path"], files["path"])
    current = {name: files[name].take(position) for name in REFRESHED}
    stale = reduce(pc.or_, [_differs(reused[name], values) for name, values in current.items()])
    if not pc.any(stale, min_count=0).as_py():
        return reused
    changed = reused.filter(stale)
    for name, values in current.items():
        index = CHUNKS.get_field_index(name)
        changed = changed.set_column(index, CHUNKS.field(index), values.filter(stale))
    return pa.concat_tables([reused.filter(pc.invert(stale)), with_row_hashes(changed)])


def _differs(left: pa.ChunkedArray, right: pa.ChunkedArray) -> pa.ChunkedArray:
    """Compare element-wise for inequality, treating null as equal to null."""
    one_null = pc.xor(pc.is_null(left), pc.is_null(right))
    return pc.or_(one_null, pc.fill_null(pc.not_equal(left, right), fill_value=False))


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The outputs to produce for files: chunks, references, or both."""

    chunks: bool = True
    references: bool = False

    @property
    def stage(self) -> str:
        """The stage for progress reports."""
        return "chunks" if self.chunks else "references"


def _process(source: Source, files: pa.Table, settings: ChunkingSettings, wanted: _Wanted) -> ChunkedFiles:
    """Have workers process files of a source, which are rows of its `discovered_files`.

    Raises:
        ChunkerError: A chunker does not exist.
        WorkerError: No worker can be started.
    """
    sizes = Sizes(settings.target_tokens, settings.overlap_tokens, settings.max_tokens, settings.min_tokens)
    options, choice = ChunkOptions(sizes, settings.code_chars), load_choice(settings.chunkers)
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


def _job(source: Source, folder: Path, row: dict[str, Any], choice: Choice, wanted: _Wanted) -> FileJob:
    return FileJob(
        source_kind=source.kind,
        root=folder,
        chunker=choice.name_for(row["path"], row["loader"]),
        masked=parse_masked(row["masked"]),
        max_file_bytes=source.max_bytes_of(name_to_path(row["path"])),
        wants_chunks=wanted.chunks,
        wants_references=wanted.references,
        **{name: row[name] for name in _COPIED_COLUMNS},
    )


@dataclass(frozen=True, slots=True)
class ReferencesResult:
    """The new table, and the number of files by the origin of their rows."""

    table: pa.Table
    reused: int  # from an earlier run
    taken: int  # from the workers that chunked the files
    parsed: int  # from workers that parsed the files only for this purpose

    @property
    def without_structure(self) -> int:
        """Number of files without structure."""
        return int(self.table.num_rows - self.table["problem"].null_count)


def build_references(
    source: Source,
    files: pa.Table,
    chunks: pa.Table,
    *,
    fresh: pa.Table | None,
    previous: pa.Table | None,
    settings: ChunkingSettings,
) -> ReferencesResult:
    """Return the references of the files of a source.

    Args:
        source: The location of the files.
        files: The `discovered_files` of the source.
        chunks: The chunks of these files.
        fresh: References that workers extracted while chunking; None for none.
        previous: The table of an earlier run, or None.
        settings: Timeouts and the number of workers.

    Returns:
        The table, sorted by path, with a row for each code file that has chunks, stamped with its data version.

    Raises:
        ChunkerError: A chunker does not exist.
        WorkerError: No worker can be started.
    """
    made_with = references_fingerprint(files)
    wanted = referring(chunks)
    taken = of_files(usable(fresh, made_with), wanted)
    still_wanted = without(wanted, taken)
    reused = of_files(settled(usable(previous, made_with)), still_wanted)
    missing = without(still_wanted, reused)
    parsed = _parse_missing(source, files, missing, settings)
    rows = pa.concat_tables([taken, reused, parsed]).sort_by("path").combine_chunks()
    return ReferencesResult(as_table(rows, made_with), reused.num_rows, taken.num_rows, parsed.num_rows)


def _parse_missing(source: Source, files: pa.Table, missing: pa.Table, settings: ChunkingSettings) -> pa.Table:
    """Extract the rows of files that have none yet; for files that changed meanwhile, the row says so."""
    if not missing.num_rows:
        return REFERENCES.empty_table()
    jobs = files.filter(pc.is_in(files["path"], pc.unique(missing["path"])))
    found = of_files(_process(source, jobs, settings, _Wanted(chunks=False, references=True)).references, missing)
    return pa.concat_tables([found, _changed_rows(without(missing, found))])


def _changed_rows(files: pa.Table) -> pa.Table:
    problem = "changed: the file has changed meanwhile"
    rows = files.to_pylist()
    return reference_rows([Extracted(row["path"], row["content_hash"], row["language"], None, problem) for row in rows])
