"""Launch runs on the project's Dagster instance from this process, so that the UI shows them like any other run."""

import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import yaml

from docindex_dagster.cli.common import has_recorded_runs, register_project
from docindex_dagster.core import errors, events, interrupts
from docindex_dagster.core.access import writable_home
from docindex_dagster.core.errors import SettingsError
from docindex_dagster.core.files import atomic_write, reporting_full_disk
from docindex_dagster.core.garbage_collection import frozen_import
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive
from docindex_dagster.core.privileges import INSTANCE_FILE, trusted_file
from docindex_dagster.core.settings import Settings
from docindex_dagster.sources import registry
from docindex_dagster.stores.generation import read_generation

if TYPE_CHECKING:
    import dagster as dg

    from docindex_dagster.defs.requests import Request
    from docindex_dagster.runner.entries import Launcher, Mode
    from docindex_dagster.runner.journal import Writer
    from docindex_dagster.runner.runs import RunOutcome
    from docindex_dagster.serving.jobs.model import Job
    from docindex_dagster.serving.jobs.queue import Jobs
    from docindex_dagster.status.source_status import Runs

_PACKAGED = Path(__file__).parents[1] / "defs" / INSTANCE_FILE
_JOB = (sys.executable, "-P", "-m", "docindex_dagster.cli.job")
# Dagster derives the location of local state from the folder that holds the file.
_LOCAL_STATE = ("local_artifact_storage", "compute_logs")


def dagster_home(settings: Settings) -> Path:
    """Return the folder of the Dagster instance: `DAGSTER_HOME` if it is set, otherwise one under `DOCINDEX_HOME`.

    The latter gets the project's `dagster.yaml`, or the packaged one if the project has no trusted file.

    Raises:
        SettingsError: `DAGSTER_HOME` is not a folder, the file is not YAML, or Dagster cannot use the path.
    """
    if chosen := os.environ.get("DAGSTER_HOME"):
        if not Path(chosen).is_absolute() or not Path(chosen).is_dir():
            raise SettingsError(f"DAGSTER_HOME={chosen} must be the absolute path of an existing folder")
        return Path(chosen)
    layout = Layout(settings.home)
    # Dagster writes the path into a database URL without escaping it, so these characters would change its meaning.
    if unquote(place := str(layout.dagster)) != place or "?" in place:
        raise SettingsError(
            f"Dagster cannot keep its databases in {place}: set DOCINDEX_HOME to a path without '%' and '?'"
        )
    own = trusted_file(settings.root, INSTANCE_FILE)
    try:
        config: dict[str, Any] = yaml.safe_load(_PACKAGED.read_bytes() if own is None else own) or {}
    except yaml.YAMLError as error:
        raise SettingsError(f"{settings.root / INSTANCE_FILE} is not YAML: {errors.first_line(error)}") from error
    if "sqlite" in config.get("storage", {"sqlite": {}}):
        config = {key: value for key, value in config.items() if key not in {"storage", *_LOCAL_STATE}}
    text = yaml.safe_dump(config)
    target = layout.dagster / INSTANCE_FILE
    if not target.exists() or target.read_text(encoding="utf-8") != text:
        with atomic_write(target) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return layout.dagster


@contextmanager
def instance(settings: Settings) -> Iterator["dg.DagsterInstance"]:
    """Open the project's Dagster instance. Processes take turns, since creating its databases twice damages them."""
    with frozen_import("dagster"):
        from dagster import DagsterInstance, DagsterInvalidConfigError

        from docindex_dagster.defs import dead_runs

    lock = Layout(settings.home).instance_lock
    with reporting_full_disk(settings.home), writable_home(settings):
        with exclusive(lock, owner=f"process {os.getpid()}", on_wait=lambda _: None):
            home = dagster_home(settings)
            try:
                opened = DagsterInstance.from_config(str(home))
            except DagsterInvalidConfigError as error:
                problems = "; ".join(problem.message for problem in error.errors) or errors.first_line(error)
                raise SettingsError(f"{home / INSTANCE_FILE}: {problems}") from error
        with opened:
            dead_runs.keep_connections(opened)
            yield opened


