"""Where machines share the stores: runs that a command asks for, which Dagster's queue starts on some machine.

A command needs nothing but Dagster's instance to ask: no web server, and no code location of its own, whose name a run
would have to bear. The sensor `run_requested` asks in its turn. A request is a partition of no asset, until its run is
there.
"""

import base64
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import islice
from typing import Any, TypeVar
from uuid import uuid4

import dagster as dg

from docindex_dagster.core.errors import JobError
from docindex_dagster.core.events import Notice, StageBegan, Waiting, emit
from docindex_dagster.core.retry import Retry
from docindex_dagster.defs.jobs import REMOVE_SOURCE, index_source, removal_config
from docindex_dagster.defs.outcomes import MOST_REQUESTS
from docindex_dagster.defs.tags import (
    DATA_VERSION_TAG,
    PREPARED_VERSION_TAG,
    REQUEST_TAG,
    REQUESTS_NAME,
    SOURCE_TAG,
    SOURCES_NAME,
)
from docindex_dagster.pipeline.publication import STORES

_INTERVAL_S = 5  # of the sensor
_POLL_S = 0.5
_LONGEST_REPORT_S = 10  # from the publication of a source to its events
_PATIENCE_S = 60  # until it is said that no daemon seems to be at work
# The database may be restarted while a command waits for its run: for a minute, together with Dagster's own attempts.
_RETRY = Retry(retries=8, longest_wait_s=10.0)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Request:
    """A run of a job for a source, with tags."""

    job: str
    source: str
    tags: Mapping[str, str] = field(default_factory=dict)
    id: str = field(default_factory=lambda: str(uuid4()))

    def as_partition(self) -> str:
        """Written so that it may be the key of a partition, whatever a tag holds."""
        return base64.urlsafe_b64encode(json.dumps(asdict(self), sort_keys=True).encode()).decode()

    @classmethod
    def of_partition(cls, key: str) -> "Request":
        """What `as_partition` wrote."""
        return cls(**json.loads(base64.urlsafe_b64decode(key)))


def ask(instance: dg.DagsterInstance, request: Request) -> Request:
    """Ask for a run, and return its request."""
    instance.add_dynamic_partitions(REQUESTS_NAME, [request.as_partition()])
    return request


def pending(instance: dg.DagsterInstance) -> Iterator[Request]:
    """The requests whose runs are not there yet, the oldest one first; those of others are forgotten on the way."""
    for key in instance.get_dynamic_partitions(REQUESTS_NAME):
        request = Request.of_partition(key)
        if _run_of(instance, request) is None:
            yield request
        else:
            instance.delete_dynamic_partition(REQUESTS_NAME, key)


def follow(instance: dg.DagsterInstance, request: Request) -> dg.DagsterRun:
    """Announce what the run of a request does, and return it once it has ended.

    Raises:
        JobError: its run was deleted.
    """
    run = _started(instance, request)
    for _ in _steps(instance, request.source, run.run_id):
        found = _read(lambda: instance.get_run_by_id(run.run_id))
        if found is None:
            raise JobError(f"run {run.run_id} of {request.source} was deleted")
        if found.is_finished:
            return found
        time.sleep(_POLL_S)
    raise JobError(f"run {run.run_id} of {request.source} is gone")


def _started(instance: dg.DagsterInstance, request: Request) -> dg.DagsterRun:
    began, is_reported = time.monotonic(), False
    emit(Waiting(request.source, "a place in Dagster's queue"))
    while (run := _run_of(instance, request)) is None:
        if not is_reported and time.monotonic() - began > _PATIENCE_S:
            is_reported = True
            emit(Notice(request.source, "nobody took the request yet: is Dagster's daemon at work?"))
        time.sleep(_POLL_S)
    return run


def _run_of(instance: dg.DagsterInstance, request: Request) -> dg.DagsterRun | None:
    wanted = dg.RunsFilter(tags={REQUEST_TAG: request.id})
    return next(iter(_read(lambda: instance.get_runs(wanted, limit=1))), None)


