"""`journal_recorded`: runs that commands, watchers and servers did become runs in Dagster."""

import dagster as dg

from docindex_dagster.defs.recorder import Build, record
from docindex_dagster.defs.resources import Project

_INTERVAL_S = 15
_BUDGET_S = 40  # a tick may take 60 s


def journal_recorded(build: Build) -> dg.SensorDefinition:
    """The sensor of a project whose definitions `build` makes."""

    @dg.sensor(
        minimum_interval_seconds=_INTERVAL_S,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Records the runs that `docindex index`, `docindex watch` and the jobs of `docindex serve` did, "
        "with their materialisations and checks. It requests no run. See docs/operations.md, “Runs that are recorded "
        "later”.",
    )
    def journal_recorded(context: dg.SensorEvaluationContext, project: Project) -> dg.SkipReason:
        count = record(context.instance, project.read_settings(), build, _BUDGET_S)
        return dg.SkipReason(f"recorded {count} run{'' if count == 1 else 's'}")

    return journal_recorded
