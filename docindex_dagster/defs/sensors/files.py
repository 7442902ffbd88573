"""`library_files_changed` and `git_head_changed`: a source whose files are not those of the index is asked for."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from functools import partial

import dagster as dg
from pydantic import Field

from docindex_dagster.core.background import Attempts
from docindex_dagster.core.errors import ObjectStoreError, SourceError
from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.core.settings import Settings
from docindex_dagster.defs.jobs import index_source
from docindex_dagster.defs.outcomes import MOST_REQUESTS, LastRuns, delay_s, last_runs
from docindex_dagster.defs.resources import Project
from docindex_dagster.defs.sensors import LIBRARIES_INTERVAL_S, REPOSITORIES_INTERVAL_S, Remembered
from docindex_dagster.defs.stage_assets import REMOTES_ANSWER, source_evaluation
from docindex_dagster.defs.tags import DATA_VERSION_TAG, PARTITION_TAG, REASON_TAG, SOURCES_NAME
from docindex_dagster.pipeline.up_to_date import is_current, made_with, state_of
from docindex_dagster.sources import git, registry
from docindex_dagster.sources.changes import fingerprint, fingerprint_of_commit
from docindex_dagster.sources.mirror import checked_out, remote_heads
from docindex_dagster.sources.model import Remote, Source

# A tick may take 60 s; what is not looked at within the budget is first in the next tick.
_BUDGET_S = 40
_GIT_SHARE_S = 15  # of it, for all that git says of one source
_SHARE_S = 16  # and for the whole look at it
_REMOTE_TIMEOUT_S = 5
_REMOTES_A_TICK = 32  # eight at once: 20 s if none of them answers
# A source that keeps failing and changes meanwhile is not made to wait for hours.
_PATIENCE_AFTER_A_CHANGE_S = 5 * 60


# Looks that took longer than their share go on while the sensor ticks, one a source.
_LOOKS: Attempts[Source, str] = Attempts()


class Seen(Remembered):
    """What was seen of a source when it was last looked at."""

    state: str = ""
    made_with: str = ""  # the settings that decide what is made of its files
    is_open: bool = False  # not seen to its end: a run is asked for, or will be
    asked_at: float = 0  # seconds since 1970; 0: never for this state


class RemoteSeen(Remembered):
    """The answer of a remote when it was last asked."""

    remote: str = ""  # which one it is
    commit: str | None = None  # empty: it has no such branch or tag; None: it never answered
    asked_at: float = 0  # seconds since 1970
    failures: int = 0  # in a row
    problem: str = ""  # why it did not answer


class Memory(Remembered):
    """The cursor: sources in the order in which they were looked at, and remotes."""

    seen: dict[str, Seen] = Field(default_factory=dict)
    remotes: dict[str, RemoteSeen] = Field(default_factory=dict)
    ticked_at: float = 0  # seconds since 1970


@dg.sensor(
    job=index_source,
    minimum_interval_seconds=LIBRARIES_INTERVAL_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Asks for a run of each library whose files are not those of the index. It lists and stats, and reads "
    "no file; see docs/operations.md, “How changes are noticed”.",
)
def library_files_changed(context: dg.SensorEvaluationContext, project: Project) -> dg.SensorResult:
    """Look at the libraries."""
    settings = project.read_settings()
    libraries = _with_partition(context.instance, settings, "library")
    return _Tick(context, settings, Memory.of(context.cursor)).look_at(libraries, {})


@dg.sensor(
    job=index_source,
    minimum_interval_seconds=REPOSITORIES_INTERVAL_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Asks for a run of each repository whose last commit, branch, index or uncommitted work is not that of "
    "the index. Remotes are asked for their commit at an interval of their own (schedule.remote_interval_s); see "
    "docs/operations.md, “How changes are noticed”.",
)
def git_head_changed(context: dg.SensorEvaluationContext, project: Project) -> dg.SensorResult:
    """Ask the remotes that are due, then look at all repositories."""
    settings, memory = project.read_settings(), Memory.of(context.cursor)
    tick = _Tick(context, settings, memory)
    repositories = _with_partition(context.instance, settings, "git")
    remotes = _ask_remotes(context, repositories, memory.remotes, settings.schedule.remote_interval_s)
    result = tick.look_at(repositories, remotes)
    if _silent(remotes).keys() == _silent(memory.remotes).keys() and context.cursor:
        return result
    return result._replace(asset_events=[*result.asset_events, source_evaluation(REMOTES_ANSWER, _silent(remotes))])


def _silent(remotes: Mapping[str, RemoteSeen]) -> dict[str, str]:
    """Why remotes did not answer when they were last asked."""
    return {key: remote.problem for key, remote in sorted(remotes.items()) if remote.failures}


def _with_partition(instance: dg.DagsterInstance, settings: Settings, kind: str) -> dict[str, Source]:
    """The declared sources of a kind that have a partition; others get theirs from `sources_changed`, and a run."""
    partitions = set(instance.get_dynamic_partitions(SOURCES_NAME))
    declared = registry.sources(settings)
    return {key: source for key, source in declared.items() if source.kind == kind and key in partitions}


def _ask_remotes(
    context: dg.SensorEvaluationContext,
    repositories: Mapping[str, Source],
    known: Mapping[str, RemoteSeen],
    interval_s: float,
) -> dict[str, RemoteSeen]:
    """Ask the remotes that are due, those that were asked longest ago first; later after each failure."""
    now = time.time()
    remotes = {key: _known(known.get(key), source.remote) for key, source in repositories.items() if source.remote}
    due = [key for key, seen in remotes.items() if now >= seen.asked_at + max(interval_s, delay_s(seen.failures))]
    due = sorted(due, key=lambda key: remotes[key].asked_at)[:_REMOTES_A_TICK]
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


def _known(seen: RemoteSeen | None, remote: Remote) -> RemoteSeen:
    """What is known of a remote; nothing of one that was declared anew under the same name."""
    place = digest_parts(remote.url, remote.ref or "")
    return seen if seen is not None and seen.remote == place else RemoteSeen(remote=place)


@dataclass(frozen=True, slots=True)
class _Tick:
    """One look over the sources of one kind."""

    context: dg.SensorEvaluationContext
    settings: Settings
    memory: Memory
    started: float = field(default_factory=time.monotonic)

    def look_at(self, sources: Mapping[str, Source], remotes: Mapping[str, RemoteSeen]) -> dg.SensorResult:
        """Compare each source with what was seen before, those looked at longest ago first, within the budget."""
        now = time.time()
        seen = {key: value for key, value in self.memory.seen.items() if key in sources}
        # Noted before anything is looked at: a source may not be readable now, or be left to the next tick.
        for key in _failed_since(self.context.instance, self.memory.ticked_at) & seen.keys():
            seen[key] = seen[key].model_copy(update={"is_open": True})
        position = {key: index for index, key in enumerate(seen)}
        requests: list[dg.RunRequest] = []
        observations, looked_at = [], 0
        for key in sorted(sources, key=lambda key: position.get(key, -1)):
            if time.monotonic() - self.started > _BUDGET_S:
                break
            looked_at += 1
            look = self._look(sources[key], remotes.get(key))
            if look is None:  # the others come first in the next tick all the same
                seen[key] = seen.pop(key, Seen(made_with=made_with(self.settings, sources[key])))
                continue
            before = seen.pop(key, None)  # a dictionary keeps its order: what was looked at goes to its end
            if before is None or look.state != before.state:
                observations.append(look.observation())
            seen[key], request = self._follow_up(look, before, may_ask=len(requests) < MOST_REQUESTS)
            if request is not None:
                requests.append(request)
        seconds = time.monotonic() - self.started
        cursor = Memory(seen=seen, remotes=dict(remotes), ticked_at=now)
        idle = f"looked at {looked_at} of {len(sources)} in {seconds:.1f} s; nothing to ask for"
        return dg.SensorResult(
            run_requests=requests,
            skip_reason=None if requests else dg.SkipReason(idle),
            asset_events=observations,
            cursor=cursor.model_dump_json(),
        )

    def _look(self, source: Source, remote: RemoteSeen | None) -> "_Look | None":
        """None for a source that cannot be read now: it is looked at again in the next tick, and keeps its index."""
        try:
            files = _LOOKS.result(source, partial(_files, source), _SHARE_S)
            return _Look(source, files, remote.commit if remote else None)
        except (SourceError, OSError) as error:
            self.context.log.warning(f"{source.key}: {error}")
            return None

    def _follow_up(self, look: "_Look", before: Seen | None, *, may_ask: bool) -> tuple[Seen, dg.RunRequest | None]:
        """What to remember of a source, and the run to ask for if it is time; the next tick asks for what waits."""
        seen = Seen(state=look.state, made_with=made_with(self.settings, look.source))
        is_same = before is not None and (before.state, before.made_with) == (seen.state, seen.made_with)
        if before is not None and is_same and not before.is_open:
            return before, None
        asked_at = before.asked_at if before is not None and is_same else 0
        waiting = seen.model_copy(update={"is_open": True, "asked_at": asked_at})
        last = last_runs(self.context.instance, {PARTITION_TAG: look.source.key})
        step = _step(last, before, waiting, lambda: look.is_indexed(self.settings))
        if step is not Step.ASK or not may_ask:
            return (seen if step is Step.SETTLED else waiting), None
        reason = "again after a failure" if last.failures else "files or settings changed"
        request = dg.RunRequest(partition_key=look.source.key, tags={REASON_TAG: reason, **last.demands})
        return waiting.model_copy(update={"asked_at": time.time()}), request


def _files(source: Source) -> str:
    with git.within(_GIT_SHARE_S):
        return fingerprint(source)


class Step(Enum):
    """What is next for a source that is not known to be indexed as it is."""

    SETTLED = "nothing is left to do until it changes"
    WAIT = "look again in the next tick"
    ASK = "ask for a run"


def _step(last: LastRuns, before: Seen | None, seen: Seen, is_indexed: Callable[[], bool]) -> Step:
    if last.is_unfinished:
        return Step.WAIT
    has_new_settings = before is not None and before.made_with != seen.made_with
    if last.declined == seen.state and not has_new_settings:
        return Step.SETTLED
    # Whoever asked for the last run, it may have indexed what there is now.
    if not last.failures and is_indexed():
        return Step.SETTLED
    if seen.asked_at and last.began >= seen.asked_at and not last.failures:
        # It ran, or a user cancelled it. If the index still differs, asking again would bring the same.
        return Step.SETTLED
    is_about_to_be_asked_for = before is None and last.status is None  # by `sources_changed`
    is_time = has_new_settings or _is_time(last, has_changed=not seen.asked_at)
    return Step.ASK if is_time and not is_about_to_be_asked_for else Step.WAIT


def _failed_since(instance: dg.DagsterInstance, at: float) -> set[str]:
    """The sources of which a run failed, by a sensor or by hand. Without a tick before, all sources are looked at."""
    if not at:
        return set()
    since = datetime.fromtimestamp(at - REPOSITORIES_INTERVAL_S, UTC)
    failed = instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE], updated_after=since))
    return {run.tags[PARTITION_TAG] for run in failed if PARTITION_TAG in run.tags}


def _is_time(last: LastRuns, *, has_changed: bool) -> bool:
    now = time.time()
    return last.may_try_again(now) or (has_changed and now >= last.ended + _PATIENCE_AFTER_A_CHANGE_S)


@dataclass(frozen=True, slots=True)
class _Look:
    """What one look at a source showed: its files, and the commit of its remote if it follows one that answered."""

    source: Source
    files: str
    commit: str | None

    @property
    def state(self) -> str:
        """A hash of both."""
        return digest_parts(self.files, self.commit or "")

    def is_indexed(self, settings: Settings) -> bool:
        """Whether the index is made of these files, so that there is nothing to do."""
        try:
            if settings.storage.url is not None:
                return self._is_prepared(settings)
            if self.commit is not None and (checked_out(self.source) or "") != self.commit:
                return False
            return is_current(settings, self.source, self.files)
        except (SourceError, ObjectStoreError, OSError):
            return False

    def _is_prepared(self, settings: Settings) -> bool:
        """As `is_indexed` where machines share the stores: the pointer says what its tables were made from.

        Those who prepare them have clones of their own, so what is checked out here plays no part.
        """
        from docindex_dagster.objects import prepared, shared_stores

        if self.source.remote is not None and self.commit is None:
            return True  # until it answers, there is nothing to compare with
        pointer = prepared.read(shared_stores.bucket_of(settings), prepared.object_of(self.source.key))
        if pointer is None or pointer.is_withdrawn:
            return False
        seen = fingerprint_of_commit(self.source, self.commit) if self.commit is not None else self.files
        return pointer.state == state_of(settings, self.source, seen)

    def observation(self) -> dg.AssetObservation:
        """What Dagster shows as a new version of the files."""
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
    """What a look at a source would show, asking its remote for news if it follows one.

    Raises:
        SourceError: it cannot be looked at, or its remote does not answer.
        OSError: its files cannot be listed.
    """
    commit = None
    if source.remote is not None:
        answer = remote_heads({source.key: source.remote}, _REMOTE_TIMEOUT_S)[source.key]
        if isinstance(answer, SourceError):
            raise answer
        commit = answer or ""
    return _Look(source, _files(source), commit).state
