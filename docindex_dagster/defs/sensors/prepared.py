"""`prepared_changed`: what workers prepared and nobody published yet is asked for, one run a cell at a time."""

import time

import dagster as dg

from docindex_dagster.core.settings import Settings
from docindex_dagster.defs.dead_runs import LOST_TAG
from docindex_dagster.defs.publishing import PUBLISH_PREPARED, PUBLISHER_TAG, publisher_tags, publishing_config
from docindex_dagster.defs.resources import REASON_TAG, Project
from docindex_dagster.defs.sensors.due import last_runs
from docindex_dagster.objects import published

_INTERVAL_S = 10
_LONGEST_DELAY_S = 5 * 60  # after failures in a row: all sources of the cell wait, and most failures pass


@dg.sensor(
    job_name=PUBLISH_PREPARED,
    minimum_interval_seconds=_INTERVAL_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Asks for a publication of each cell in which tables are pending; see docs/scale.md.",
)
def prepared_changed(context: dg.SensorEvaluationContext, project: Project) -> dg.SensorResult:
    """Compare the pointers with what is published."""
    settings = project.read_settings()
    requests: list[dg.RunRequest] = []
    for cell in published.cells(settings):
        first = next(cell.pending(), None)
        if first is not None and _may_publish(context.instance, cell.number):
            requests.append(_request(settings, cell.number, first.source))
    idle = dg.SkipReason("nothing is pending, or a run is at it")
    return dg.SensorResult(run_requests=requests, skip_reason=None if requests else idle)


def _may_publish(instance: dg.DagsterInstance, cell: int) -> bool:
    last = last_runs(instance, {PUBLISHER_TAG: str(cell)}, LOST_TAG)
    return not last.is_unfinished and last.may_try_again(time.time(), _LONGEST_DELAY_S)


def _request(settings: Settings, cell: int, source: str) -> dg.RunRequest:
    tags = {**publisher_tags(settings, cell), REASON_TAG: f"{source} is prepared"}
    return dg.RunRequest(run_config=publishing_config(cell), tags=tags)
