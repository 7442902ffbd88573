"""The nightly schedule: every source is indexed again, which also heals what a failed run left."""

from collections.abc import Iterator

import dagster as dg

from docindex_dagster.defs.jobs import index_source
from docindex_dagster.defs.partitions import SOURCES_NAME
from docindex_dagster.defs.resources import Project
from docindex_dagster.settings import ScheduleSettings
from docindex_dagster.sources import registry


def nightly_reindex(settings: ScheduleSettings) -> dg.ScheduleDefinition:
    """The schedule at the time that the settings say."""

    @dg.schedule(
        name="nightly_reindex",
        job=index_source,
        cron_schedule=settings.nightly,
        execution_timezone=settings.timezone,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Indexes every source again; unchanged files are reused.",
    )
    def schedule(context: dg.ScheduleEvaluationContext, project: Project) -> Iterator[dg.RunRequest]:
        declared = registry.sources(project.read_settings())
        at = context.scheduled_execution_time.isoformat()
        context.instance.add_dynamic_partitions(SOURCES_NAME, list(declared))
        for key in declared:
            yield dg.RunRequest(run_key=f"{at}:{key}", partition_key=key)

    return schedule
