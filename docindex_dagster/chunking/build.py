"""The `chunks` and `references` of a source: rows of unchanged files and commits are reused, the others are made anew.

Workers cut the files; what they return is put together here.
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
from docindex_dagster.chunking.chunkers import Choice, choice_of
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
from docindex_dagster.core.tables import column_version, joined_by_path, replaced, stamp
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import name_to_path
from docindex_dagster.sources.secrets import secrets_of

_FINGERPRINT = b"docindex.chunking"
# A file that a slow or unlucky moment cost its structure is tried again.
_PASSING = r"^(time-out|crash): "
_MOST_TOGETHER = 1 << 20  # bytes of files; of more, chunks are searchable before references are extracted
_FEW_FILES = 100  # of more, all rows are copied
# Columns of `discovered_files` that a job has as they are.
_TAKEN_OVER = ("source", "path", "content_hash", "source_type", "language", "commit", "is_uncommitted", "size")


@dataclass(frozen=True, slots=True)
class ChunkingResult:
    """The new table, and files that are left out, with the reason.

    `references` has what each file says that was cut now, where that is wanted; `summaries` is None where they are off.
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
    """Cut the files of a source that are to be indexed, and make a chunk of each commit.

    Args:
        source: where the files lie.
        inputs: what `gather` chose.
        previous: the `chunks` of an earlier run, or None.
        settings: sizes and time-outs.
        summariser: who writes summaries, the same for which `gather` was asked; None for none.
        wants_references: whether references are to be extracted from the same trees, where little is cut.

    Returns:
        The table, sorted by (path, chunk_index) and stamped with its data version.

    Raises:
        VerificationError: the rows break a rule; nothing may be written.
        ChunkerError: a chunker is not there.
        WorkerError: no worker can be started.
    """
    version = made_with(inputs.files, settings, summariser)
    texts = commit_texts(source, inputs.commits)
    columns = [inputs.files.select(DECISIVE), texts.select(DECISIVE)]
    present = pa.concat_tables(columns, promote_options="default")
    reused = _reusable(present, previous, version)
    left = _without(inputs.files, reused)
    is_small = (pc.sum(left["size"], min_count=0).as_py() or 0) <= _MOST_TOGETHER
    made = _cut(source, left, settings, _Wanted(references=wants_references and is_small))
    left_out = made.left_out
    is_as_seen = not left_out and pc.all(pc.is_in(_file_keys(made.rows), _file_keys(present)), min_count=0).as_py()
    new = [made.rows, commit_chunks(_without(texts, reused))]
    made = replace(made, rows=CHUNKS.empty_table())  # large tables are not in memory twice
    table = _together(reused, _refreshed(reused, present), new)
    summaries = None
    if summariser is not None:
        table, summaries = summarise(table, summariser, source.key)
        table = _sorted(table)
    table = table.combine_chunks()
    verify_chunks(table, present, tuple(path for path, _ in left_out))
    about = {_FINGERPRINT: version.encode()}
    is_summarised = summaries is None or summaries.is_complete
    if is_summarised and is_as_seen and not pc.any(_is_passing(table), min_count=0).as_py():
        about[MADE_FROM] = inputs.made_from.encode()
    stamped = stamp(table.replace_schema_metadata(about), digest_parts(version, column_version(table, "row_hash")))
    return ChunkingResult(stamped, made.left_out, made.references, summaries)


def _reusable(files: pa.Table, previous: pa.Table | None, version: str) -> pa.Table:
    """The previous rows of files that are the same byte for byte and would be cut the same way."""
    if previous is None or not previous.num_rows or not previous.schema.equals(CHUNKS):
        return CHUNKS.empty_table()
    if (previous.schema.metadata or {}).get(_FINGERPRINT) != version.encode():
        return CHUNKS.empty_table()
    is_same = pc.is_in(_file_keys(previous), _file_keys(files))
    return _of_files(previous.replace_schema_metadata(None), pc.and_not(is_same, _is_passing(previous)))


def _of_files(rows: pa.Table, is_wanted: pa.ChunkedArray) -> pa.Table:
    """The rows of some files, which are sorted by path; where few are left out, without a copy of all others."""
    others = pc.unique(rows["path"].filter(pc.invert(is_wanted)))
    if len(others) > _FEW_FILES:
        return rows.filter(is_wanted)
    return replaced(rows, sorted(others.to_pylist()), rows.slice(0, 0))


