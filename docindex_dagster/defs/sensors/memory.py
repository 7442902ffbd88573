"""`memory`: a domain in which much was said, or something long ago, is asked for; its partition lives as long as it."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import dagster as dg
from pydantic import Field

from docindex_dagster.core.errors import DocindexError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings
from docindex_dagster.defs.jobs import fold_memory
from docindex_dagster.defs.outcomes import CANCELED, FINISHED, MOST_REQUESTS, LastRuns, last_runs
from docindex_dagster.defs.resources import Project
from docindex_dagster.defs.sensors import MEMORY_INTERVAL_S, Remembered
from docindex_dagster.defs.tags import DOMAINS, DOMAINS_NAME, PARTITION_TAG, REASON_TAG
from docindex_dagster.memory import domains
from docindex_dagster.memory.fold import state_of, why_due

# A tick may take 60 s; what is not looked at within the budget is first in the next tick.
_BUDGET_S = 40


class Asked(Remembered):
    """For which state of a domain a run was asked for, and when."""

    state: str = ""
    at: float = 0  # seconds since 1970; 0: none was


class Cursor(Remembered):
    """The cursor: the domains in the order in which they were looked at."""

    asked: dict[str, Asked] = Field(default_factory=dict)


@dg.sensor(
    name="memory",
    job=fold_memory,
    minimum_interval_seconds=MEMORY_INTERVAL_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Keeps the partitions of memory and its domains in agreement, and asks for a run of each domain in "
    "which memory.fold_messages wait, one waits for memory.fold_minutes, or something is to be erased. See "
    "docs/operations.md, “Memory”.",
)
def memory_due(context: dg.SensorEvaluationContext, project: Project) -> dg.SensorResult:
    """Look at the domains, those looked at longest ago first, within the budget."""
    settings = project.read_settings()
    return _Tick(context, settings, Cursor.of(context.cursor)).look_at(domains.domains(Layout(settings.home)))


@dataclass(frozen=True, slots=True)
class _Tick:
    """One look over the domains."""

    context: dg.SensorEvaluationContext
    settings: Settings
    before: Cursor
    started: float = field(default_factory=time.monotonic)

    def look_at(self, keys: Sequence[str]) -> dg.SensorResult:
        """Ask for the domains that are due, and bring the partitions up to date."""
        asked = {key: value for key, value in self.before.asked.items() if key in keys}
        position = {key: index for index, key in enumerate(asked)}
        requests: list[dg.RunRequest] = []
        looked_at = 0
        for key in sorted(keys, key=lambda key: position.get(key, -1)):
            if time.monotonic() - self.started > _BUDGET_S or len(requests) == MOST_REQUESTS:
                break
            looked_at += 1
            asked[key], request = self._follow_up(key, asked.pop(key, Asked()))  # goes to the end of the order
            if request is not None:
                requests.append(request)
        partitions = set(self.context.instance.get_dynamic_partitions(DOMAINS_NAME))
        add = sorted(set(keys) - partitions)
        gone = [key for key in sorted(partitions - set(keys)) if _without_runs(self.context.instance, key)]
        idle = f"looked at {looked_at} of {len(keys)} domains; nothing to ask for"
        return dg.SensorResult(
            run_requests=requests,
            skip_reason=None if requests else dg.SkipReason(idle),
            dynamic_partitions_requests=[
                *([DOMAINS.build_add_request(add)] if add else []),
                *([DOMAINS.build_delete_request(gone)] if gone else []),
            ],
            cursor=Cursor(asked=asked).model_dump_json(),
        )

    def _follow_up(self, key: str, before: Asked) -> tuple[Asked, dg.RunRequest | None]:
        """What to remember of a domain, and the run to ask for if it is time."""
        try:
            reason = why_due(self.settings, key, now=time.time)
            state = state_of(domains.home(Layout(self.settings.home), key))
        except (DocindexError, OSError) as error:
            self.context.log.warning(f"{key}: {error}")
            return before, None
        if reason is None:
            return Asked(), None
        last = last_runs(self.context.instance, {PARTITION_TAG: key})
        if not self._is_time(last, before, state):
            return before, None
        return Asked(state=state, at=time.time()), dg.RunRequest(partition_key=key, tags={REASON_TAG: reason})

    def _is_time(self, last: LastRuns, before: Asked, state: str) -> bool:
        """Whether a run of a domain that is due may be asked for."""
        if not last.may_ask():
            return False
        if last.status in CANCELED and time.time() < last.ended + self.settings.memory.fold_minutes * 60:
            return False
        # It ran for what there is now, and nothing came of it: asking again would bring the same.
        is_done = before.state == state and last.began >= before.at and not last.failures
        return not is_done


def _without_runs(instance: dg.DagsterInstance, key: str) -> bool:
    """Delete runs of a domain that is gone, a few in each tick; whether none is left.

    Its partition, if it were added again, would show them as its own.
    """
    runs = instance.get_runs(dg.RunsFilter(tags={PARTITION_TAG: key}), limit=MOST_REQUESTS)
    for run in runs:
        if run.status in FINISHED:
            instance.delete_run(run.run_id)
    return not runs or (len(runs) < MOST_REQUESTS and all(run.status in FINISHED for run in runs))
