"""Launching runs on the project's Dagster instance, in this process, so that the UI shows them like any other."""

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote
from uuid import uuid4

import yaml

from docindex_dagster.cli.common import has_record, listed
from docindex_dagster.core import errors, events, interrupts
from docindex_dagster.core.access import writing
from docindex_dagster.core.errors import SettingsError
from docindex_dagster.core.files import replacing, reporting_full_disk
from docindex_dagster.core.garbage import loading
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive
from docindex_dagster.core.privileges import INSTANCE_FILE, trusted_file
from docindex_dagster.core.settings import Settings
from docindex_dagster.sources import registry
from docindex_dagster.stores.generation import read_generation
from docindex_dagster.stores.lance_table import load_library

if TYPE_CHECKING:
    import dagster as dg

    from docindex_dagster.defs.requests import Request
    from docindex_dagster.serving.jobs.model import Job
    from docindex_dagster.status.source_status import Runs

_PACKAGED = Path(__file__).parents[1] / "defs" / INSTANCE_FILE
_OWN_STORAGE = ("storage", "run_storage", "event_log_storage", "schedule_storage")
_QUICK_STORAGE = "docindex_dagster.defs.storage"
# Where local state lies is decided by the folder that holds the file.
_LOCAL_STATE = ("local_artifact_storage", "compute_logs")
# What starts a run in a process of its own.
Launcher = Literal["command line", "watch", "serve"]


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How a run ended: its id, the numbers that its assets reported, and, when it failed, one line a reason."""

    run_id: str
    succeeded: bool
    numbers: dict[str, dict[str, float]]
    failures: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def number(self, asset: str, name: str) -> int:
        """One number of an asset's metadata, rounded; 0 where the asset did not report it."""
        return round(self.numbers.get(asset, {}).get(name, 0))


def dagster_home(settings: Settings) -> Path:
    """The folder of the Dagster instance: `DAGSTER_HOME` where it is set, else one under `DOCINDEX_HOME`.

    The latter gets the project's `dagster.yaml`, or the packaged one where the project has none that is trusted.

    Raises:
        SettingsError: `DAGSTER_HOME` is not a folder, the file is not YAML, or Dagster cannot use the path.
    """
    if chosen := os.environ.get("DAGSTER_HOME"):
        if not Path(chosen).is_absolute() or not Path(chosen).is_dir():
            raise SettingsError(f"DAGSTER_HOME={chosen} must be the absolute path of a folder that exists")
        return Path(chosen)
    layout = Layout(settings.home)
    # Dagster writes the path into the URL of a database as it is, where these would lead elsewhere.
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
        with replacing(target) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return layout.dagster


@contextmanager
def instance(settings: Settings) -> Iterator["dg.DagsterInstance"]:
    """The project's Dagster instance. Two processes that make its databases at once would damage them: one waits."""
    with loading("dagster"):
        from dagster import DagsterInstance, DagsterInvalidConfigError

        from docindex_dagster.defs import connections
        from docindex_dagster.defs.internals import InstanceRef

    lock = Layout(settings.home).instance_lock
    with reporting_full_disk(settings.home), writing(settings):
        with exclusive(lock, owner=f"process {os.getpid()}", on_wait=lambda _: None):
            home = dagster_home(settings)
            try:
                opened = DagsterInstance.from_ref(InstanceRef.from_dir(str(home), overrides=_overrides(home)))
            except DagsterInvalidConfigError as error:
                problems = "; ".join(problem.message for problem in error.errors) or errors.first_line(error)
                raise SettingsError(f"{home / INSTANCE_FILE}: {problems}") from error
        with opened:
            connections.hold(opened)
            yield opened