def outcomes(settings: Settings) -> "Mapping[str, Runs] | None":
    """Return the outcomes of the runs of all declared or indexed sources; None if no run is recorded yet.

    Raises:
        DocindexError: The record cannot be opened.
        OSError: The files of the record cannot be read.
    """
    from docindex_dagster.runner import journal

    layout = Layout(settings.home)
    return journal.outcomes(layout, _recorded_outcomes(settings, layout) if has_recorded_runs(layout) else None)


def _recorded_outcomes(settings: Settings, layout: Layout) -> "Mapping[str, Runs]":
    from docindex_dagster.defs import outcomes

    generation = read_generation(layout)
    keys = {*registry.sources(settings), *(generation.sources if generation else ())}
    with instance(settings) as opened:
        return outcomes.runs_of_sources(opened, keys)


def index(
    settings: Settings,
    key: str,
    *,
    mode: "Mode" = "changes",
    only: tuple[str, ...] = (),
    launched_by: "Launcher" = "command line",
    begun: "Writer | None" = None,
) -> "RunOutcome":
    """Bring a source up to date, see `runner.runs.index`, and add the project to the user's list of projects.

    If machines share the stores, another machine may do the run. This waits until searches find its results.

    Raises:
        WorkerError: The calling script has no main guard, so its parsing workers would run it again.
        KeyboardInterrupt: The user stopped the run, or stopped following a run on another machine.
        FullDiskError: The disk is full, so the journal cannot be written.
    """
    if settings.storage.url is not None:
        with instance(settings) as opened:
            return follow_request(settings, request_index_run(settings, key, opened, mode, only, launched_by), opened)
    from docindex_dagster.operations import index as operation

    request = operation.IndexRequest(mode=mode, paths=list(only))
    outcome = operation.index(settings, key, request, launched_by, begun)
    return replace(outcome, warnings=(*outcome.warnings, *register_project(settings))) if outcome.succeeded else outcome


def request_index_run(
    settings: Settings,
    key: str,
    opened: "dg.DagsterInstance",
    mode: "Mode" = "changes",
    only: Sequence[str] = (),
    launched_by: "Launcher" = "command line",
) -> "Request":
    """Request a run of `index_source` from any machine that is free. The arguments are those of `index`."""
    from docindex_dagster.defs import shared
    from docindex_dagster.defs.requests import Request, submit_request
    from docindex_dagster.defs.tags import LAUNCHER_TAG, SOURCES_NAME, tags_of

    shared.forget_removed(opened, settings, key)
    opened.add_dynamic_partitions(SOURCES_NAME, [key])
    tags = {LAUNCHER_TAG: launched_by, **tags_of(mode, only)}
    return submit_request(opened, Request("index_source", key, tags))


@contextmanager
def request_runs(
    settings: Settings, wanted: Mapping[str, Collection[str]], mode: "Mode"
) -> "Iterator[Callable[[str], RunOutcome] | None]":
    """If other machines do the runs, request all of them at once and yield a function that follows one.

    Yield None if this machine does the runs.

    Args:
        settings: the project's settings.
        wanted: the names of files by source; empty for all files.
        mode: as for `index`.
    """
    if settings.storage.url is None:
        yield None
        return
    with instance(settings) as opened:
        requests = {
            key: request_index_run(settings, key, opened, mode=mode, only=sorted(names))
            for key, names in wanted.items()
        }
        yield lambda key: follow_request(settings, requests[key], opened)


def removed_keys(settings: Settings) -> set[str]:
    """Return the keys of declared sources that a user removed from the index."""
    from docindex_dagster.defs import shared

    with instance(settings) as opened:
        return shared.removed_keys(opened, settings)


