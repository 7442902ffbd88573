"""Stages that discover the files of a source, its newest commits and the statistics of its repository."""

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.core import tables
from docindex_dagster.pipeline.source_run import SourceRun
from docindex_dagster.pipeline.stage import (
    Inputs,
    Outcome,
    Product,
    Report,
    Stage,
    changes,
    counts,
    previous,
    table_storage,
)
from docindex_dagster.sources import clone
from docindex_dagster.sources.commits import HISTORY_VERSION, read_history
from docindex_dagster.sources.discovery import discover
from docindex_dagster.sources.history import RepositoryStatistics
from docindex_dagster.sources.previous_listing import head_of

_NAME = "discovered_files"
_STORAGE = table_storage(_NAME)
_COMMITS = "commits"
_COMMITS_STORAGE = table_storage(_COMMITS)
_COMMITS_SAMPLE = ("commit", "authored_at", "author", "file_count", "insertions", "deletions")


def _discover(run: SourceRun, _inputs: Inputs) -> Outcome:
    clone.update(run.source, run.layout, history=run.settings.history.commits, report=run.notice)
    before = previous(run, _STORAGE)
    found = discover(run.source, None if run.is_verifying else before, run.only)
    table = tables.stamp(found, tables.data_version(found))
    return Outcome(table, {_NAME: _report(table, before)})


def _report(table: pa.Table, before: pa.Table | None) -> Report:
    indexed = table.filter(pc.is_null(table["skipped_reason"]))
    skipped = table.filter(pc.is_valid(table["skipped_reason"]))
    rules = pc.list_element(pc.split_pattern(skipped["skipped_reason"], ":", max_splits=1), 0)
    return Report(
        version=tables.data_version(table.drop_columns(["mtime_ns"])),
        numbers={
            "files": indexed.num_rows,
            "skipped": skipped.num_rows,
            **changes(table, before, "path", "content_hash"),
            "lossy": pc.sum(indexed["is_lossy"], min_count=0).as_py() or 0,
            "source_bytes": pc.sum(indexed["size"], min_count=0).as_py() or 0,
        },
        rows=table,
        sample=table.select(["path", "size", "source_type", "language", "skipped_reason"]),
        breakdowns={
            "languages": counts(indexed["language"], "language", "files"),
            "skip_reasons": counts(rules, "rule", "files"),
        },
    )


DISCOVERED_FILES = Stage(
    name=_NAME,
    products=(
        Product(
            _NAME,
            "Files of a source, one row each, with the reason for skipped files.\n\n"
            "See docs/how-to/choose-what-is-indexed.md.",
            frozenset({"python", "parquet"}),
        ),
    ),
    group="discovery",
    version="1",
    inputs=(),
    run=_discover,
    storage=_STORAGE,
)


def _read(run: SourceRun, inputs: Inputs) -> Outcome:
    before = previous(run, _COMMITS_STORAGE)
    # Read from the commit that discovery saw, so that files and history are consistent.
    head = head_of(inputs["discovered_files"])
    history = read_history(run.source, head, before, run.settings.history.commits)
    table = history.commits
    report = Report(
        version=_COMMITS_STORAGE.version_of(table),
        numbers={**changes(table, before, "commit", "row_hash"), **_repository_numbers(history.figures)},
        rows=table,
        sample=table.select(list(_COMMITS_SAMPLE)),
    )
    return Outcome(table, {_COMMITS: report})


def _repository_numbers(figures: RepositoryStatistics | None) -> dict[str, int]:
    if figures is None:
        return {}
    return {"all_commits": figures.commits, "branches": figures.branches, "tags": figures.tags}


COMMITS = Stage(
    name=_COMMITS,
    products=(
        Product(
            _COMMITS,
            "Newest commits of a git source, one row each: author, date, message and changed files.\n\n"
            "See docs/explanation/architecture.md.",
            frozenset({"git", "parquet"}),
        ),
    ),
    group="discovery",
    version=HISTORY_VERSION,
    inputs=("discovered_files",),
    run=_read,
    storage=_COMMITS_STORAGE,
)
