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
from typing import Any, TypeVar
from uuid import uuid4

import dagster as dg

from docindex_dagster.core.errors import JobError
from docindex_dagster.core.events import Notice, StageBegan, Waiting, emit
from docindex_dagster.core.retry import Retry
from docindex_dagster.defs.partitions import REQUESTS_NAME
from docindex_dagster.pipeline.publication import STORES

# Which request a run is for.
REQUEST_TAG = "docindex/request"
_POLL_S = 0.5
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


def ask(instance: dg.DagsterInstance, request: Request) -> None:
    """Ask for a run."""
    instance.add_dynamic_partitions(REQUESTS_NAME, [request.as_partition()])


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
    kind = dg.DagsterEventType.ASSET_MATERIALIZATION
    records = _read(lambda: instance.get_records_for_run(run_id, of_type=kind)).records
    made = (record.event_log_entry.asset_materialization for record in records)
    return {one.asset_key.to_user_string(): _values(one) for one in made if one is not None}


def published(instance: dg.DagsterInstance, source: str) -> dict[str, dict[str, Any]]:
    """What the stores reported when a source was published last."""
    found = {}
    for product in STORES.products:
        wanted = dg.AssetRecordsFilter(dg.AssetKey(product.name), asset_partitions=[source])
        records = _read(partial(instance.fetch_materializations, wanted, limit=1)).records
        if records and records[0].asset_materialization is not None:
            found[product.name] = _values(records[0].asset_materialization)
    return found


def _values(made: dg.AssetMaterialization) -> dict[str, Any]:
    return {name: item.value for name, item in made.metadata.items()}