def _overrides(home: Path) -> dict[str, Any]:
    """What differs from the instance's own settings: no compute logs, and quicker use of the same SQLite files."""
    from docindex_dagster.defs.internals import NO_COMPUTE_LOGS, InstanceRef

    # A command shows its own output: capturing it would cost two watching processes a run.
    uncaptured = {"compute_logs": NO_COMPUTE_LOGS}
    file = home / INSTANCE_FILE
    config = (yaml.safe_load(file.read_text(encoding="utf-8")) or {}) if file.exists() else {}
    if any(key in config for key in _OWN_STORAGE):
        return uncaptured
    usual = InstanceRef.config_defaults(str(home))
    quick = {
        key: {"module": _QUICK_STORAGE, "class": name, "config": yaml.safe_load(storage.config_yaml)}
        for key, name in (("run_storage", "RunStorage"), ("event_log_storage", "EventLogStorage"))
        if (storage := usual[key]) is not None
    }
    return {**uncaptured, **quick}


def outcomes(settings: Settings) -> "Mapping[str, Runs] | None":
    """How the runs of the sources ended that are declared or indexed; None where no run was recorded yet.

    Raises:
        DocindexError: the record cannot be opened.
        OSError: neither may its files be read.
    """
    layout = Layout(settings.home)
    if not has_record(layout):
        return None
    from docindex_dagster.defs import outcomes

    generation = read_generation(layout)
    keys = {*registry.sources(settings), *(generation.sources if generation else ())}
    with instance(settings) as opened:
        return outcomes.of_sources(opened, keys)


def index(
    settings: Settings,
    key: str,
    opened: "dg.DagsterInstance",
    *,
    full: bool = False,
    verify: bool = False,
    only: Sequence[str] = (),
    run_id: str | None = None,
    launched_by: Launcher = "command line",
) -> RunOutcome:
    """Run `index_source` for one source, adding its partition and reporting those of it that were killed first.

    With `full` nothing is reused; with `verify` every file is read and every row of the stores compared. With `only`,
    paths as tables name them, the run looks at these files alone, and makes up for no killed one. A `run_id` that was
    chosen before is a new one.

    Where machines share the stores, the run is some other machine's, and is followed until searches find what it made.

    Raises:
        WorkerError: a script without a main guard called this; its parsing workers would run it again.
        KeyboardInterrupt: the user stopped the run, or only ceased to follow one of another machine.
    """
    from docindex_dagster.chunking.pool import check_main_guard
    from docindex_dagster.defs import shared
    from docindex_dagster.defs.dead_runs import process_tags, report_dead_runs
    from docindex_dagster.defs.partitions import SOURCES_NAME
    from docindex_dagster.defs.resources import LAUNCHER_TAG, PARTITION_TAG

    if settings.storage.url is not None:
        request = ask_for_index(settings, key, opened, full=full, verify=verify, only=only, launched_by=launched_by)
        return followed(settings, request, opened)
    check_main_guard()
    if not only:  # this run makes up for them; others are left to the sensor, which asks for them again
        report_dead_runs(opened, settings, {PARTITION_TAG: key})
    shared.forget_taken_out(opened, settings, key)
    opened.add_dynamic_partitions(SOURCES_NAME, [key])
    run_id = run_id or str(uuid4())
    # From the start, so that a run that dies before its first step is known for dead.
    tags = {**process_tags(run_id), LAUNCHER_TAG: launched_by, **_wishes(full=full, verify=verify, only=only)}
    outcome = _execute(settings, opened, "index_source", run_id=run_id, partition_key=key, tags=tags)
    return replace(outcome, warnings=(*outcome.warnings, *listed(settings))) if outcome.succeeded else outcome


def _wishes(*, full: bool, verify: bool, only: Sequence[str]) -> dict[str, str]:
    """The tags of a run that does more, or less, than look for changes."""
    from docindex_dagster.defs.resources import FULL_TAG, ONLY_TAG, VERIFY_TAG

    if full:
        return {FULL_TAG: "true"}
    if verify:
        return {VERIFY_TAG: "true"}
    return {ONLY_TAG: json.dumps(list(only))} if only else {}