def follow_request(settings: Settings, request: "Request", opened: "dg.DagsterInstance") -> "RunOutcome":
    """Wait until the run of a request has ended and its results are searchable; return its outcome.

    Raises:
        KeyboardInterrupt: The user stopped waiting. The run continues.
        JobError: The run was deleted.
        ObjectStoreError: The store does not answer, so it is unknown whether the results are searchable.
    """
    from docindex_dagster.defs import requests
    from docindex_dagster.defs.outcomes import reason
    from docindex_dagster.objects.shared_stores import wait_until_published
    from docindex_dagster.runner.runs import RunOutcome

    with interrupts.interrupt_check() as check_interrupt:
        run = requests.follow_run(opened, request)
        metadata = requests.reported(opened, run.run_id)
        if not run.is_success:
            return RunOutcome(run.run_id, False, _numbers(metadata), (reason(opened, run.run_id),))  # noqa: FBT003
        events.emit(events.Waiting(request.source, "its publication"))
        is_published = wait_until_published(settings, request.source, check_interrupt)
    metadata |= requests.published(opened, request.source, run.run_id)
    warnings = dict.fromkeys(line for asset in metadata.values() for line in asset.get("warnings", "").splitlines())
    refused = () if is_published else ("its tables were rejected: see the last run of publish_prepared in the UI",)
    return RunOutcome(run.run_id, is_published, _numbers(metadata), refused, tuple(warnings))


def remove(settings: Settings, key: str, *, launched_by: "Launcher" = "command line") -> tuple[str, ...]:
    """Remove a source from the index and from Dagster; return the reasons if that fails.

    If machines share the stores, another machine may do the run. This waits until searches no longer find the source.
    """
    from docindex_dagster.runner.runs import removing

    if settings.storage.url is not None:
        with instance(settings) as opened:
            return follow_request(settings, request_removal(key, opened, launched_by), opened).failures
    with removing(settings, key, lambda owner: events.emit(events.Waiting(key, owner))):
        if has_recorded_runs(Layout(settings.home)):
            from docindex_dagster.defs.jobs import forget_source

            with instance(settings) as opened:
                forget_source(opened, settings, key)
    return ()


def request_removal(key: str, opened: "dg.DagsterInstance", launched_by: "Launcher" = "command line") -> "Request":
    """Request a run of `remove_source` from any machine that is free."""
    from docindex_dagster.defs.requests import Request, submit_request
    from docindex_dagster.defs.tags import LAUNCHER_TAG

    return submit_request(opened, Request("remove_source", key, {LAUNCHER_TAG: launched_by}))


def _numbers(metadata: dict[str, dict[str, Any]]) -> dict[str, dict[str, float]]:
    return {
        asset: {name: value for name, value in values.items() if isinstance(value, (int, float))}
        for asset, values in metadata.items()
    }


class RecordedRuns:
    """The runs of a project that Dagster has recorded, as jobs.

    Each call opens Dagster's instance, so that its data is never outdated.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def newest(self, limit: int) -> "list[Job]":
        """Return the newest runs that index or remove a source, as jobs."""
        if not has_recorded_runs(Layout(self._settings.home)):
            return []
        from docindex_dagster.defs import recorded_runs

        with instance(self._settings) as opened:
            return recorded_runs.newest_jobs(opened, self._settings, limit)

    def get(self, run_id: str) -> "Job | None":
        """Return a run as a job; None if it does not exist."""
        if not has_recorded_runs(Layout(self._settings.home)):
            return None
        from docindex_dagster.defs import recorded_runs

        with instance(self._settings) as opened:
            return recorded_runs.find_job(opened, self._settings, run_id)

    def cancel(self, run_id: str) -> None:
        """Stop a run.

        Raises:
            EndedJobError: The run has ended.
            JobError: The process of the run is unknown.
        """
        from docindex_dagster.defs import recorded_runs

        with instance(self._settings) as opened:
            recorded_runs.cancel(opened, self._settings, run_id)


def job_queue(settings: Settings, *, is_on: bool = True) -> "Jobs":
    """Return the job queue of `docindex serve`, not yet opened; see `Jobs`."""
    from docindex_dagster.serving.jobs.queue import Jobs

    return Jobs(settings, RecordedRuns(settings), _JOB, is_on=is_on)
