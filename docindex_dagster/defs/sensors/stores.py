"""`stores`: maintenance of the stores is asked for when publications have left much behind."""

import time

import dagster as dg

from docindex_dagster.defs.dead_runs import LOST_TAG
from docindex_dagster.defs.jobs import MAINTENANCE_TAG, maintain_stores
from docindex_dagster.defs.resources import REASON_TAG, Project
from docindex_dagster.defs.sensors.cursor import STORES_INTERVAL_S
from docindex_dagster.defs.sensors.due import LastRuns, last_runs
from docindex_dagster.stores.maintenance import why_due

_REST_S = 300  # after a run: while hundreds of sources are indexed for the first time, it is due all the time


@dg.sensor(
    name="stores",
    job_name=maintain_stores.name,  # the job itself would have to have its resources already
    minimum_interval_seconds=STORES_INTERVAL_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Asks for maintenance of the stores when publications have left many versions of the LanceDB table, or "
    "many rows that no index has. See docs/operations.md, “Disk space”.",
)
def stores_due(context: dg.SensorEvaluationContext, project: Project) -> dg.SensorResult:
    """Look at what is published, and at how the last maintenance ended."""
    reason = why_due(project.layout)
    if reason is None:
        return dg.SensorResult(skip_reason="no maintenance is due")
    last = last_runs(context.instance, {MAINTENANCE_TAG: "true"}, LOST_TAG)
    if not _is_time(last, time.time()):
        return dg.SensorResult(skip_reason=f"{reason}; the last run is under way, or has ended a moment ago")
    return dg.SensorResult(run_requests=[dg.RunRequest(tags={REASON_TAG: reason})])


def _is_time(last: LastRuns, now: float) -> bool:
    if last.is_unfinished or not last.may_try_again(now):
        return False
    return bool(last.failures) or now >= last.ended + _REST_S