def ask_for_index(
    settings: Settings,
    key: str,
    opened: "dg.DagsterInstance",
    *,
    full: bool = False,
    verify: bool = False,
    only: Sequence[str] = (),
    launched_by: Launcher = "command line",
) -> "Request":
    """Ask for a run of `index_source` on whichever machine has time; the arguments are those of `index`."""
    from docindex_dagster.defs import shared
    from docindex_dagster.defs.partitions import SOURCES_NAME
    from docindex_dagster.defs.requests import Request, ask
    from docindex_dagster.defs.resources import LAUNCHER_TAG

    shared.forget_taken_out(opened, settings, key)
    opened.add_dynamic_partitions(SOURCES_NAME, [key])
    tags = {LAUNCHER_TAG: launched_by, **_wishes(full=full, verify=verify, only=only)}
    request = Request("index_source", key, tags)
    ask(opened, request)
    return request


def ask_for_all(
    settings: Settings,
    wanted: Mapping[str, Collection[str]],
    opened: "dg.DagsterInstance",
    *,
    full: bool = False,
    verify: bool = False,
) -> "dict[str, Request]":
    """Where runs are other machines' to do, ask for those of all sources at once, so that they can share the work.

    Args:
        settings: of the project.
        wanted: the names of files by source; none for all of it.
        opened: the instance.
        full: as for `index`.
        verify: as for `index`.
    """
    if settings.storage.url is None:
        return {}
    return {
        key: ask_for_index(settings, key, opened, full=full, verify=verify, only=sorted(names))
        for key, names in wanted.items()
    }


def taken_out(settings: Settings) -> set[str]:
    """The keys of the sources that were taken out of the index while they are declared."""
    from docindex_dagster.defs import shared

    with instance(settings) as opened:
        return shared.taken_out_of(opened, settings)


def followed(settings: Settings, request: "Request", opened: "dg.DagsterInstance") -> RunOutcome:
    """How the run of a request ended, once it has, and what it made can be searched.

    Raises:
        KeyboardInterrupt: the user does not want to wait; the run goes on.
        JobError: the run was deleted.
        ObjectStoreError: it is not known whether it can be searched, since the store does not answer.
    """
    from docindex_dagster.defs import requests
    from docindex_dagster.defs.failures import reason
    from docindex_dagster.pipeline.visibility import wait_until_published

    with interrupts.noted() as check_interrupt:
        run = requests.follow(opened, request)
        metadata = requests.reported(opened, run.run_id)
        if not run.is_success:
            return RunOutcome(run.run_id, False, _numbers(metadata), (reason(opened, run.run_id),))  # noqa: FBT003
        events.emit(events.Waiting(request.source, "its publication"))
        is_published = wait_until_published(settings, request.source, check_interrupt)
    metadata |= requests.published(opened, request.source)
    warnings = dict.fromkeys(line for asset in metadata.values() for line in asset.get("warnings", "").splitlines())
    refused = () if is_published else ("its tables were refused: see the last run of publish_prepared in the UI",)
    return RunOutcome(run.run_id, is_published, _numbers(metadata), refused, tuple(warnings))


def remove(
    settings: Settings,
    key: str,
    opened: "dg.DagsterInstance",
    *,
    run_id: str | None = None,
    launched_by: Launcher = "command line",
) -> RunOutcome:
    """Run `remove_source` for one source; a `run_id` that was chosen before is a new one.

    Raises:
        KeyboardInterrupt: the user stopped the run.
    """
    from docindex_dagster.defs.dead_runs import process_tags
    from docindex_dagster.defs.jobs import removal_config
    from docindex_dagster.defs.resources import LAUNCHER_TAG, SOURCE_TAG

    if settings.storage.url is not None:
        from docindex_dagster.defs.requests import Request, ask

        request = Request("remove_source", key, {LAUNCHER_TAG: launched_by})
        ask(opened, request)
        return followed(settings, request, opened)
    run_id = run_id or str(uuid4())
    tags = {**process_tags(run_id), LAUNCHER_TAG: launched_by, SOURCE_TAG: key}
    return _execute(settings, opened, "remove_source", run_id=run_id, run_config=removal_config(key), tags=tags)


