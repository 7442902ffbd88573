"""The schedules: what happens each night, at the time that the settings say."""

from collections.abc import Iterator
from typing import Any, get_args
from zoneinfo import ZoneInfo

import dagster as dg

from docindex_dagster.core.settings import ScheduleSettings, Weekday
from docindex_dagster.defs import shared
from docindex_dagster.defs.jobs import clean_up_dagster, evaluate_retrieval, index_source
from docindex_dagster.defs.partitions import SOURCES_NAME
from docindex_dagster.defs.resources import REASON_TAG, VERIFY_TAG, Project
from docindex_dagster.sources import registry


def schedules(settings: ScheduleSettings, *, is_evaluated: bool = True) -> list[dg.ScheduleDefinition]:
    """All schedules; `is_evaluated`: whether `retrieval_quality` is one of the assets."""
    evaluation = [_nightly_evaluation(settings)] if is_evaluated else []
    return [_nightly_reindex(settings), _nightly_clean_up(settings), *evaluation]


def _each_night(settings: ScheduleSettings) -> dict[str, Any]:
    running = dg.DefaultScheduleStatus.RUNNING
    return {"cron_schedule": settings.nightly, "execution_timezone": settings.timezone, "default_status": running}


def _nightly_reindex(settings: ScheduleSettings) -> dg.ScheduleDefinition:
    @dg.schedule(
        name="nightly_reindex",
        job=index_source,
        **_each_night(settings),
        description="A run of every source. It makes up for what failed and for what no sensor saw; unchanged files "
        "are reused. Once a week every file is read and every row of the stores compared (schedule.verify); see "
        "docs/operations.md, “The night”.",
    )
    def schedule(context: dg.ScheduleEvaluationContext, project: Project) -> Iterator[dg.RunRequest]:
        present = project.read_settings()
        taken_out = shared.taken_out_of(context.instance, present)
        declared = [key for key in registry.sources(present) if key not in taken_out]
        at = context.scheduled_execution_time
        weekday = get_args(Weekday)[at.astimezone(ZoneInfo(present.schedule.timezone)).weekday()]
        verifies = weekday == present.schedule.verify
        tags = {VERIFY_TAG: "true", REASON_TAG: "weekly verification"} if verifies else {REASON_TAG: "nightly"}
        context.instance.add_dynamic_partitions(SOURCES_NAME, declared)
        for key in declared:
            yield dg.RunRequest(run_key=f"{at.isoformat()}:{key}", partition_key=key, tags=tags)

    return schedule


def _nightly_clean_up(settings: ScheduleSettings) -> dg.ScheduleDefinition:
    return dg.ScheduleDefinition(
        name="nightly_clean_up",
        job=clean_up_dagster,
        **_each_night(settings),
        description="Deletes old runs and events from Dagster's record (retention.days); see docs/operations.md, "
        "“Retention”.",
    )


def _nightly_evaluation(settings: ScheduleSettings) -> dg.ScheduleDefinition:
    @dg.schedule(
        name="nightly_evaluation",
        job=evaluate_retrieval,
        **_each_night(settings),
        description="Measures how good searches are, by a sample of questions (evaluation.questions); see "
        "docs/evaluation.md, “Each night”.",
    )
    def schedule(context: dg.ScheduleEvaluationContext, project: Project) -> dg.RunRequest | dg.SkipReason:
        if not project.read_settings().evaluation.questions:
            return dg.SkipReason("evaluation.questions is 0")
        return dg.RunRequest(run_key=context.scheduled_execution_time.isoformat(), tags={REASON_TAG: "nightly"})

    return schedule
