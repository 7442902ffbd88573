"""Running the stages over a source, without Dagster's record of it.

For programs that embed docindex, for tests, and for measuring what a run costs beside what Dagster adds.
"""

import os
from collections.abc import Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from docindex_dagster.chunking.build import MADE_FROM
from docindex_dagster.chunking.build import fingerprint as chunking_fingerprint
from docindex_dagster.chunking.pool import check_main_guard
from docindex_dagster.chunking.summaries import summariser_of
from docindex_dagster.core import tables
from docindex_dagster.core.access import writing
from docindex_dagster.core.errors import SettingsError
from docindex_dagster.core.events import Waiting, emit
from docindex_dagster.core.events import stage as timed
from docindex_dagster.core.files import reporting_full_disk
from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.core.locks import exclusive
from docindex_dagster.core.schemas import DISCOVERED_FILES
from docindex_dagster.core.settings import Settings
from docindex_dagster.core.work import noted
from docindex_dagster.embedding.protocol import Embedder
from docindex_dagster.embedding.providers import load_embedder
from docindex_dagster.graph.plan import GraphPlan
from docindex_dagster.pipeline import chunking
from docindex_dagster.pipeline.publication import revision_of
from docindex_dagster.pipeline.source_run import SourceRun
from docindex_dagster.pipeline.stage import Outcome, Stage
from docindex_dagster.pipeline.stages import by_name, stages
from docindex_dagster.sources.commits import is_history
from docindex_dagster.sources.fingerprint import fingerprint
from docindex_dagster.sources.memory import fingerprint_of, head_of
from docindex_dagster.sources.model import Source
from docindex_dagster.stores import clean_up
from docindex_dagster.stores.publish import Publication, published_from
from docindex_dagster.stores.reader import can_be_opened, check_published
from docindex_dagster.stores.staging import Model

