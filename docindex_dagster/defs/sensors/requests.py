"""`run_requested`: what commands asked for, where runs are not theirs to do."""

from itertools import islice

import dagster as dg

from docindex_dagster.defs.jobs import REMOVE_SOURCE, index_source, removal_config
from docindex_dagster.defs.partitions import SOURCES_NAME
from docindex_dagster.defs.requests import REQUEST_TAG, Request, pending
from docindex_dagster.defs.resources import SOURCE_TAG
from docindex_dagster.defs.sensors.due import MOST_REQUESTS

_INTERVAL_S = 5


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
        return dg.SensorResult(run_requests=[*map(_run, found)], skip_reason=None if found else idle)

    return sensor


def _run(request: Request) -> dg.RunRequest:
    tags = {**request.tags, REQUEST_TAG: request.id}
    if request.job == REMOVE_SOURCE:
        config, tags = removal_config(request.source), {**tags, SOURCE_TAG: request.source}
        return dg.RunRequest(job_name=REMOVE_SOURCE, run_key=request.id, run_config=config, tags=tags)
    return dg.RunRequest(job_name=index_source.name, run_key=request.id, partition_key=request.source, tags=tags)
