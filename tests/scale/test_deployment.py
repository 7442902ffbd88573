"""Tests that a deployment gives the same results as one machine, despite failures of hosts, object store and database.

`DOCINDEX_TEST_SOURCES` and `DOCINDEX_TEST_KILLS` enlarge it; `DOCINDEX_TEST_SEED` repeats a run.
"""

import os
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import pytest

from docindex_dagster.defs.sensors import SOURCES_INTERVAL_S
from docindex_dagster.objects.postgres_locks import LEASE_S
from docindex_dagster.search.model import Mode
from tests.scale import embedded
from tests.scale.deployment import OVER, Deployment, Run, deployment
from tests.scale.embedded import ALL_MODES, Embedded
from tests.scale.faults import NO_FAULTS, Faults, Gate
from tests.scale.hosts import Program
from tests.scale.watcher import watching

pytestmark = pytest.mark.scale

SOURCES = int(os.environ.get("DOCINDEX_TEST_SOURCES") or 6)
KILLS = int(os.environ.get("DOCINDEX_TEST_KILLS") or 8)
WORKERS = int(os.environ.get("DOCINDEX_TEST_WORKERS") or 2)
SEED = int(os.environ.get("DOCINDEX_TEST_SEED") or random.SystemRandom().randrange(1 << 32))
# A first run on a busy machine, plus the sensors' delay: they check 32 repositories every 35 s.
PATIENCE_S = 600.0 + 60.0 * SOURCES
SEEN_S = 120.0  # maximum delay until a search server shows a publication
# After a lease, a process waiting for the lock or the lost-run sensor ends a silent session. The sensor's tick may take
# a while.
LONGEST_SILENCE_S = LEASE_S + SOURCES_INTERVAL_S + 20
# Wait up to half a minute for a run, so that the kill hits one.
LONGEST_WITHOUT_WORK_S, LONGEST_BETWEEN_KILLS_S = 30.0, 8.0
SETTLING_S = 900.0  # a lost run is noticed after a lease, then sensors request it again
QUERIES = 50
ANOTHER_HISTORY = (Mode.VECTOR,)
# With many sources, edits leave segments that are merged at different times.
AFTER_EDITS = ALL_MODES if SOURCES <= 10 else ANOTHER_HISTORY
# A tenth of the requests fail.
BAD_WEATHER = Faults(error=0.02, slow_down=0.02, conflict=0.05, cut=0.02, lost_answer=0.05, delay=0.05, delay_s=1.0)


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Return a function that prints a line despite pytest's capturing."""

    def print_line(line: str) -> None:
        with capsys.disabled():
            print(f"\n{line}", end="", flush=True)  # noqa: T201

    print_line(f"to repeat: make test-scale DOCINDEX_TEST_SEED={SEED}")
    return print_line


def assert_equals_one_machine(deployed: Deployment, alone: Embedded, modes: Sequence[Mode] = ALL_MODES) -> str:
    """Compare the search server with an embedded index of the same sources, and return the amount compared.

    BM25 counts deleted rows until their segment is merged, even on one machine. If the embedded index did not publish
    the same revisions, ranks are therefore compared in `vector` mode only.
    """
    alone.index(deployed.repositories.all)
    held, wanted = embedded.rows(deployed.replica), embedded.rows(alone.layout)
    assert held == wanted
    assert embedded.sources(deployed.replica) == embedded.sources(alone.layout)
    asked = embedded.queries(deployed.repositories.all, QUERIES, SEED)
    assert embedded.ranks(deployed.replica, asked, modes) == embedded.ranks(alone.layout, asked, modes)
    for query in asked[:10]:
        answered = [hit.chunk_id for hit in deployed.search(query, limit=10)]
        assert answered == embedded.ranks(deployed.replica, [query])[query, "hybrid"]
    return f"{len(wanted)} chunks and the ranks of {QUERIES} queries ({', '.join(modes)}) equal those of one machine"


