"""Run requests for machines with shared stores: a command requests a run, and Dagster's queue starts it on any machine.

A command needs only Dagster's instance to request a run: no web server, and no code location whose name the run would
have to carry. The sensor `run_requested` turns requests into runs. Until its run exists, a request is stored as a
dynamic partition that belongs to no asset.
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

_INTERVAL_S = 5  # interval of the sensor
_POLL_S = 0.5
_LONGEST_REPORT_S = 10  # from the publication of a source to its events
_PATIENCE_S = 60  # until a notice says that no daemon seems to run
# The database may restart while a command waits for its run: tolerate a minute, including Dagster's own retries.
_RETRY = Retry(retries=8, longest_wait_s=10.0)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Request:
    """Requested run of a job for a source, with tags."""

    job: str
    source: str
    tags: Mapping[str, str] = field(default_factory=dict)
    id: str = field(default_factory=lambda: str(uuid4()))

    def as_partition(self) -> str:
        """Encode the request as a partition key that is valid for all tag values."""
        return base64.urlsafe_b64encode(json.dumps(asdict(self), sort_keys=True).encode()).decode()

    @classmethod
    def of_partition(cls, key: str) -> "Request":
        """Decode a key from `as_partition`."""
        return cls(**json.loads(base64.urlsafe_b64decode(key)))


def submit_request(instance: dg.DagsterInstance, request: Request) -> Request:
    """Request a run, and return the request."""
    instance.add_dynamic_partitions(REQUESTS_NAME, [request.as_partition()])
    return request


def pending_requests(instance: dg.DagsterInstance) -> Iterator[Request]:
    """Yield the requests that have no run yet, oldest first, and delete the others."""
    for key in instance.get_dynamic_partitions(REQUESTS_NAME):
        request = Request.of_partition(key)
        if _run_of(instance, request) is None:
            yield request
        else:
            instance.delete_dynamic_partition(REQUESTS_NAME, key)


def follow_run(instance: dg.DagsterInstance, request: Request) -> dg.DagsterRun:
    """Announce the steps of a requested run, and return the run once it has ended.

    Raises:
        JobError: The run was deleted.
    """
    run = _wait_for_run(instance, request)
    for _ in _steps(instance, request.source, run.run_id):
        found = _read(lambda: instance.get_run_by_id(run.run_id))
        if found is None:
            raise JobError(f"run {run.run_id} of {request.source} was deleted")
        if found.is_finished:
            return found
        time.sleep(_POLL_S)
    raise JobError(f"run {run.run_id} of {request.source} no longer exists")


def _wait_for_run(instance: dg.DagsterInstance, request: Request) -> dg.DagsterRun:
    started_at, is_reported = time.monotonic(), False
    emit(Waiting(request.source, "a slot in Dagster's queue"))
    while (run := _run_of(instance, request)) is None:
        if not is_reported and time.monotonic() - started_at > _PATIENCE_S:
            is_reported = True
            emit(Notice(request.source, "still queued: is Dagster's daemon running?"))
        time.sleep(_POLL_S)
    return run


def _run_of(instance: dg.DagsterInstance, request: Request) -> dg.DagsterRun | None:
    wanted = dg.RunsFilter(tags={REQUEST_TAG: request.id})
    return next(iter(_read(lambda: instance.get_runs(wanted, limit=1))), None)


def _steps(instance: dg.DagsterInstance, source: str, run_id: str) -> Iterator[None]:
    """Announce new steps each time the caller asks for the next item."""
    cursor: str | None = None
    while True:
        page = _read(partial(instance.get_records_for_run, run_id, cursor, dg.DagsterEventType.STEP_START))
        cursor = page.cursor
        for record in page.records:
            emit(StageBegan(source, record.event_log_entry.step_key or ""))
        yield


def _read(read: Callable[[], _T]) -> _T:
    """Read from Dagster's records, retrying while the database restarts."""
    return _RETRY.call(read, _is_database_error, lambda _: None)


def _is_database_error(error: BaseException) -> bool:
    from sqlalchemy.exc import DBAPIError

    return isinstance(error, DBAPIError) or isinstance(error.__cause__, DBAPIError)


def reported(instance: dg.DagsterInstance, run_id: str) -> dict[str, dict[str, Any]]:
    """Return what each asset that a run materialized reported."""
    return {made.asset_key.to_user_string(): _values(made) for made in _materializations(instance, run_id)}


def published(instance: dg.DagsterInstance, source: str, run_id: str) -> dict[str, dict[str, Any]]:
    """Return what the stores reported when they published the tables of a run, shortly after they became searchable.

    If the tables of a later run were published instead, return the latest reports.
    """
    prepared = [
        made for made in _materializations(instance, run_id) if made.asset_key.to_user_string() == "prepared_tables"
    ]
    versions = {(materialization.tags or {}).get(DATA_VERSION_TAG) for materialization in prepared}
    until = time.monotonic() + _LONGEST_REPORT_S
    while True:
        newest = list(_newest_publications(instance, source))
        published_versions = {(materialization.tags or {}).get(PREPARED_VERSION_TAG) for materialization in newest}
        is_reported = len(newest) == len(STORES.products) and published_versions == versions
        if is_reported or not prepared or time.monotonic() > until:
            return {materialization.asset_key.to_user_string(): _values(materialization) for materialization in newest}
        time.sleep(_POLL_S)


def _newest_publications(instance: dg.DagsterInstance, source: str) -> Iterator[dg.AssetMaterialization]:
    for product in STORES.products:
        wanted = dg.AssetRecordsFilter(dg.AssetKey(product.name), asset_partitions=[source])
        for record in _read(partial(instance.fetch_materializations, wanted, limit=1)).records:
            if record.asset_materialization is not None:
                yield record.asset_materialization


def _materializations(instance: dg.DagsterInstance, run_id: str) -> list[dg.AssetMaterialization]:
    kind = dg.DagsterEventType.ASSET_MATERIALIZATION
    records = _read(lambda: instance.get_records_for_run(run_id, of_type=kind)).records
    found = (record.event_log_entry.asset_materialization for record in records)
    return [materialization for materialization in found if materialization is not None]


def _values(materialization: dg.AssetMaterialization) -> dict[str, Any]:
    return {name: item.value for name, item in materialization.metadata.items()}


def run_requested(remove_source: dg.JobDefinition) -> dg.SensorDefinition:
    """Return the sensor, which requests runs of `index_source` and of the given job."""

    @dg.sensor(
        name="run_requested",
        jobs=[index_source, remove_source],
        minimum_interval_seconds=_INTERVAL_S,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Starts the runs that `docindex index` and `docindex source remove` request. "
        "See docs/explanation/several-machines.md.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        found = list(islice(pending_requests(context.instance), MOST_REQUESTS))
        # If a partition was deleted in the meantime, Dagster would refuse all requests of this tick.
        indexed = [request.source for request in found if request.job == index_source.name]
        if indexed:
            context.instance.add_dynamic_partitions(SOURCES_NAME, indexed)
        idle = dg.SkipReason("no requested runs")
        return dg.SensorResult(run_requests=[*map(_run_request, found)], skip_reason=None if found else idle)

    return sensor


def _run_request(request: Request) -> dg.RunRequest:
    tags = {**request.tags, REQUEST_TAG: request.id}
    if request.job == REMOVE_SOURCE:
        config, tags = removal_config(request.source), {**tags, SOURCE_TAG: request.source}
        return dg.RunRequest(job_name=REMOVE_SOURCE, run_key=request.id, run_config=config, tags=tags)
    return dg.RunRequest(job_name=index_source.name, run_key=request.id, partition_key=request.source, tags=tags)