def _together(reused: pa.Table, refreshed: pa.Table, found: list[pa.Table]) -> pa.Table:
    """All rows, by path and place. Those that are reused are in their order, as long as none was refreshed.

    The list of new rows is emptied; the chunks of a file are in their order there.
    """
    new = joined_by_path(found)
    paths = pc.unique(new["path"])
    if not reused.num_rows:
        return new
    if refreshed is reused and len(paths) <= _FEW_FILES:
        return replaced(reused, paths.to_pylist(), new)
    return _sorted(pa.concat_tables([refreshed, new]))


def _sorted(rows: pa.Table) -> pa.Table:
    return rows.sort_by([("path", "ascending"), ("chunk_index", "ascending")])


def _is_passing(chunks: pa.Table) -> pa.ChunkedArray:
    return pc.fill_null(pc.match_substring_regex(chunks["fallback"], _PASSING), fill_value=False)


def _without(rows: pa.Table, reused: pa.Table) -> pa.Table:
    return rows.filter(pc.invert(pc.is_in(rows["path"], pc.unique(reused["path"]))))


def _file_keys(table: pa.Table) -> pa.ChunkedArray:
    columns = [table[name] for name in SAME_FILE]
    return pc.binary_join_element_wise(*columns, "\0", null_handling="replace", null_replacement="")


def _refreshed(reused: pa.Table, files: pa.Table) -> pa.Table:
    """Reused rows with today's commit and mark, and a new row hash where one of them changed."""
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
    """Element-wise inequality in which null equals null."""
    one_null = pc.xor(pc.is_null(left), pc.is_null(right))
    return pc.or_(one_null, pc.fill_null(pc.not_equal(left, right), fill_value=False))


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is made of files: chunks, references, or both."""

    chunks: bool = True
    references: bool = False

    @property
    def stage(self) -> str:
        """The stage whose progress it is."""
        return "chunks" if self.chunks else "references"


def _cut(source: Source, files: pa.Table, settings: ChunkingSettings, wanted: _Wanted) -> ChunkedFiles:
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


def _job(source: Source, folder: Path, row: dict[str, Any], choice: Choice, wanted: _Wanted) -> FileJob:
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


@dataclass(frozen=True, slots=True)
class ReferencesResult:
    """The new table, and of how many files its rows come from where."""

    table: pa.Table
    reused: int  # from an earlier run
    taken: int  # from the workers that cut the files
    parsed: int  # from workers that parsed them for this alone

    @property
    def without_structure(self) -> int:
        """How many files have no structure."""
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
    """What the files of a source say.

    Args:
        source: where they lie.
        files: its `discovered_files`.
        chunks: made of these files.
        fresh: what workers extracted from files that they cut; None for nothing.
        previous: the table of an earlier run, or None.
        settings: time-outs and how many workers there are.

    Returns:
        The table, sorted by path, with a row for each file of code that has chunks, stamped with its data version.

    Raises:
        ChunkerError: a chunker is not there.
        WorkerError: no worker can be started.
    """
    made_with = references_fingerprint(files)
    wanted = referring(chunks)
    taken = of_files(usable(fresh, made_with), wanted)
    wanted_still = without(wanted, taken)
    reused = of_files(settled(usable(previous, made_with)), wanted_still)
    missing = without(wanted_still, reused)
    parsed = _parsed(source, files, missing, settings)
    rows = pa.concat_tables([taken, reused, parsed]).sort_by("path").combine_chunks()
    return ReferencesResult(as_table(rows, made_with), reused.num_rows, taken.num_rows, parsed.num_rows)


def _parsed(source: Source, files: pa.Table, missing: pa.Table, settings: ChunkingSettings) -> pa.Table:
    """The rows of files that nobody has extracted yet; of those that changed meanwhile, that they did."""
    if not missing.num_rows:
        return REFERENCES.empty_table()
    jobs = files.filter(pc.is_in(files["path"], pc.unique(missing["path"])))
    found = of_files(_cut(source, jobs, settings, _Wanted(chunks=False, references=True)).references, missing)
    return pa.concat_tables([found, _changed(without(missing, found))])


def _changed(files: pa.Table) -> pa.Table:
    problem = "changed: it is another file by now"
    rows = files.to_pylist()
    return reference_rows([Extracted(row["path"], row["content_hash"], row["language"], None, problem) for row in rows])