_FILES, _COMMITS, _CHUNKS, _STORES = "discovered_files", "commits", "chunks", "stores"


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run found or made, and what the stages did that had something to do, by name."""

    publication: Publication
    outcomes: Mapping[str, Outcome]


def index(
    settings: Settings,
    source: Source,
    embedder: Embedder,
    *,
    full: bool = False,
    verify: bool = False,
    only: Collection[str] = (),
) -> Publication:
    """Bring the index of one source up to date, waiting for another run of it.

    Args:
        settings: sizes, models, and where the index lives.
        source: what to index.
        embedder: the model of the vectors.
        full: reuse nothing, and compare every row of the stores.
        verify: trust no time stamp and no store: read every file, and compare every row.
        only: names of the files to look at, as tables have them; none for all.

    Raises:
        SourceError: the source cannot be read.
        EmbeddingError: the provider failed.
        VerificationError: rows break a rule; what was published stays.
        DamagedStoreError: the stores are damaged, and neither `full` nor `verify` was asked for.
        FullDiskError: there is no space left; what was published stays.
        WorkerError: the script that calls it has no main guard.
        DocindexError: a stage of a package failed.
        SettingsError: the stores are shared with other machines, so runs of Dagster's write them.
    """
    if settings.storage.url is not None:
        raise SettingsError(f"{settings.config_file}: storage.url is set, so index with `docindex index`")
    check_main_guard()
    run = SourceRun(settings, source, lambda: embedder, full, verify, tuple(only))

    def wait(owner: str) -> None:
        emit(Waiting(source.key, f"another run of this source ({owner})"))

    lock = exclusive(run.layout.source_lock(source.key), f"process {os.getpid()}", wait)
    with reporting_full_disk(settings.home), writing(settings), lock as note:
        return run_stages(replace(run, note=note)).publication


def run_stages(run: SourceRun) -> Ran:
    """Do all stages; those after the files and commits only where something differs from what is published.

    Raises:
        DocindexError: what a stage raises; those after it are not done.
    """
    with run.ahead, ThreadPoolExecutor(1) as writer:  # tables are written while the next stages work
        written: list[Future[bool]] = []
        run = replace(run, wait_for_tables=lambda: _wait(written))
        outcomes: dict[str, Outcome] = {}
        for stage in stages():
            if stage.name == _CHUNKS:
                run.wait_for_tables()
                published = _unchanged(run, outcomes[_FILES].value, outcomes[_COMMITS].value)
                if published is not None:
                    return Ran(published, outcomes)
            inputs = {name: outcomes[name].value for name in stage.inputs}
            outcome = outcomes[stage.name] = execute(stage, run, inputs)
            written.append(writer.submit(stage.keep, run, outcome.value, versions(inputs)))
            for text in outcome.warnings:
                run.notice(text)
        run.wait_for_tables()
    return Ran(outcomes[_STORES].value, outcomes)


def execute(stage: Stage, run: SourceRun, inputs: Mapping[str, Any]) -> Outcome:
    """Do one stage, report how long it took, and note in the run's lock how far it is.

    Raises:
        VerificationError: a rule of the stage is broken; nothing of it may be written.
        DocindexError: it failed.
    """
    with timed(run.key, stage.name), noted(run.note, stage.name):
        return stage.run(run, inputs)


def versions(inputs: Mapping[str, Any]) -> dict[str, str]:
    """The data versions of values, by the stages that made them."""
    known = by_name()
    kept = {name: known[name].storage for name in inputs}
    return {name: storage.version_of(inputs[name]) for name, storage in kept.items() if storage is not None}


def is_current(settings: Settings, source: Source, seen: str | None = None) -> bool:
    """Whether what is published of a source was made from its files and settings as they are now.

    No file is read, and no stage runs. Of a repository that docindex clones, its files are those that are checked out.
    It is False where that is unknown: after a run over single files, and while files were written as they were read.

    Args:
        settings: as they are now.
        source: what is asked about.
        seen: what `fingerprint` says of it now, where that is known.

    Raises:
        SourceError: the source cannot be listed.
    """
    run = SourceRun(settings, source, lambda: load_embedder(settings.embedding))
    found = _found(run, fingerprint(source) if seen is None else seen)
    return found is not None and _published(run, *found) is not None


def made_with(settings: Settings, source: Source) -> str:
    """A hash of the settings that decide what is made of a source: its own, and those of the stages.

    It is the same on all machines, wherever the source lies there.
    """
    own = replace(source, path=Path(), remote=source.remote and replace(source.remote, repository=Path()))
    model = load_embedder(settings.embedding).name  # an upgrade may bring another one under the same settings
    chunked_by = chunking_fingerprint(settings.chunking, summariser_of(settings, source.key))
    graph = GraphPlan(settings.graph, settings.llm).fingerprint
    return digest_parts(repr(own), repr((chunked_by, model, graph, settings.history)))


def state_of(settings: Settings, source: Source, seen: str) -> str:
    """What the tables of a source are made from, as a hash: what `fingerprint` says of it, and the settings."""
    return digest_parts(seen, made_with(settings, source))


def state_of_tables(settings: Settings, source: Source) -> str:
    """The `state_of` which the tables that are here were made from; "" where they are not all there, or of another."""
    run = SourceRun(settings, source, lambda: load_embedder(settings.embedding))
    files = tables.read(run.layout.table(_FILES, run.key))
    seen = fingerprint_of(files) if files is not None else None
    found = _found(run, seen) if seen is not None else None
    if seen is None or found is None or not _are_kept(run, chunking.inputs_of(run, *found).made_from):
        return ""
    return state_of(settings, source, seen)


def _found(run: SourceRun, seen: str) -> tuple[pa.Table, pa.Table] | None:
    """The tables of the files and commits of a source, if they are of the state that was seen of it."""
    files, commits = (tables.read(run.layout.table(name, run.key)) for name in (_FILES, _COMMITS))
    if files is None or commits is None or not files.schema.equals(DISCOVERED_FILES):
        return None
    is_of_now = fingerprint_of(files) == seen and is_history(
        run.source, commits, head_of(files), run.settings.history.commits
    )
    return (files, commits) if is_of_now else None


def _unchanged(run: SourceRun, files: pa.Table, commits: pa.Table) -> Publication | None:
    """What is published, if it was made from these files and commits, and there is nothing to do about it.

    Raises:
        DamagedStoreError: searches use it, and it cannot be opened.
    """
    published = None if run.is_full or run.is_verifying else _published(run, files, commits)
    if published is None:
        return None
    if published.takeover is not None:  # a candidate that is damaged, or that is late, is mended by a publication
        is_settled = bool(published.takeover.missing) and can_be_opened(run.layout, published.generation)
        return published if is_settled else None
    check_published(run.layout)  # nothing would be found, and no later run would notice
    if run.layout.next.exists():
        with run.publishing():
            clean_up.give_up_next(run.layout, published.generation.model)
    return published


def _published(run: SourceRun, files: pa.Table, commits: pa.Table) -> Publication | None:
    """What is published, if it and all tables were made from exactly this."""
    made_from = chunking.inputs_of(run, files, commits).made_from
    model = Model.of(run.load_embedder())
    published = published_from(run.layout, run.key, made_from, revision_of(run), model, plan=run.graph_plan)
    return published if published is not None and _are_kept(run, made_from) else None


def _are_kept(run: SourceRun, made_from: str) -> bool:
    """Whether the tables of all stages after the first two were made from this, by their footers."""
    if tables.metadata_value(run.layout.table(_CHUNKS, run.key), MADE_FROM) != made_from:
        return False
    known = by_name()
    kept = {name: stage.storage.kept_version(run.layout, run.key) for name, stage in known.items() if stage.storage}
    for stage in known.values():
        if stage.storage is None or stage.name in {_FILES, _COMMITS, _CHUNKS}:
            continue
        of_inputs = {name: kept.get(name) or "" for name in stage.inputs}
        if stage.storage.made_of(run.layout, run.key) != stage.made_of(run, of_inputs):
            return False
    return True


def _wait(written: list[Future[bool]]) -> None:
    for table in written:
        table.result()