def _steps(instance: dg.DagsterInstance, source: str, run_id: str) -> Iterator[None]:
    """Announce each step that begins, as often as it is asked for."""
    cursor: str | None = None
    while True:
        page = _read(partial(instance.get_records_for_run, run_id, cursor, dg.DagsterEventType.STEP_START))
        cursor = page.cursor
        for record in page.records:
            emit(StageBegan(source, record.event_log_entry.step_key or ""))
        yield


def _read(read: Callable[[], _T]) -> _T:
    """What is read of Dagster's record, also where its database is restarted meanwhile."""
    return _RETRY.call(read, _is_of_database, lambda _: None)


def _is_of_database(error: BaseException) -> bool:
    from sqlalchemy.exc import DBAPIError

    return isinstance(error, DBAPIError) or isinstance(error.__cause__, DBAPIError)


def reported(instance: dg.DagsterInstance, run_id: str) -> dict[str, dict[str, Any]]:
    """What each asset that a run materialised reported."""
    return {made.asset_key.to_user_string(): _values(made) for made in _made(instance, run_id)}


def published(instance: dg.DagsterInstance, source: str, run_id: str) -> dict[str, dict[str, Any]]:
    """What the stores reported when they published what a run prepared, which they do soon after searches find it.

    Where the tables of a later run were published in its place: what they reported last.
    """
    prepared = [made for made in _made(instance, run_id) if made.asset_key.to_user_string() == "prepared_tables"]
    versions = {(made.tags or {}).get(DATA_VERSION_TAG) for made in prepared}
    until = time.monotonic() + _LONGEST_REPORT_S
    while True:
        newest = list(_newest_publications(instance, source))
        made_from = {(made.tags or {}).get(PREPARED_VERSION_TAG) for made in newest}
        is_reported = len(newest) == len(STORES.products) and made_from == versions
        if is_reported or not prepared or time.monotonic() > until:
            return {made.asset_key.to_user_string(): _values(made) for made in newest}
        time.sleep(_POLL_S)


def _newest_publications(instance: dg.DagsterInstance, source: str) -> Iterator[dg.AssetMaterialization]:
    for product in STORES.products:
        wanted = dg.AssetRecordsFilter(dg.AssetKey(product.name), asset_partitions=[source])
        for record in _read(partial(instance.fetch_materializations, wanted, limit=1)).records:
            if record.asset_materialization is not None:
                yield record.asset_materialization


def _made(instance: dg.DagsterInstance, run_id: str) -> list[dg.AssetMaterialization]:
    kind = dg.DagsterEventType.ASSET_MATERIALIZATION
    records = _read(lambda: instance.get_records_for_run(run_id, of_type=kind)).records
    found = (record.event_log_entry.asset_materialization for record in records)
    return [made for made in found if made is not None]


def _values(made: dg.AssetMaterialization) -> dict[str, Any]:
    return {name: item.value for name, item in made.metadata.items()}


def run_requested(remove_source: dg.JobDefinition) -> dg.SensorDefinition:
    """The sensor, which asks for runs of `index_source` and of the given job."""

    @dg.sensor(
        name="run_requested",
        jobs=[index_source, remove_source],
        minimum_interval_seconds=_INTERVAL_S,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Asks for the runs that `docindex index` and `docindex source remove` want; see docs/scale.md.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        found = list(islice(pending(context.instance), MOST_REQUESTS))
        # A partition may have been deleted meanwhile: then Dagster would refuse this request, and all others with it.
        indexed = [request.source for request in found if request.job == index_source.name]
        if indexed:
            context.instance.add_dynamic_partitions(SOURCES_NAME, indexed)
        idle = dg.SkipReason("no command asks for a run")
        return dg.SensorResult(run_requests=[*map(_run_request, found)], skip_reason=None if found else idle)

    return sensor


def _run_request(request: Request) -> dg.RunRequest:
    tags = {**request.tags, REQUEST_TAG: request.id}
    if request.job == REMOVE_SOURCE:
        config, tags = removal_config(request.source), {**tags, SOURCE_TAG: request.source}
        return dg.RunRequest(job_name=REMOVE_SOURCE, run_key=request.id, run_config=config, tags=tags)
    return dg.RunRequest(job_name=index_source.name, run_key=request.id, partition_key=request.source, tags=tags)