def _execute(settings: Settings, opened: "dg.DagsterInstance", job: str, **arguments: Any) -> RunOutcome:
    with loading("docindex_dagster.definitions"):
        from docindex_dagster.definitions import definitions_of
        from docindex_dagster.defs.failures import INTERRUPTED, explain

    definition = definitions_of(settings.root).resolve_job_def(job)
    # What failed is said in a line by the caller; the log with its stack traces stands in the UI.
    level = "WARNING" if errors.is_debugging() else "CRITICAL"
    config = {"loggers": {"console": {"config": {"log_level": level}}}, **arguments.pop("run_config", {})}
    with interrupts.noted() as check_interrupt, _preloading():
        result = definition.execute_in_process(instance=opened, raise_on_error=False, run_config=config, **arguments)
        check_interrupt()
    failures = () if result.success else explain(result.all_events)
    if failures == (INTERRUPTED,):
        raise KeyboardInterrupt
    metadata = _metadata(result)
    # The three stores are written by one step and say the same.
    warnings = dict.fromkeys(line for asset in metadata.values() for line in asset.get("warnings", "").splitlines())
    return RunOutcome(result.run_id, result.success, _numbers(metadata), failures, tuple(warnings))


@contextmanager
def _preloading() -> Iterator[None]:
    """Load what the last stage needs, which takes over a second, while the first file is being cut in a worker."""
    loader = Thread(target=load_library)

    def start(event: events.Event) -> None:
        if isinstance(event, events.Progress) and event.stage == "chunks" and event.total and not loader.ident:
            loader.start()

    with events.listening(start):
        yield
    if loader.ident:
        loader.join()


def _metadata(result: "dg.ExecuteInProcessResult") -> dict[str, dict[str, Any]]:
    """What each materialised asset reported."""
    return {
        event.materialization.asset_key.to_user_string(): {
            name: item.value for name, item in event.materialization.metadata.items()
        }
        for event in result.get_asset_materialization_events()
    }


def _numbers(metadata: dict[str, dict[str, Any]]) -> dict[str, dict[str, float]]:
    return {
        asset: {name: value for name, value in values.items() if isinstance(value, (int, float))}
        for asset, values in metadata.items()
    }


class DagsterRuns:
    """Dagster's record of runs, as jobs need it. Each call opens the instance, so that it never sees an old one."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def prepare(self) -> None:
        """Load Dagster, which takes seconds."""
        from docindex_dagster.defs import recorded_runs  # noqa: F401 it is loaded

    def newest(self, limit: int) -> "list[Job]":
        """The newest runs that index or remove a source, as jobs."""
        from docindex_dagster.defs import recorded_runs

        if not self._is_there():
            return []
        with instance(self._settings) as opened:
            return recorded_runs.newest(opened, self._settings, limit)

    def get(self, run_id: str) -> "Job | None":
        """One run as a job; None where there is none."""
        from docindex_dagster.defs import recorded_runs

        if not self._is_there():
            return None
        with instance(self._settings) as opened:
            return recorded_runs.one(opened, self._settings, run_id)

    def cancel(self, run_id: str) -> None:
        """Stop a run.

        Raises:
            EndedJobError: it has ended.
            JobError: it is not known how to reach it.
        """
        from docindex_dagster.defs import recorded_runs

        with instance(self._settings) as opened:
            recorded_runs.cancel(opened, self._settings, run_id)

    def mark_cancelling(self, run_id: str) -> None:
        """Note that a run is about to be stopped on purpose, if there is one."""
        from docindex_dagster.defs import recorded_runs

        with instance(self._settings) as opened:
            recorded_runs.mark_cancelling(opened, run_id)

    def mark_canceled(self, run_id: str) -> None:
        """Note that a run was stopped on purpose, if there is one."""
        from docindex_dagster.defs import recorded_runs

        with instance(self._settings) as opened:
            recorded_runs.mark_canceled(opened, self._settings, run_id)

    def mark_lost(self, run_id: str) -> None:
        """Note that the process of a run is gone, if there is such a run and it has not ended."""
        from docindex_dagster.defs.dead_runs import report_lost_run

        with instance(self._settings) as opened:
            report_lost_run(opened, run_id)

    def _is_there(self) -> bool:
        return has_record(Layout(self._settings.home))
