"""The asset `memory`, with its job and sensor: the messages of a domain, folded from its log into separate stores.

The sensor requests a run for a domain with many unfolded messages, or an old one. A domain has a partition as long as
it exists.

Dagster's records contain numbers, but no text of messages, because forgotten text could not be erased there.
Extractors, chunkers and model APIs may quote their input, so neither their errors nor their warnings are recorded.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import dagster as dg
from pydantic import Field

from docindex_dagster.core.errors import DocindexError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings
from docindex_dagster.defs import dead_runs, metadata
from docindex_dagster.defs.outcomes import CANCELED, FINISHED, MOST_REQUESTS, LastRuns, as_dagster_failure, last_runs
from docindex_dagster.defs.resources import Project
from docindex_dagster.defs.sensors import MEMORY_INTERVAL_S, CursorPart
from docindex_dagster.defs.tags import DOMAINS, DOMAINS_NAME, PARTITION_TAG, REASON_TAG
from docindex_dagster.memory import domains
from docindex_dagster.memory.fold import fold, is_wordless, reason, state_of, why_due
from docindex_dagster.memory.log import open_log
from docindex_dagster.memory.results import Folding

MEMORY = dg.AssetKey("memory")
_LOG_IS_UNDAMAGED = "the_log_is_whole"
_NOTHING = "nothing"  # the data version of a domain without messages
# A tick may take 60 s; domains that do not fit the budget come first in the next tick.
_BUDGET_S = 40


@dg.asset(
    partitions_def=DOMAINS,
    group_name="memory",
    kinds={"lancedb", "tantivy"},
    code_version="1",
    check_specs=[
        metadata.check_spec(
            _LOG_IS_UNDAMAGED,
            MEMORY,
            "Warns when the log of a domain is damaged, and lists the positions. All other messages are folded. The "
            "damaged ones are lost unless a backup has them.",
            DOMAINS,
        )
    ],
)
@as_dagster_failure
def memory(context: dg.AssetExecutionContext, project: Project) -> Iterator[dg.MaterializeResult[None]]:
    """Messages of agents, their users and their tools in a domain, searchable in separate stores.

    Messages are searchable even before a run, because a search of a domain also reads its log. A run folds the messages
    since the last one, and erases forgotten ones. The sensor `memory` requests it. See docs/explanation/memory.md.
    """
    started = time.perf_counter()
    settings, key = project.read_settings(), context.partition_key
    dead_runs.record_process(context.instance, settings, context.run.run_id)
    flaws = _flaws(settings, key)
    done = _fold(context, settings, key)
    yield dg.MaterializeResult(
        data_version=dg.DataVersion(done.version or _NOTHING),
        metadata={**_metadata(done), "seconds": metadata.seconds_since(started)},
        check_results=[
            dg.AssetCheckResult(
                passed=not flaws,
                severity=dg.AssetCheckSeverity.WARN,
                check_name=_LOG_IS_UNDAMAGED,
                metadata={"count": len(flaws), **({"where": metadata.texts(("place",), flaws)} if flaws else {})},
            )
        ],
    )


def _fold(context: dg.AssetExecutionContext, settings: Settings, key: str) -> Folding:
    """Fold a domain; if an error may quote messages, record only its kind."""
    try:
        return fold(settings, key, on_wait=lambda owner: context.log.info(f"{key}: waiting for {owner}"))
    except Exception as error:
        if is_wordless(error):
            raise
        raise dg.Failure(reason(error, key), allow_retries=False) from None


def _flaws(settings: Settings, key: str) -> list[tuple[str]]:
    """Return where the log is damaged, by segment and byte."""
    found = open_log(Layout(settings.home), key).read().flaws
    return [(f"{each.position.segment} at byte {each.position.start:,}",) for each in found if not each.is_torn]


def _metadata(done: Folding) -> dict[str, Any]:
    return {
        "dagster/partition_row_count": done.chunks,
        "messages": done.messages,
        "added": done.added,
        "removed": done.removed,
        "chunks": done.chunks,
        "concepts": done.concepts,
        "edges": done.edges,
        **({} if done.generation is None else {"generation": done.generation}),
        **({"erased": len(done.receipt.forgotten), "erased_files": done.receipt.files} if done.receipt else {}),
        "warnings": len(done.warnings),
    }


fold_memory = dg.define_asset_job(
    "fold_memory",
    selection=dg.AssetSelection.assets(MEMORY),
    description="Fold the messages in one domain since the last fold into its stores, and erase forgotten ones. "
    "See docs/explanation/memory.md.",
)


class _Requested(CursorPart):
    """State of a domain for which a run was requested, and when."""

    state: str = ""
    at: float = 0  # seconds since the epoch; 0: no request


class _Cursor(CursorPart):
    """Cursor: the domains in the order in which they were checked."""

    asked: dict[str, _Requested] = Field(default_factory=dict)


@dg.sensor(
    name="memory",
    job=fold_memory,
    minimum_interval_seconds=MEMORY_INTERVAL_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Keeps partitions and memory domains in sync, and requests a run for each domain with "
    "memory.fold_messages unfolded messages, one older than memory.fold_minutes, or messages to erase. See "
    "docs/explanation/memory.md.",
)
def memory_due(context: dg.SensorEvaluationContext, project: Project) -> dg.SensorResult:
    """Check the domains, longest-waiting first, within the budget."""
    settings = project.read_settings()
    return _Tick(context, settings, _Cursor.of(context.cursor)).check_all(domains.domains(Layout(settings.home)))


@dataclass(frozen=True, slots=True)
class _Tick:
    """One pass over the domains."""

    context: dg.SensorEvaluationContext
    settings: Settings
    before: _Cursor
    started: float = field(default_factory=time.monotonic)

    def check_all(self, keys: Sequence[str]) -> dg.SensorResult:
        """Request runs of the domains that are due, and update the partitions."""
        asked = {key: value for key, value in self.before.asked.items() if key in keys}
        position = {key: index for index, key in enumerate(asked)}
        requests: list[dg.RunRequest] = []
        checked = 0
        for key in sorted(keys, key=lambda key: position.get(key, -1)):
            if time.monotonic() - self.started > _BUDGET_S or len(requests) == MOST_REQUESTS:
                break
            checked += 1
            asked[key], request = self._follow_up(key, asked.pop(key, _Requested()))  # moves to the end of the order
            if request is not None:
                requests.append(request)
        partitions = set(self.context.instance.get_dynamic_partitions(DOMAINS_NAME))
        add = sorted(set(keys) - partitions)
        deleted = [key for key in sorted(partitions - set(keys)) if _delete_runs(self.context.instance, key)]
        idle = f"checked {checked} of {len(keys)} domains; nothing to request"
        return dg.SensorResult(
            run_requests=requests,
            skip_reason=None if requests else dg.SkipReason(idle),
            dynamic_partitions_requests=[
                *([DOMAINS.build_add_request(add)] if add else []),
                *([DOMAINS.build_delete_request(deleted)] if deleted else []),
            ],
            cursor=_Cursor(asked=asked).model_dump_json(),
        )

    def _follow_up(self, key: str, before: _Requested) -> tuple[_Requested, dg.RunRequest | None]:
        """Return what to remember about a domain, and the run to request, if any."""
        try:
            reason = why_due(self.settings, key, now=time.time)
            state = state_of(domains.home(Layout(self.settings.home), key))
        except (DocindexError, OSError) as error:
            self.context.log.warning(f"{key}: {error}")
            return before, None
        if reason is None:
            return _Requested(), None
        last = last_runs(self.context.instance, {PARTITION_TAG: key})
        if not self._may_request(last, before, state):
            return before, None
        return _Requested(state=state, at=time.time()), dg.RunRequest(partition_key=key, tags={REASON_TAG: reason})

    def _may_request(self, last: LastRuns, before: _Requested, state: str) -> bool:
        """Return whether to request a run of a domain that is due."""
        if not last.may_request():
            return False
        if last.status in CANCELED and time.time() < last.ended + self.settings.memory.fold_minutes * 60:
            return False
        # A run for the current state has not helped, so another one would not, either.
        is_done = before.state == state and last.began >= before.at and not last.failures
        return not is_done


def _delete_runs(instance: dg.DagsterInstance, key: str) -> bool:
    """Delete runs of a deleted domain, a few per tick, and return whether none is left.

    Otherwise, a new domain with the same key would show them as its own.
    """
    runs = instance.get_runs(dg.RunsFilter(tags={PARTITION_TAG: key}), limit=MOST_REQUESTS)
    for run in runs:
        if run.status in FINISHED:
            instance.delete_run(run.run_id)
    return not runs or (len(runs) < MOST_REQUESTS and all(run.status in FINISHED for run in runs))
