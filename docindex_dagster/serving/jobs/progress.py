"""How far a job is: its phases, each with a fixed share of the whole."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from docindex_dagster.core import work
from docindex_dagster.core.layout import Layout
from docindex_dagster.serving.jobs.journal import BEGAN, PROGRESS
from docindex_dagster.serving.jobs.model import JobEvent


@dataclass(frozen=True, slots=True)
class _Phase:
    """A part of a job, which goes from one percentage to another."""

    name: str
    start: int
    end: int


_DISCOVERY = _Phase("discovery", 0, 10)
_CHUNKS = _Phase("chunks", 10, 50)
_EMBEDDINGS = _Phase("embeddings", 50, 75)
_CONCEPTS = _Phase("graph", 75, 82)
_GRAPH = _Phase("graph", 75, 90)
_STORES = _Phase("stores", 90, 97)
_CATALOGUE = _Phase("catalogue", 97, 100)
# By the stages that runs report. One that counts what another phase is for, such as `summaries`, belongs to that.
_PHASES: Mapping[str, _Phase] = {
    "clone": _DISCOVERY,
    "fetch contents": _DISCOVERY,
    "discovered_files": _DISCOVERY,
    "commits": _DISCOVERY,
    "chunks": _CHUNKS,
    "summaries": _CHUNKS,
    "references": _CHUNKS,
    "embeddings": _EMBEDDINGS,
    "concepts": _CONCEPTS,
    "knowledge_graph": _GRAPH,
    "stores": _STORES,
    "index_catalog": _CATALOGUE,
}


@dataclass(frozen=True, slots=True)
class Position:
    """What a job does now, and how far the whole is."""

    phase: str | None = None
    done: int | None = None
    total: int | None = None
    percent: int = 0


NOT_BEGUN = Position()
DONE = Position(percent=100)


def of_events(events: Sequence[JobEvent]) -> Position:
    """Where a job is by its events so far; it never goes back."""
    position = NOT_BEGUN
    for event in events:
        if event.name == BEGAN:
            position = Position("starting")
        elif event.name == PROGRESS:
            position = _later(position, at(**_step(event.data)))
    return position


def at(stage: str, done: int | None, total: int | None) -> Position:
    """Where a run is that does a stage."""
    phase = _PHASES.get(stage)
    if phase is None:  # of a package
        return Position(stage, done, total, 0)
    share = done / total if done is not None and total else 0.0
    percent = int(phase.start + min(1.0, share) * (phase.end - phase.start))
    return Position(phase.name, done, total, percent)


def of_run(layout: Layout, source: str | None, run_id: str) -> Position:
    """Return where a run is that works on a source of this home, by the lock that it holds."""
    at_work = work.on_source(layout, source) if source else None
    if at_work is None or at_work.step is None or run_id not in at_work.owner:
        return NOT_BEGUN
    return at(at_work.step.stage, at_work.step.done, at_work.step.total)


def _step(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: data[name] for name in ("stage", "done", "total")}


def _later(before: Position, now: Position) -> Position:
    return Position(now.phase, now.done, now.total, max(before.percent, now.percent))
