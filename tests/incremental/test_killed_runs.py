"""Tests that a run can be killed at any time.

Searches keep working, and the next run starts immediately and repairs everything.
"""

import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from docindex_dagster.core import events
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.runner import entries, journal
from docindex_dagster.search.engine import search
from docindex_dagster.search.model import RETRIEVING
from docindex_dagster.stores.reader import open_reader
from tests.incremental.contents import Contents, difference, leftovers, problems, stores_of
from tests.incremental.processes import Child, How, anew, contents_of, ended, index_by_command, index_by_library
from tests.incremental.projects import TOPICS, Project

State = Literal["before", "after", "between", "nothing"]
_ORPHANS_END_WITHIN_S = 10.0
_QUERIES = ("open the pump", "valve_3 litres", "sensor revision")


@dataclass(frozen=True, slots=True)
class Killed:
    """A killed run: the stage it died in, the state then published, and the duration of the next run."""

    stage: str
    published: State
    repair_s: float


def test_searches_go_on_and_the_next_run_repairs(folder):
    killed = kill_runs(folder, "library", 1, number=1)

    assert len(killed) == 1


@pytest.mark.kill
def test_hundreds_of_killed_runs(folder, say):
    number = int(os.environ.get("DOCINDEX_TEST_SEED") or random.SystemRandom().randrange(1 << 32))
    wanted = int(os.environ.get("DOCINDEX_TEST_KILLS") or 200)
    say(f"to repeat: make test-kill DOCINDEX_TEST_SEED={number} DOCINDEX_TEST_KILLS={wanted}")
    of_commands = wanted // 8
    plan: dict[How, int] = {"library": wanted - of_commands, "command": of_commands}
    for how, times in plan.items():
        killed = kill_runs(folder / how, how, times, number=number)
        say(figures(how, killed))
        assert len(killed) == times
        assert len({run.stage for run in killed}) >= min(times, 3)


def kill_runs(folder: Path, how: How, times: int, *, number: int) -> list[Killed]:
    """Repeat `times` times: edit, index, kill, search, repair and compare, cycling through the stages."""
    project = Project.create(folder, number, files=30, with_clone=True)
    chance = random.Random(number)
    repair(project, how)
    durations = calibrate(project, how)
    turns = chance.sample(same_stages(durations), len(same_stages(durations)))
    killed: list[Killed] = []
    before = stores_of(project.layout, TOPICS)
    ready = Child.start(project, how)
    attempts = 0
    while len(killed) < times:
        attempts += 1
        assert attempts < 3 * times + 10, "the runs end before they can be killed"
        project.edit()
        is_first = not chance.randrange(6)
        if is_first:
            before = forget(project)
        stage = chance.choice(turns[attempts % len(turns)])
        child, ready = ready, Child.start(project, how)
        child.go()
        child.run_to(stage, chance.random() * durations[stage])
        died_in = child.kill(with_children=bool(chance.randrange(2)))
        assert ended(child.process.pid, _ORPHANS_END_WITHIN_S), f"killed in {died_in}: processes are left over"
        after = anew(project, how)
        state = look(project, before, after, died_in)
        started = time.monotonic()
        repair(project, how)
        seconds = time.monotonic() - started
        assert difference(contents_of(project), after) == "", f"killed in {died_in}"
        assert problems(project.layout) == []
        before = stores_of(project.layout, TOPICS)
        if died_in != "done":
            killed.append(Killed(plain(died_in), state, seconds))
    ready.kill(with_children=True)
    project.edit()
    repair(project, how)
    assert leftovers(project.layout) == []
    return killed


def calibrate(project: Project, how: How) -> dict[str, float]:
    """Return how long each stage of an undisturbed run takes."""
    project.edit()
    child = Child.start(project, how)
    child.go()
    child.run_to("never", 0)
    child.process.wait()
    child.kill(with_children=False)
    assert child.stages[-1][0] == "done", child.stages
    stages = [stage for stage in child.stages if stage[0] != "ready"]
    return {stage: stages[at + 1][1] - began for at, (stage, began) in enumerate(stages[:-1])}


def same_stages(names: Iterable[str]) -> list[list[str]]:
    """Group the names of stages that differ only in the source."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(plain(name), []).append(name)
    return list(found.values())


def plain(stage: str) -> str:
    """Return the name of a stage without its repetition number."""
    return stage.partition(" (")[0]


def forget(project: Project) -> Contents:
    """Remove everything except Dagster's records, so that the killed run is a first run."""
    for part in project.layout.home.iterdir():
        if part.is_dir() and part.name not in {"dagster", "locks"}:
            shutil.rmtree(part)
    return {}


def look(project: Project, before: Contents, after: Contents, died_in: str) -> State:
    """Search the published index and return its state; sources are published separately, one after another."""
    if not project.layout.current.exists():
        assert not before, "what was published is gone"
        return "nothing"
    reader, found = open_reader(project.layout), stores_of(project.layout, TOPICS)
    stored = {(row["chunk_id"], row["text"]) for row in found["Tantivy rows"]}
    for query in _QUERIES:
        for mode in RETRIEVING:
            hits = search(reader, query, StaticEmbedder, mode=mode)
            assert len(hits) == 10
            assert stored.issuperset((hit.chunk_id, hit.text) for hit in hits)
    shares: set[State] = set()
    for key, published in reader.generation.sources.items():
        if published.unlinked is not None:  # its text is already new, its graph part of the old one
            proofs = {edge["chunk_id"] for edge in found[f"triples of {key}"] or ()}
            assert proofs <= {chunk_id for chunk_id, _ in stored}
            found |= {f"{name} {key}": after.get(f"{name} {key}") for name in ("nodes of", "triples of", "published")}
        from_before, from_after = (difference(rows_of(found, key), rows_of(state, key)) for state in (before, after))
        assert not (from_before and from_after), (
            f"killed in {died_in}: {key} is not as before: {from_before}\nnor as after: {from_after}"
        )
        shares.add("after" if from_before else "before")
    return shares.pop() if len(shares) == 1 else "between"


def rows_of(state: Contents, key: str) -> Contents:
    """Return the stores' contents for one source."""
    found = {name: value for name, value in state.items() if name.endswith(f" {key}") and not name.startswith("table ")}
    for store in ("LanceDB", "Tantivy rows"):
        found[store] = [row for row in state.get(store, []) if row["source"] == key]
    return found


def repair(project: Project, how: How) -> None:
    """Run the next run as a user would, and assert that it waits for no other process."""
    if how == "library":
        waits: list[events.Event] = []
        with events.listening(lambda event: waits.append(event) if isinstance(event, events.Waiting) else None):
            index_by_library(project)
        assert not waits
        return
    index_by_command(project)
    assert not unfinished_runs(project)


def unfinished_runs(project: Project) -> list[str]:
    """Return the runs that the journal lists as running."""
    return [entry.run.run_id for _, entry in journal.runs(project.layout) if entry.state is entries.State.RUNNING]


def figures(how: str, killed: list[Killed]) -> str:
    """Return a histogram of the stages, and the states found after the kills."""
    lines = [f"{len(killed)} runs ({how}) killed, by stage:"]
    lines += [
        f"  {stage:<24} {count:>4} {'#' * count}" for stage, count in Counter(run.stage for run in killed).items()
    ]
    lines.append(f"  published then: {dict(Counter(run.published for run in killed))}")
    seconds = sorted(run.repair_s for run in killed)
    lines.append(f"  the next run took {seconds[len(seconds) // 2]:.2f} s (median), {seconds[-1]:.2f} s at most")
    return "\n".join(lines)
