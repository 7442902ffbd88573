"""`prepared_changed`: what workers prepared and nobody published yet is asked for, one run at a time."""

import time

import dagster as dg

from docindex_dagster.defs.dead_runs import LOST_TAG
from docindex_dagster.defs.publishing import PUBLISH_PREPARED, PUBLISHER_TAG, PUBLISHER_TAGS
from docindex_dagster.defs.resources import REASON_TAG, Project
from docindex_dagster.defs.sensors.due import last_runs
from docindex_dagster.objects import published

_INTERVAL_S = 10
_LONGEST_DELAY_S = 5 * 60  # after failures in a row: all sources wait, and most failures pass


@dg.sensor(
    job_name=PUBLISH_PREPARED,
    minimum_interval_seconds=_INTERVAL_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Asks for a publication while tables are pending; see docs/scale.md.",
)
def prepared_changed(context: dg.SensorEvaluationContext, project: Project) -> dg.SensorResult:
    """Compare the pointers with what is published."""
    first = next(published.read(project.read_settings()).pending(), None)
    if first is None or not _may_publish(context.instance):
        return dg.SensorResult(skip_reason=dg.SkipReason("nothing is pending, or a run is at it"))
    tags = {**PUBLISHER_TAGS, REASON_TAG: f"{first.source} is prepared"}
    return dg.SensorResult(run_requests=[dg.RunRequest(tags=tags)])


def _may_publish(instance: dg.DagsterInstance) -> bool:
    last = last_runs(instance, {PUBLISHER_TAG: PUBLISHER_TAGS[PUBLISHER_TAG]}, LOST_TAG)
    return not last.is_unfinished and last.may_try_again(time.time(), _LONGEST_DELAY_S)
