"""Resources: what a run needs from outside its own rows."""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import PrivateAttr

from docindex_dagster.core.access import writing
from docindex_dagster.core.errors import VerificationError
from docindex_dagster.core.events import Event, Notice, Waiting, emit
from docindex_dagster.core.git_folders import is_tracked
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import Note, exclusive
from docindex_dagster.core.settings import Settings, load_settings, untrusted
from docindex_dagster.defs import dead_runs
from docindex_dagster.defs.io_managers import Made
from docindex_dagster.embedding.protocol import Embedder
from docindex_dagster.embedding.providers import load_embedder
from docindex_dagster.pipeline.source_run import SourceRun
from docindex_dagster.pipeline.stage import Stage
from docindex_dagster.runner.entries import StageEntry
from docindex_dagster.runner.run import execute, versions
from docindex_dagster.sources import registry
from docindex_dagster.sources.model import Source

# Dagster's own tag for the partition of a run.
PARTITION_TAG = "dagster/partition"
# A run with this tag reuses nothing: `docindex index --full`.
FULL_TAG = "docindex/full"
# A run with this tag trusts no time stamp and no store: every file is read, and every row compared.
VERIFY_TAG = "docindex/verify"
# Why a sensor or schedule asked for a run.
REASON_TAG = "docindex/reason"
# The source that a run of `remove_source` takes out.
SOURCE_TAG = "docindex/source"
# What started a run in a process of its own: "command line", "watch" or "serve".
LAUNCHER_TAG = "docindex/launched_by"
# A run with this tag looks at some files of its source alone: a JSON list of their paths, as tables name them.
ONLY_TAG = "docindex/only"
# When a run ended that was recorded later, UTC in ISO 8601.
ENDED_AT_TAG = "docindex/ended_at"
# Of a run that published all but the sources whose tables it refused: it has failed because of them alone.
REFUSED_TAG = "docindex/refused"


class Project(dg.ConfigurableResource):  # type: ignore[type-arg]  # its parameter is for resources that wrap others
    """The project: its settings, read anew for each run so that an edit of `docindex.toml` counts at once."""

    root: str

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        """Refuse a run that another user may have planned.

        Raises:
            Failure: the run configures resources, so it could reach another project; or git tracks Dagster's databases,
                so a pull may have planned it.
        """
        if context.run is not None and context.run.run_config.get("resources"):
            raise dg.Failure("a run cannot configure the resources of docindex: remove `resources` from its config")
        if context.instance is not None and is_tracked(home := Path(context.instance.root_directory)):
            raise dg.Failure(f"git tracks files in {home}, so whoever pushes decides what runs; remove it from git")

    def read_settings(self) -> Settings:
        """The settings as they stand now."""
        return load_settings(Path(self.root))

    @property
    def layout(self) -> Layout:
        """Where the index lives."""
        return Layout(self.read_settings().home)


class EmbeddingModel(Project):
    """The embedder that the settings name."""

    def load(self) -> Embedder:
        """The embedder; its weights are loaded when it first embeds."""
        return load_embedder(self.read_settings().embedding)


class RunResource(Project):
    """One run over one source. It holds the source's lock from the run's first step to its last."""

    _settings: Settings = PrivateAttr()
    _tags: Mapping[str, str] = PrivateAttr()
    _note: Note = PrivateAttr()
    _source: Source | None = PrivateAttr()

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator["RunResource"]:
        """Wait for the source's lock, and say for whom."""
        self.setup_for_execution(context)
        self._tags = context.run.tags if context.run else {}
        if PARTITION_TAG not in self._tags:
            raise dg.Failure("choose one partition: a run indexes one source")
        key = self._tags[PARTITION_TAG]
        self._settings, self._source = self.read_settings(), None
        if context.log and (distrust := untrusted(self._settings)):
            context.log.warning(distrust)
        run_id = context.run.run_id if context.run else ""
        if context.instance and run_id:
            dead_runs.begin(context.instance, self._settings, run_id)

        def wait(owner: str) -> None:
            report_event(context.log, Waiting(key, f"another run of this source ({owner})"))

        with (
            writing(self._settings) as layout,
            exclusive(layout.source_lock(key), f"run {run_id} of process {os.getpid()}", wait) as note,
        ):
            self._note = note
            yield self

    def do(
        self,
        stage: Stage,
        log: dg.DagsterLogManager,
        load_embedder: Callable[[], Embedder],
        inputs: Mapping[str, Any],
    ) -> tuple[StageEntry, Made | None]:
        """Do a stage, and write its tables: what it did, and its value.

        Raises:
            DocindexError: it failed.
        """
        run, started = self.of(log, load_embedder), time.perf_counter()
        try:
            outcome = execute(stage, run, inputs)
        except VerificationError as error:
            return StageEntry(stage.name, broken=error.failures), None
        seconds = round(time.perf_counter() - started, 3)
        entry = replace(StageEntry.of(stage.name, outcome), seconds=seconds)
        if stage.storage is None:
            return entry, None
        return entry, Made(outcome.value, stage.keep(run, outcome.value, versions(inputs)))

    def of(self, log: dg.DagsterLogManager, load_embedder: Callable[[], Embedder]) -> SourceRun:
        """What the stages of this run get.

        Raises:
            SourceError: the settings do not declare the source any more.
        """
        self._source = self._source or registry.find(self._settings, self._tags[PARTITION_TAG])
        return SourceRun(
            self._settings,
            self._source,
            load_embedder,
            is_full=self._tags.get(FULL_TAG) == "true",
            is_verifying=self._tags.get(VERIFY_TAG) == "true",
            only=tuple(json.loads(self._tags.get(ONLY_TAG, "[]"))),
            report=partial(report_event, log),
            note=self._note,
        )


def report_event(log: dg.DagsterLogManager | None, event: Event) -> None:
    """Pass an event to the log and to all listeners."""
    emit(event)
    if log and isinstance(event, Notice):
        log.warning(f"{event.source}: {event.text}")
    elif log and isinstance(event, Waiting):
        log.info(f"{event.source} waits for {event.reason}")
