"""How far a job is: its phases, each with a fixed share of the whole."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from docindex_dagster.core import work
from docindex_dagster.core.layout import Layout
from docindex_dagster.runner.journal import PROGRESS
from docindex_dagster.serving.jobs.model import BEGAN, JobEvent

# The phase of each stage that runs report, and the percentages between which it goes. A stage that counts what another
# phase is for, such as `summaries`, belongs to that.
_PHASES: Mapping[str, tuple[str, int, int]] = {
    "clone": ("discovery", 0, 10),
    "fetch contents": ("discovery", 0, 10),
    "discovered_files": ("discovery", 0, 10),
    "commits": ("discovery", 0, 10),
    "chunks": ("chunks", 10, 50),
    "summaries": ("chunks", 10, 50),
    "references": ("chunks", 10, 50),
    "embeddings": ("embeddings", 50, 75),
    "concepts": ("graph", 75, 82),
    "knowledge_graph": ("graph", 75, 90),
    "stores": ("stores", 90, 97),
    "index_catalog": ("catalogue", 97, 100),
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


def after(before: Position, event: JobEvent) -> Position:
    """Where a job is after an event; it never goes back."""
    if event.name == BEGAN:
        return Position("starting")
    if event.name != PROGRESS:
        return before
    now = at(event.data["stage"], event.data["done"], event.data["total"])
    return replace(now, percent=max(before.percent, now.percent))


def at(stage: str, done: int | None, total: int | None) -> Position:
    """Where a run is that does a stage."""
    if stage not in _PHASES:  # of a package
        return Position(stage, done, total, 0)
    phase, start, end = _PHASES[stage]
    share = done / total if done is not None and total else 0.0
    return Position(phase, done, total, int(start + min(1.0, share) * (end - start)))


def of_run(layout: Layout, source: str | None, run_id: str) -> Position:
    """Return where a run is that works on a source of this home, by the lock that it holds."""
    at_work = work.on_source(layout, source) if source else None
    if at_work is None or at_work.step is None or run_id not in at_work.owner:
        return NOT_BEGUN
    return at(at_work.step.stage, at_work.step.done, at_work.step.total)
