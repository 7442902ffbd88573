"""Running the stages over a source, without Dagster's record of it.

For programs that embed docindex, for tests, and for measuring what a run costs beside what Dagster adds.
"""

import os
import time
from collections.abc import Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from docindex_dagster.chunking.pool import check_main_guard
from docindex_dagster.core.access import writing
from docindex_dagster.core.errors import SettingsError
from docindex_dagster.core.events import Waiting, emit
from docindex_dagster.core.events import stage as timed
from docindex_dagster.core.files import reporting_full_disk
from docindex_dagster.core.garbage import give_back
from docindex_dagster.core.locks import exclusive
from docindex_dagster.core.settings import Settings
from docindex_dagster.core.work import noted
from docindex_dagster.embedding.protocol import Embedder
from docindex_dagster.pipeline.current import unchanged
from docindex_dagster.pipeline.source_run import SourceRun
from docindex_dagster.pipeline.stage import Outcome, Stage
from docindex_dagster.pipeline.stages import by_name, stages
from docindex_dagster.sources.model import Source
from docindex_dagster.stores.publish import Publication

# A stage that takes so long may have freed much memory, which takes 10 ms to give back.
_LONG_S = 0.2
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
                published = unchanged(run, outcomes[_FILES].value, outcomes[_COMMITS].value)
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
    started = time.monotonic()
    with timed(run.key, stage.name), noted(run.note, stage.name):
        outcome = stage.run(run, inputs)
    if time.monotonic() - started > _LONG_S:
        give_back()
    return outcome


def versions(inputs: Mapping[str, Any]) -> dict[str, str]:
    """The data versions of values, by the stages that made them."""
    known = by_name()
    kept = {name: known[name].storage for name in inputs}
    return {name: storage.version_of(inputs[name]) for name, storage in kept.items() if storage is not None}


def _wait(written: list[Future[bool]]) -> None:
    for table in written:
        table.result()
