"""The sensors `library_files_changed` and `git_head_changed`, which request runs of changed sources."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from functools import partial

import dagster as dg
from pydantic import Field

from docindex_dagster.core.background import BackgroundCalls
from docindex_dagster.core.errors import ObjectStoreError, SourceError
from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.core.settings import Settings
from docindex_dagster.defs.jobs import index_source
from docindex_dagster.defs.outcomes import MOST_REQUESTS, LastRuns, delay_s, last_runs
from docindex_dagster.defs.resources import Project
from docindex_dagster.defs.sensors import LIBRARIES_INTERVAL_S, REPOSITORIES_INTERVAL_S, CursorPart
from docindex_dagster.defs.stage_assets import REMOTES_ANSWER, source_evaluation
from docindex_dagster.defs.tags import DATA_VERSION_TAG, PARTITION_TAG, REASON_TAG, SOURCES_NAME
from docindex_dagster.pipeline.up_to_date import is_current, settings_fingerprint, state_of
from docindex_dagster.sources import git, registry
from docindex_dagster.sources.changes import fingerprint, fingerprint_of_commit
from docindex_dagster.sources.mirror import checked_out, remote_heads
from docindex_dagster.sources.model import Remote, Source

# A tick may take 60 s; sources that do not fit the budget come first in the next tick.
_BUDGET_S = 40
_GIT_SHARE_S = 15  # part of the budget for all git commands of one source
_SHARE_S = 16  # part of the budget for all checks of one source
_REMOTE_TIMEOUT_S = 5
_REMOTES_PER_TICK = 32  # eight at a time: 20 s if none of them responds
# A source that keeps failing, but changes meanwhile, does not have to wait for hours.
_PATIENCE_AFTER_A_CHANGE_S = 5 * 60


# Checks that exceed their share continue in the background, one per source.
_CHECKS: BackgroundCalls[Source, str] = BackgroundCalls()


class Seen(CursorPart):
    """What the last check of a source saw."""

    state: str = ""
    made_with: str = ""  # settings that affect the results for its files
    is_open: bool = False  # not settled: a run is or will be requested
    asked_at: float = 0  # when a run was requested for this state, in seconds since the epoch; 0: never


class RemoteSeen(CursorPart):
    """Last answer of a remote."""

    remote: str = ""  # identifies the remote
    commit: str | None = None  # empty: the branch or tag does not exist; None: the remote never answered
    asked_at: float = 0  # seconds since the epoch
    failures: int = 0  # in a row
    problem: str = ""  # why it did not answer


class Memory(CursorPart):
    """Cursor: sources in the order in which they were checked, and remotes."""

    seen: dict[str, Seen] = Field(default_factory=dict)
    remotes: dict[str, RemoteSeen] = Field(default_factory=dict)
    ticked_at: float = 0  # seconds since the epoch


@dg.sensor(
    job=index_source,
    minimum_interval_seconds=LIBRARIES_INTERVAL_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Requests a run of each library whose files differ from the index. It lists and stats files, but never "
    "reads them. See docs/explanation/freshness.md.",
)
def library_files_changed(context: dg.SensorEvaluationContext, project: Project) -> dg.SensorResult:
    """Check the libraries."""
    settings = project.read_settings()
    libraries = _partitioned_sources(context.instance, settings, "library")
    return _Tick(context, settings, Memory.of(context.cursor)).check_all(libraries, {})


@dg.sensor(
    job=index_source,
    minimum_interval_seconds=REPOSITORIES_INTERVAL_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Requests a run of each repository whose last commit, branch, index or uncommitted changes differ from "
    "the docindex index. It polls remotes at a separate interval (schedule.remote_interval_s). See "
    "docs/explanation/freshness.md.",
)
def git_head_changed(context: dg.SensorEvaluationContext, project: Project) -> dg.SensorResult:
    """Poll the remotes that are due, then check all repositories."""
    settings, memory = project.read_settings(), Memory.of(context.cursor)
    tick = _Tick(context, settings, memory)
    repositories = _partitioned_sources(context.instance, settings, "git")
    remotes = _poll_remotes(context, repositories, memory.remotes, settings.schedule.remote_interval_s)
    result = tick.check_all(repositories, remotes)
    if _unreachable(remotes).keys() == _unreachable(memory.remotes).keys() and context.cursor:
        return result
    return result._replace(
        asset_events=[*result.asset_events, source_evaluation(REMOTES_ANSWER, _unreachable(remotes))]
    )


def _unreachable(remotes: Mapping[str, RemoteSeen]) -> dict[str, str]:
    """Return why remotes did not answer the last request."""
    return {key: remote.problem for key, remote in sorted(remotes.items()) if remote.failures}


def _partitioned_sources(instance: dg.DagsterInstance, settings: Settings, kind: str) -> dict[str, Source]:
    """Return the declared sources of a kind that have a partition; `sources_changed` handles the others."""
    partitions = set(instance.get_dynamic_partitions(SOURCES_NAME))
    declared = registry.sources(settings)
    return {key: source for key, source in declared.items() if source.kind == kind and key in partitions}


def _poll_remotes(
    context: dg.SensorEvaluationContext,
    repositories: Mapping[str, Source],
    known: Mapping[str, RemoteSeen],
    interval_s: float,
) -> dict[str, RemoteSeen]:
    """Poll the remotes that are due, longest-waiting first, with a growing delay after failures."""
    now = time.time()
    remotes = {
        key: _known_remote(known.get(key), source.remote) for key, source in repositories.items() if source.remote
    }
    due = [key for key, seen in remotes.items() if now >= seen.asked_at + max(interval_s, delay_s(seen.failures))]
    due = sorted(due, key=lambda key: remotes[key].asked_at)[:_REMOTES_PER_TICK]
    wanted = {key: remote for key in due if (remote := repositories[key].remote) is not None}
    for key, answer in remote_heads(wanted, _REMOTE_TIMEOUT_S).items():
        before = remotes[key]
        if isinstance(answer, SourceError):
            context.log.warning(f"{key}: {answer}")
            failures = before.failures + 1
            news = {"asked_at": now, "failures": failures, "problem": str(answer)}
        else:
            news = {"asked_at": now, "failures": 0, "problem": "", "commit": answer or ""}
        remotes[key] = before.model_copy(update=news)
    return remotes


def _known_remote(seen: RemoteSeen | None, remote: Remote) -> RemoteSeen:
    """Return what is known about a remote; nothing if another remote was declared under the same name."""
    place = digest_parts(remote.url, remote.ref or "")
    return seen if seen is not None and seen.remote == place else RemoteSeen(remote=place)


@dataclass(frozen=True, slots=True)
class _Tick:
    """One pass over the sources of one kind."""

    context: dg.SensorEvaluationContext
    settings: Settings
    memory: Memory
    started: float = field(default_factory=time.monotonic)

    def check_all(self, sources: Mapping[str, Source], remotes: Mapping[str, RemoteSeen]) -> dg.SensorResult:
        """Compare each source with what was seen before, longest-waiting first, within the budget."""
        now = time.time()
        seen = {key: value for key, value in self.memory.seen.items() if key in sources}
        # Done before the checks, because a source may be unreadable now, or be left to the next tick.
        for key in _failed_since(self.context.instance, self.memory.ticked_at) & seen.keys():
            seen[key] = seen[key].model_copy(update={"is_open": True})
        position = {key: index for index, key in enumerate(seen)}
        requests: list[dg.RunRequest] = []
        observations, looked_at = [], 0
        for key in sorted(sources, key=lambda key: position.get(key, -1)):
            if time.monotonic() - self.started > _BUDGET_S:
                break
            looked_at += 1
            check = self._check(sources[key], remotes.get(key))
            if check is None:  # moved to the end, so that other sources still come first in the next tick
                seen[key] = seen.pop(key, Seen(made_with=settings_fingerprint(self.settings, sources[key])))
                continue
            before = seen.pop(key, None)  # dictionaries keep their order, so this source moves to the end
            if before is None or check.state != before.state:
                observations.append(check.observation())
            seen[key], request = self._follow_up(check, before, may_ask=len(requests) < MOST_REQUESTS)
            if request is not None:
                requests.append(request)
        seconds = time.monotonic() - self.started
        cursor = Memory(seen=seen, remotes=dict(remotes), ticked_at=now)
        idle = f"checked {looked_at} of {len(sources)} in {seconds:.1f} s; nothing to request"
        return dg.SensorResult(
            run_requests=requests,
            skip_reason=None if requests else dg.SkipReason(idle),
            asset_events=observations,
            cursor=cursor.model_dump_json(),
        )

    def _check(self, source: Source, remote: RemoteSeen | None) -> "_Check | None":
        """Check a source; return None if it cannot be read now, to retry in the next tick and keep its index."""
        try:
            files = _CHECKS.result(source, partial(_files, source), _SHARE_S)
            return _Check(source, files, remote.commit if remote else None)
        except (SourceError, OSError) as error:
            self.context.log.warning(f"{source.key}: {error}")
            return None

    def _follow_up(self, check: "_Check", before: Seen | None, *, may_ask: bool) -> tuple[Seen, dg.RunRequest | None]:
        """Return what to remember about a source, and the run to request, if any; later ticks request the rest."""
        seen = Seen(state=check.state, made_with=settings_fingerprint(self.settings, check.source))
        is_same = before is not None and (before.state, before.made_with) == (seen.state, seen.made_with)
        if before is not None and is_same and not before.is_open:
            return before, None
        asked_at = before.asked_at if before is not None and is_same else 0
        waiting = seen.model_copy(update={"is_open": True, "asked_at": asked_at})
        last = last_runs(self.context.instance, {PARTITION_TAG: check.source.key})
        step = _step(last, before, waiting, lambda: check.is_indexed(self.settings))
        if step is not NextStep.ASK or not may_ask:
            return (seen if step is NextStep.SETTLED else waiting), None
        reason = "retry after a failure" if last.failures else "files or settings changed"
        request = dg.RunRequest(partition_key=check.source.key, tags={REASON_TAG: reason, **last.demands})
        return waiting.model_copy(update={"asked_at": time.time()}), request


def _files(source: Source) -> str:
    with git.within(_GIT_SHARE_S):
        return fingerprint(source)


class NextStep(Enum):
    """Next step for a source whose index is not known to be current."""

    SETTLED = "nothing is left to do until it changes"
    WAIT = "look again in the next tick"
    ASK = "ask for a run"


def _step(last: LastRuns, before: Seen | None, seen: Seen, is_indexed: Callable[[], bool]) -> NextStep:
    if last.is_unfinished:
        return NextStep.WAIT
    has_new_settings = before is not None and before.made_with != seen.made_with
    if last.declined == seen.state and not has_new_settings:
        return NextStep.SETTLED
    # Whoever requested the last run, it may have indexed the current state.
    if not last.failures and is_indexed():
        return NextStep.SETTLED
    if seen.asked_at and last.began >= seen.asked_at and not last.failures:
        # The run succeeded, or a user canceled it. If the index still differs, another run would not help.
        return NextStep.SETTLED
    is_first_run_pending = before is None and last.status is None  # by `sources_changed`
    may_retry = has_new_settings or _may_retry(last, has_changed=not seen.asked_at)
    return NextStep.ASK if may_retry and not is_first_run_pending else NextStep.WAIT


def _failed_since(instance: dg.DagsterInstance, at: float) -> set[str]:
    """Return the sources with a failed run, whoever started it; empty for the first tick, which checks all sources."""
    if not at:
        return set()
    since = datetime.fromtimestamp(at - REPOSITORIES_INTERVAL_S, UTC)
    failed = instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE], updated_after=since))
    return {run.tags[PARTITION_TAG] for run in failed if PARTITION_TAG in run.tags}


def _may_retry(last: LastRuns, *, has_changed: bool) -> bool:
    now = time.time()
    return last.may_try_again(now) or (has_changed and now >= last.ended + _PATIENCE_AFTER_A_CHANGE_S)


@dataclass(frozen=True, slots=True)
class _Check:
    """Result of one check of a source: its files, and the commit of its remote, if known."""

    source: Source
    files: str
    commit: str | None

    @property
    def state(self) -> str:
        """Hash of the files and the commit."""
        return digest_parts(self.files, self.commit or "")

    def is_indexed(self, settings: Settings) -> bool:
        """Return whether the index was made from these files, so that there is nothing to do."""
        try:
            if settings.storage.url is not None:
                return self._is_prepared(settings)
            if self.commit is not None and (checked_out(self.source) or "") != self.commit:
                return False
            return is_current(settings, self.source, self.files)
        except (SourceError, ObjectStoreError, OSError):
            return False

    def _is_prepared(self, settings: Settings) -> bool:
        """Return the same for shared stores, where the pointer records what the tables were made from.

        Workers have their own clones, so the local checkout does not matter.
        """
        from docindex_dagster.objects import prepared, shared_stores

        if self.source.remote is not None and self.commit is None:
            return True  # without an answer, there is nothing to compare with
        pointer = prepared.read(shared_stores.configured_bucket(settings), prepared.pointer_name(self.source.key))
        if pointer is None or pointer.is_withdrawn:
            return False
        seen = fingerprint_of_commit(self.source, self.commit) if self.commit is not None else self.files
        return pointer.state == state_of(settings, self.source, seen)

    def observation(self) -> dg.AssetObservation:
        """Return the event by which Dagster shows a new version of the files."""
        remote = self.source.remote
        return dg.AssetObservation(
            "source",
            partition=self.source.key,
            tags={DATA_VERSION_TAG: self.state},
            metadata={
                "from": remote.url if remote else str(self.source.path),
                **({"commit": self.commit} if self.commit else {}),
            },
        )


def state_now(source: Source) -> str:
    """Return the state that a check of a source would see now; poll its remote if it follows one.

    Raises:
        SourceError: The source cannot be checked, or its remote does not answer.
        OSError: The files cannot be listed.
    """
    commit = None
    if source.remote is not None:
        answer = remote_heads({source.key: source.remote}, _REMOTE_TIMEOUT_S)[source.key]
        if isinstance(answer, SourceError):
            raise answer
        commit = answer or ""
    return _Check(source, _files(source), commit).state
