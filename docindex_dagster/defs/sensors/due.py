"""Whether a run may be asked for, by the newest runs of its kind: one at a time, and later after each failure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import takewhile

import dagster as dg

from docindex_dagster.defs.outcomes import is_partial_success
from docindex_dagster.defs.resources import FULL_TAG, REFUSED_TAG, VERIFY_TAG

# Dagster takes half a second to make a run that a tick asks for, and the next tick waits for it.
MOST_REQUESTS = 25
# Of a run that a user cancelled: the state of its source at that time, as the sensors on files see it.
DECLINED_TAG = "docindex/declined"
_FIRST_DELAY_S = 60
_LONGEST_DELAY_S = 6 * 60 * 60
# With the first delay doubled each time, the longest is reached before.
_LOOKED_AT = 12
CANCELED = {dg.DagsterRunStatus.CANCELING, dg.DagsterRunStatus.CANCELED}
_FINISHED = {dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED}


def delay_s(failures: int) -> float:
    """How long to wait after so many failures in a row: one minute, doubled each time, six hours at most."""
    return float(min(_FIRST_DELAY_S * 2 ** (failures - 1), _LONGEST_DELAY_S)) if failures else 0.0


@dataclass(frozen=True, slots=True)
class LastRuns:
    """How the newest runs of one kind ended. Times are in seconds since 1970, 0 where there is no such run."""

    status: dg.DagsterRunStatus | None = None  # of the newest
    began: float = 0  # when the newest was asked for
    ended: float = 0  # when the newest ended
    failures: int = 0  # in a row, up to the newest
    declined: str | None = None  # the state of the source for which a user cancelled the newest
    is_lost: bool = False  # the newest failed because its process was gone
    demands: Mapping[str, str] = field(
        default_factory=dict
    )  # tags of those that failed, which the next is to have, too

    @property
    def is_unfinished(self) -> bool:
        """A run waits or works; another one at the same time would have nothing to do."""
        return self.status is not None and self.status not in _FINISHED

    def may_try_again(self, now: float, longest_s: float = _LONGEST_DELAY_S) -> bool:
        """Whether it is time after the last failure, `longest_s` after it at the latest.

        A run that was lost once is asked for again at once.
        """
        if self.is_lost and self.failures == 1:
            return True
        return now >= self.ended + min(delay_s(self.failures), longest_s)


def last_runs(instance: dg.DagsterInstance, tags: Mapping[str, str], lost_tag: str) -> LastRuns:
    """Read the newest runs with some tags; `lost_tag` marks those whose process was gone.

    One that looked at a part of its source, and ended well, says nothing of the rest.
    """
    found = instance.get_run_records(dg.RunsFilter(tags=dict(tags)), limit=_LOOKED_AT)
    records = [record for record in found if not is_partial_success(record.dagster_run)]
    if not records:
        return LastRuns()
    newest = records[0]
    failed = list(takewhile(_has_failed, records))
    return LastRuns(
        status=newest.dagster_run.status,
        began=newest.create_timestamp.timestamp(),
        ended=newest.end_time or newest.update_timestamp.timestamp(),
        failures=len(failed),
        declined=newest.dagster_run.tags.get(DECLINED_TAG) if newest.dagster_run.status in CANCELED else None,
        is_lost=lost_tag in newest.dagster_run.tags,
        demands={tag: "true" for tag in (FULL_TAG, VERIFY_TAG) if any(tag in run.dagster_run.tags for run in failed)},
    )


def _has_failed(record: dg.RunRecord) -> bool:
    run = record.dagster_run
    return run.status is dg.DagsterRunStatus.FAILURE and REFUSED_TAG not in run.tags
