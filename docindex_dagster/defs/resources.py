"""Resources that runs need: the project, its embedding model, and the run itself."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import dagster as dg
from pydantic import Field, PrivateAttr

from docindex_dagster.core.access import writable_home
from docindex_dagster.core.events import Event, Notice, Waiting, emit
from docindex_dagster.core.git_folders import is_tracked
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import Note, exclusive
from docindex_dagster.core.settings import Settings, load_settings, untrusted_message
from docindex_dagster.defs import dead_runs
from docindex_dagster.defs.tags import FULL_TAG, ONLY_TAG, PARTITION_TAG, VERIFY_TAG
from docindex_dagster.embedding.protocol import Embedder
from docindex_dagster.embedding.providers import load_embedder
from docindex_dagster.pipeline.source_run import SourceRun
from docindex_dagster.pipeline.stages import stages
from docindex_dagster.runner.entries import StageEntry
from docindex_dagster.runner.run import SteppedRun
from docindex_dagster.sources import registry


class Project(dg.ConfigurableResource):  # type: ignore[type-arg]  # its parameter is for resources that wrap others
    """The project, whose settings are read for each run so that edits to `docindex.toml` take effect immediately."""

    root: str

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        """Refuse a run that another user may have planned.

        Raises:
            Failure: The run configures resources, so it could target another project; or git tracks Dagster's
                databases, so a pull may have planned the run.
        """
        if context.run is not None and context.run.run_config.get("resources"):
            raise dg.Failure("runs cannot configure docindex resources: remove `resources` from the run config")
        if context.instance is not None and is_tracked(home := Path(os.path.realpath(context.instance.root_directory))):
            raise dg.Failure(f"git tracks files in {home}, so anyone who can push controls runs: remove them from git")

    def read_settings(self) -> Settings:
        """Read the current settings."""
        return load_settings(Path(self.root))

    @property
    def layout(self) -> Layout:
        """The location of the index."""
        return Layout(self.read_settings().home)


class EmbeddingModel(Project):
    """The configured embedding model."""

    def load(self) -> Embedder:
        """Return the embedder; it loads its weights on first use."""
        return load_embedder(self.read_settings().embedding)


class RunResource(Project):
    """Run over one source. It holds the lock of the source from its first step to its last."""

    left_out: list[str] = Field(default_factory=list)
    """Names of stages that runs of another job execute."""
    pooled: list[str] = Field(default_factory=list)
    """Names of stages that wait for a slot in a pool."""
    _settings: Settings = PrivateAttr()
    _run: dg.DagsterRun = PrivateAttr()
    _note: Note = PrivateAttr()
    _log: dg.DagsterLogManager | None = PrivateAttr()
    _opened: ExitStack = PrivateAttr()
    _stages: SteppedRun | None = PrivateAttr(default=None)

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator["RunResource"]:
        """Wait for the lock of the source, and report who holds it."""
        self.setup_for_execution(context)
        if context.run is None or PARTITION_TAG not in context.run.tags:
            raise dg.Failure("no partition selected: a run indexes exactly one source, so select its partition")
        self._run, self._log, self._settings, self._stages = context.run, context.log, self.read_settings(), None
        if self._log and (distrust := untrusted_message(self._settings)):
            self._log.warning(distrust)
        if context.instance and self._run.run_id:
            dead_runs.record_process(context.instance, self._settings, self._run.run_id)

        def wait(owner: str) -> None:
            report_event(self._log, Waiting(self.key, f"another run of this source ({owner})"))

        with (
            writable_home(self._settings) as layout,
            exclusive(layout.source_lock(self.key), f"run {self._run.run_id} of process {os.getpid()}", wait) as note,
            ExitStack() as opened,
        ):
            self._note, self._opened = note, opened
            yield self

    @property
    def key(self) -> str:
        """The key of the source."""
        return self._run.tags[PARTITION_TAG]

    def entry(self, stage: str, context: dg.AssetExecutionContext) -> StageEntry:
        """Run the stages up to the given one, and return its result.

        Raises:
            SourceError: The settings no longer declare the source.
            DocindexError: The stage failed.
        """
        self._log = context.log
        if self._stages is None:
            source_run = self._source_run(context.resources.embedding_model.load)
            running = SteppedRun(source_run, self._selected(), self.pooled)
            self._stages = self._opened.enter_context(closing(running))
        return self._stages.entry(stage)

    def _selected(self) -> list[str]:
        """Return the names of the stages whose assets the run materializes."""
        steps, assets = self._run.step_keys_to_execute, self._run.asset_selection
        return [
            stage.name
            for stage in stages()
            if stage.name not in self.left_out
            and (not steps or stage.name in steps)
            and (not assets or any(dg.AssetKey(product.name) in assets for product in stage.products))
        ]

    def _source_run(self, load_embedder: Callable[[], Embedder]) -> SourceRun:
        tags = self._run.tags
        return SourceRun(
            self._settings,
            registry.find(self._settings, self.key),
            load_embedder,
            is_full=tags.get(FULL_TAG) == "true",
            is_verifying=tags.get(VERIFY_TAG) == "true",
            only=tuple(json.loads(tags.get(ONLY_TAG, "[]"))),
            report=lambda event: report_event(self._log, event),
            note=self._note,
        )


def report_event(log: dg.DagsterLogManager | None, event: Event) -> None:
    """Send an event to the log and to all listeners."""
    emit(event)
    if log and isinstance(event, Notice):
        log.warning(f"{event.source}: {event.text}")
    elif log and isinstance(event, Waiting):
        log.info(f"{event.source}: waiting for {event.reason}")
