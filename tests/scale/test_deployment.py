"""A deployment answers as one machine does, whatever happens to its hosts, its object store and its database.

With `DOCINDEX_TEST_SOURCES` and `DOCINDEX_TEST_KILLS` it is larger, with `DOCINDEX_TEST_SEED` the same again.
"""

import os
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from docindex_dagster.objects.postgres_locks import LEASE_S
from tests.scale import embedded
from tests.scale.deployment import Deployment, deployment
from tests.scale.embedded import Embedded
from tests.scale.faults import NO_FAULTS, Faults
from tests.scale.watcher import watching

pytestmark = pytest.mark.scale

SOURCES = int(os.environ.get("DOCINDEX_TEST_SOURCES") or 6)
KILLS = int(os.environ.get("DOCINDEX_TEST_KILLS") or 8)
SEED = int(os.environ.get("DOCINDEX_TEST_SEED") or random.SystemRandom().randrange(1 << 32))
# A first run, and what the sensors take to notice: they look at 32 repositories each 35 s.
PATIENCE_S = 180.0 + 15.0 * SOURCES
SETTLING_S = 300.0  # what is lost is noticed after a lease, and asked for again by sensors
QUERIES = 50
# A tenth of the requests fails.
BAD_WEATHER = Faults(error=0.02, slow_down=0.02, conflict=0.05, cut=0.02, lost_answer=0.05, delay=0.05, delay_s=1.0)


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Print a line past pytest's capturing."""

    def print_line(line: str) -> None:
        with capsys.disabled():
            print(f"\n{line}", end="", flush=True)  # noqa: T201

    print_line(f"to repeat: make test-scale DOCINDEX_TEST_SEED={SEED}")
    return print_line


def assert_equals_one_machine(deployed: Deployment, folder: Path) -> str:
    """Compare what the search server has with an embedded index of the same sources; says how much that is."""
    alone = Embedded(folder / "embedded")
    alone.index(deployed.repositories.all)
    held, wanted = embedded.rows(deployed.replica), embedded.rows(alone.layout)
    assert held == wanted
    assert embedded.sources(deployed.replica) == embedded.sources(alone.layout)
    asked = embedded.queries(deployed.repositories.all, QUERIES, SEED)
    assert embedded.ranks(deployed.replica, asked) == embedded.ranks(alone.layout, asked)
    for query in asked[:10]:
        answered = [hit.chunk_id for hit in deployed.search(query, limit=10)]
        assert answered == embedded.ranks(deployed.replica, [query])[query, "hybrid"]
    return f"{len(wanted)} chunks and the ranks of {QUERIES} queries equal those of one machine"


def test_it_equals_one_machine_after_edits_removals_and_rollbacks(tmp_path, say):
    begun = time.monotonic()
    with deployment(tmp_path, SOURCES, seed=SEED) as deployed:
        deployed.settle(PATIENCE_S)
        first_s = time.monotonic() - begun
        equal = assert_equals_one_machine(deployed, tmp_path)
        with watching(deployed, SEED) as watcher:
            edited = deployed.repositories.edit(max(2, SOURCES // 10))
            deployed.ask_for(edited)
            deployed.settle(PATIENCE_S)
        assert_equals_one_machine(deployed, tmp_path)
        by = Counter(run.host for run in deployed.runs() if run.job == "index_source")
        say(f"{SOURCES} sources indexed in {first_s:.0f} s by {dict(by)}; {equal}; {len(edited)} edited: {watcher}")

        gone = deployed.repositories.all.pop()
        done = deployed.docindex("source", "remove", gone.key)
        assert done.returncode == 0, done.stderr
        deployed.declare()
        deployed.wait(
            lambda: not deployed.stamp(gone) and not deployed.unfinished(), f"{gone.key} to leave", PATIENCE_S
        )
        assert_equals_one_machine(deployed, tmp_path)

        last = deployed.repositories.edit(1)[0]
        deployed.ask_for([last])
        deployed.settle(PATIENCE_S)
        for revision in (last.revision - 1, last.revision):
            done = deployed.docindex("rollback")
            assert done.returncode == 0, done.stderr
            deployed.wait(lambda: deployed.found_revision(last) == revision, f"revision {revision}", 30)  # noqa: B023
        assert_equals_one_machine(deployed, tmp_path)
        ended = Counter(run.status for run in deployed.runs())
        say(f"{gone.key} removed, {last.key} rolled back and forth; runs: {dict(ended)}")


def test_hosts_are_killed_while_everything_else_goes_wrong(tmp_path, say):
    chance = random.Random(SEED)
    victims = Counter[str]()
    with deployment(tmp_path, SOURCES, seed=SEED) as deployed:
        deployed.settle(PATIENCE_S)
        deployed.proxy.faults = BAD_WEATHER
        begun = time.monotonic()
        with watching(deployed, SEED) as watcher:
            for number in range(KILLS):
                deployed.ask_for(deployed.repositories.edit(chance.randint(1, 2)))
                if number % 10 == 5:
                    deployed.database.restart()
                    victims["Postgres"] += 1
                time.sleep(chance.uniform(0, 8))
                victims[kill_at_random(deployed, chance)] += 1
                assert watcher.problems == []
                assert longest_silence_s(deployed) < LEASE_S + 30
            stormed_s = time.monotonic() - begun
            deployed.proxy.faults = NO_FAULTS
            settling = time.monotonic()
            deployed.settle(PATIENCE_S + SETTLING_S)
            settled_s = time.monotonic() - settling
        equal = assert_equals_one_machine(deployed, tmp_path)
        ended = Counter(run.status for run in deployed.runs())
        say(f"{KILLS} kills in {stormed_s:.0f} s: {dict(victims)}; the object store: {dict(deployed.proxy.happened)}")
        say(f"settled after {settled_s:.0f} s; {equal}; runs: {dict(ended)}; {watcher}")
        assert deployed.database.advisory_locks() == []


def kill_at_random(deployed: Deployment, chance: random.Random) -> str:
    """Kill a host, or one of its processes, and start what is missing again; says which."""
    victim = chance.choice([*deployed.workers, *deployed.workers, deployed.publisher, deployed.searcher])
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
    """For how long the most silent holder of a lock has not been heard of."""
    return max((float(row.rpartition("|")[2]) for row in deployed.database.advisory_locks()), default=0.0)
