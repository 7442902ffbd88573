"""Resources: what a run needs from outside its own rows."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import dagster as dg
import pyarrow as pa
from pydantic import PrivateAttr

from docindex_dagster import tables
from docindex_dagster.access import writing
from docindex_dagster.defs.dead_runs import process_tags
from docindex_dagster.embedding.protocol import Embedder
from docindex_dagster.embedding.providers import load_embedder
from docindex_dagster.events import Notice, Waiting, emit
from docindex_dagster.layout import Layout
from docindex_dagster.locks import exclusive
from docindex_dagster.settings import Settings, load_settings
from docindex_dagster.sources import registry
from docindex_dagster.sources.memory import HEAD
from docindex_dagster.sources.model import Source
from docindex_dagster.stores.staging import Model

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
# A run with this tag looks at some files of its source alone: a JSON list of their paths, as tables name them.
ONLY_TAG = "docindex/only"


class Project(dg.ConfigurableResource):  # type: ignore[type-arg]  # its parameter is for resources that wrap others
    """The project: its settings, read anew for each run so that an edit of `docindex.toml` counts at once."""

    root: str

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

    def model(self) -> Model:
        """What the stores need to know of it."""
        return Model.of(self.load())


class SourceRun(Project):
    """One run over one source. It holds the source's lock from the run's first step to its last."""

    _settings: Settings = PrivateAttr()
    _key: str = PrivateAttr()
    _is_full: bool = PrivateAttr()
    _is_verifying: bool = PrivateAttr()
    _only: tuple[str, ...] = PrivateAttr()

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator["SourceRun"]:
        """Wait for the source's lock, and say for whom."""
        tags = context.run.tags if context.run else {}
        if PARTITION_TAG not in tags:
            raise dg.Failure("choose one partition: a run indexes one source")
        self._key = tags[PARTITION_TAG]
        self._is_full = tags.get(FULL_TAG) == "true"
        self._is_verifying = tags.get(VERIFY_TAG) == "true"
        self._only = tuple(json.loads(tags.get(ONLY_TAG, "[]")))
        self._settings = self.read_settings()
        run_id = context.run.run_id if context.run else ""
        if context.instance and run_id:
            context.instance.add_run_tags(run_id, process_tags(run_id))
        with (
            writing(self._settings) as layout,
            exclusive(
                layout.source_lock(self._key),
                owner=f"run {run_id} of process {os.getpid()}",
                on_wait=partial(self._report_waiting, context.log, "another run of this source"),
            ),
        ):
            yield self

    @property
    def settings(self) -> Settings:
        """The settings at the start of the run."""
        return self._settings

    @property
    def layout(self) -> Layout:
        """Where the index lives."""
        return Layout(self._settings.home)

    @property
    def is_full(self) -> bool:
        """Nothing may be reused."""
        return self._is_full

    @property
    def is_verifying(self) -> bool:
        """No time stamp and no store may be trusted."""
        return self._is_verifying

    @property
    def only(self) -> tuple[str, ...]:
        """The files to look at; empty for all."""
        return self._only

    @property
    def source(self) -> Source:
        """The source of this run.

        Raises:
            SourceError: the settings do not declare it any more.
        """
        return registry.find(self._settings, self._key)

    def previous(self, asset: str) -> pa.Table | None:
        """The table that an earlier run wrote, to take rows from; None in a full run."""
        return None if self._is_full else tables.read(self.layout.table(asset, self._key))

    def revision(self) -> str | None:
        """The version that the settings give the source, or for git the commit that discovery saw."""
        return self.source.version or tables.metadata_value(self.layout.table("discovered_files", self._key), HEAD)

    @contextmanager
    def publication(self, log: dg.DagsterLogManager) -> Iterator[None]:
        """Hold the lock under which generations are written."""
        with exclusive(
            self.layout.publication_lock,
            owner=f"{self._key} of process {os.getpid()}",
            on_wait=partial(self._report_waiting, log, "another publication"),
        ):
            yield

    def reporter(self, log: dg.DagsterLogManager) -> Callable[[str], None]:
        """Tells the log and whoever listens what the user should know."""

        def report(text: str) -> None:
            emit(Notice(self._key, text))
            log.warning(f"{self._key}: {text}")

        return report

    def _report_waiting(self, log: dg.DagsterLogManager | None, what: str, owner: str) -> None:
        emit(Waiting(self._key, f"{what} ({owner})"))
        if log:
            log.info(f"{self._key} waits for {what} ({owner})")