def test_it_equals_one_machine_after_edits_removals_and_rollbacks(tmp_path, say):
    begun, alone = time.monotonic(), Embedded(tmp_path / "embedded")
    with deployment(tmp_path, SOURCES, workers=WORKERS, seed=SEED) as deployed:
        deployed.settle(PATIENCE_S)
        first_s = time.monotonic() - begun
        equal = assert_equals_one_machine(deployed, alone)
        say(f"{SOURCES} sources indexed in {first_s:.0f} s; {equal}")
        with watching(deployed, SEED) as watcher:
            edited = deployed.repositories.edit(max(2, SOURCES // 10))
            deployed.ask_for(edited)
            deployed.settle(PATIENCE_S)
        assert_equals_one_machine(deployed, alone, AFTER_EDITS)
        by = Counter(run.host for run in deployed.runs() if run.job == "index_source")
        say(f"{SOURCES} sources indexed by {dict(by)}; {len(edited)} edited: {watcher}")

        gone = deployed.repositories.all.pop()
        done = deployed.docindex("source", "remove", gone.key)
        assert done.returncode == 0, done.stderr
        deployed.declare()
        deployed.wait(
            lambda: not deployed.stamp(gone) and not deployed.unfinished(), f"{gone.key} to leave", PATIENCE_S
        )
        assert_equals_one_machine(deployed, alone, AFTER_EDITS)

        last = deployed.repositories.edit(1)[0]
        deployed.ask_for([last])
        deployed.settle(PATIENCE_S)
        for revision in (last.revision - 1, last.revision):
            done = deployed.docindex("rollback")
            assert done.returncode == 0, done.stderr
            deployed.wait(lambda: deployed.found_revision(last) == revision, f"revision {revision}", SEEN_S)  # noqa: B023
        assert_equals_one_machine(deployed, alone, AFTER_EDITS)
        ended = Counter(run.status for run in deployed.runs())
        say(f"{gone.key} removed, {last.key} rolled back and forth; runs: {dict(ended)}")


# A paused process either notices the pause or has no time left for the request that it was making.
LOST = (": this process was paused for too long", ": reading % failed", ": listing % failed")
REPLACED = ("was replaced by another process",)


@dataclass(frozen=True, slots=True)
class Sleep:
    """Pause of a host during a run, and the expected refusal of that run after the host resumes.

    Attributes:
        job: job of the run.
        refusals: SQL patterns, one of which must match the run's events in the end.
        put: folder of the object whose put is held while the host sleeps; if empty, the host sleeps after the run has
            started and before it has written anything.
    """

    job: str
    refusals: tuple[str, ...]
    put: str = ""


@pytest.mark.parametrize(
    "sleep",
    [
        Sleep("index_source", LOST),
        Sleep("index_source", REPLACED, put="prepared"),
        Sleep("publish_prepared", LOST),
        Sleep("publish_prepared", REPLACED, put="cells"),
    ],
    ids=["worker_at_work", "worker_in_its_last_put", "publisher_at_work", "publisher_in_its_last_put"],
)
def test_who_sleeps_through_a_lease_is_replaced_and_then_refused(tmp_path, say, sleep):
    alone = Embedded(tmp_path / "embedded")
    with deployment(tmp_path, 2, publishers=2, seed=SEED) as deployed:
        deployed.settle(PATIENCE_S)
        with watching(deployed, SEED) as watcher:
            gate = deployed.proxy.hold_next("PUT", sleep.put) if sleep.put else None
            edited = deployed.repositories.edit(1)
            deployed.ask_for(edited)
            at_work = partial(run_at_work, deployed, sleep.job, gate)
            run = deployed.wait(at_work, f"a run of {sleep.job}", PATIENCE_S, every_s=0.1)
            asleep = deployed.host(run.host)
            asleep.pause()
            began = time.monotonic()
            assert [lock for lock in deployed.locks() if lock.is_of(run)]

            edited[0].commit(deployed.repositories.chance)  # makes the paused run's data stale
            silences: list[float] = []
            deployed.wait(lambda: is_settled(deployed, silences), "others to do its work", PATIENCE_S + SETTLING_S)
            assert LEASE_S < max(silences) < LONGEST_SILENCE_S
            assert not [lock for lock in deployed.locks() if lock.is_of(run)]
            replaced_s = time.monotonic() - began
            if gate is not None:  # forward the held request late, as on a slow network
                gate.open()
                deployed.wait(lambda: gate.answer, "the request to be answered", SEEN_S)
                assert gate.answer == "412"

            asleep.resume()
            deployed.wait(partial(refusal, deployed, run, sleep), "the sleeper to be refused", SETTLING_S)
            deployed.settle(PATIENCE_S)
        assert {one.status for one in deployed.runs() if one.id == run.id} == {"FAILURE"}
        equal = assert_equals_one_machine(deployed, alone, ANOTHER_HISTORY)
        say(f"{asleep.name} slept in {sleep.job}: replaced after {replaced_s:.0f} s, silent for {max(silences):.0f} s")
        say(f"then refused ({refusal(deployed, run, sleep)}); {equal}; {watcher}")


def refusal(deployed: Deployment, run: Run, sleep: Sleep) -> str | None:
    """Return the text of the run's event that matches a refusal, or None if there is none yet."""
    return next((text for text in sleep.refusals if deployed.has_event(run.id, text)), None)


def run_at_work(deployed: Deployment, job: str, gate: Gate | None) -> Run | None:
    """Return the job's run once it holds its liveness and work locks, and once its put is held at the gate, if any."""
    if gate is not None and not gate.is_holding:
        return None
    locks = deployed.locks()
    for run in deployed.unfinished():
        if run.job == job and sum(lock.is_of(run) for lock in locks) >= 2:
            return run
    return None


def is_settled(deployed: Deployment, silences: list[float]) -> bool:
    """Return whether the deployment is settled, and record the longest silence."""
    silences.append(longest_silence_s(deployed))
    return deployed.is_settled()


def test_hosts_are_killed_while_everything_else_goes_wrong(tmp_path, say):
    chance, alone = random.Random(SEED), Embedded(tmp_path / "embedded")
    victims = Counter[str]()
    silences = [0.0]
    with deployment(tmp_path, SOURCES, workers=WORKERS, seed=SEED) as deployed:
        deployed.settle(PATIENCE_S)
        deployed.proxy.faults = BAD_WEATHER
        begun = time.monotonic()
        with watching(deployed, SEED) as watcher:
            asked: Program | None = None
            for number in range(KILLS):
                edited = deployed.repositories.edit(chance.randint(1, 2))
                if asked is None or not asked.is_running:  # otherwise the sensors request runs
                    asked = deployed.ask_for(edited)
                if number % 10 == 5:
                    deployed.database.restart()
                    victims["Postgres"] += 1
                wait_for_work(deployed)
                time.sleep(chance.uniform(0, LONGEST_BETWEEN_KILLS_S))
                victims[kill_at_random(deployed, chance)] += 1
                assert watcher.problems == []
                silences.append(longest_silence_s(deployed))
                assert silences[-1] < LONGEST_SILENCE_S
                if number % 10 == 9:
                    ended = Counter(run.status for run in deployed.runs())
                    say(f"{number + 1} kills in {time.monotonic() - begun:.0f} s; runs: {dict(ended)}; {watcher}")
            stormed_s = time.monotonic() - begun
            deployed.proxy.faults = NO_FAULTS
            settling = time.monotonic()
            deployed.wait(lambda: is_settled(deployed, silences), "everything to settle", PATIENCE_S + SETTLING_S)
            settled_s = time.monotonic() - settling
        assert max(silences) < LONGEST_SILENCE_S
        ended = Counter(f"{run.job} {run.status}" for run in deployed.runs())
        say(f"{KILLS} kills in {stormed_s:.0f} s: {dict(victims)}; the object store: {dict(deployed.proxy.happened)}")
        say(f"longest silence of a lock's holder {max(silences):.0f} s; settled after {settled_s:.0f} s")
        say(f"runs: {dict(ended)}; {watcher}")
        say(assert_equals_one_machine(deployed, alone, ANOTHER_HISTORY))
        assert_no_lock_is_held_but_signs(deployed)


def wait_for_work(deployed: Deployment) -> None:
    """Wait a limited time for a run to be in progress."""
    end = time.monotonic() + LONGEST_WITHOUT_WORK_S
    while time.monotonic() < end and not any(run.status == "STARTED" for run in deployed.unfinished()):
        time.sleep(0.5)


def assert_no_lock_is_held_but_signs(deployed: Deployment) -> None:
    """Assert that only liveness locks of finished runs are held: a process keeps its last one until its next run."""
    owners = [lock.owner for lock in deployed.locks()]
    assert len(owners) == len(set(owners)) <= len(deployed.workers) + len(deployed.publishers)
    assert set(owners) <= {f"docindex run {run.id}" for run in deployed.runs() if run.status in OVER}


def kill_at_random(deployed: Deployment, chance: random.Random) -> str:
    """Kill a host or one of its processes, restart what is missing, and return what was killed."""
    victim = chance.choice([*deployed.workers, *deployed.workers, *deployed.publishers, deployed.searcher])
    kind = victim.name.rstrip("0123456789")
    how = chance.choice(("crash", "crash", "loss", "process"))
    if how == "process":
        processes = victim.processes()
        if processes:
            chance.choice(processes).kill()
        time.sleep(0.5)
    else:
        victim.crash()
        if how == "loss":
            victim.wipe()
        time.sleep(chance.uniform(0, 3))
    deployed.revive(victim)
    return f"{kind} ({how})"


def longest_silence_s(deployed: Deployment) -> float:
    """Return the longest time since any lock holder was last active."""
    return max((lock.silent_s for lock in deployed.locks()), default=0.0)
