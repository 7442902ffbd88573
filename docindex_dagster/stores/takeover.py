"""A change of the model or of the schemas: the file `NEXT`, and when the generation that it names takes over.

Vectors of two models cannot be compared, and rows of two schemas cannot stand in one store. So publications of another
model or schema than the published one go to a generation beside it, source by source, and searches use the old one
until the new one holds all of its sources. That generation is a candidate and no more: what is of no use any more is
dropped, and made again from the tables.
"""

from dataclasses import dataclass

from docindex_dagster.core.errors import StoreError
from docindex_dagster.core.layout import Layout
from docindex_dagster.stores.generation import Generation, read_generation, read_next, replace_next, write_generation


@dataclass(frozen=True, slots=True)
class Takeover:
    """How far the index is on its way from one model to another, or to other schemas."""

    old: str  # the model that searches use
    new: str
    sources: int  # that can be searched
    missing: tuple[str, ...]  # those of them that have no vectors of the new model yet

    def __str__(self) -> str:
        done = self.sources - len(self.missing)
        models = f"from {self.old} to {self.new}" if self.old != self.new else "to the form of this version of docindex"
        return f"the index goes over {models}: {done} of {self.sources} sources are done"


def toward(serving: Generation, model: str, candidate: Generation | None) -> Takeover:
    """How far `serving` is on its way to a model, of which `following` may be the generation that is to take over."""
    done = candidate.sources if candidate is not None and candidate.is_of(model) else {}
    missing = tuple(key for key in serving.sources if key not in done)
    return Takeover(serving.model, model, len(serving.sources), missing)


def under_way(layout: Layout, model: str) -> Takeover | None:
    """How far the index is on its way to a model; None where it is there, or nothing is published.

    Raises:
        StoreError: what is published cannot be read.
    """
    current = read_generation(layout)
    if current is None or current.is_of(model):
        return None
    return toward(current, model, pending(layout))


def pending(layout: Layout) -> Generation | None:
    """The generation that is to take over; None where there is none that could, or it cannot be read."""
    try:
        current, candidate = read_generation(layout), read_next(layout)
    except StoreError:
        return None
    if current is None or candidate is None or candidate.is_like(current):
        return None
    return candidate


def written(layout: Layout, model: str) -> Generation | None:
    """The generation that publications of a model go on from: the published one, or the one that is to take over.

    Raises:
        StoreError: what is published cannot be read.
    """
    current = read_generation(layout)
    if current is None or current.is_of(model):
        return current
    candidate = pending(layout)
    return candidate if candidate is not None and candidate.is_of(model) else None


def holds_all(candidate: Generation, serving: Generation) -> bool:
    """Whether a generation holds every source of another one."""
    return serving.sources.keys() <= candidate.sources.keys()


def hand_in(layout: Layout, candidate: Generation, serving: Generation) -> None:
    """Publish a generation of a new model if it holds every source of `serving`; until then, `NEXT` names it."""
    if holds_all(candidate, serving):
        write_generation(layout, candidate)
        drop(layout)
    else:
        replace_next(layout, candidate)


def drop(layout: Layout) -> None:
    """Give up the generation that was to take over; the next clean-up removes what it alone needs."""
    layout.next.unlink(missing_ok=True)


def drop_other(layout: Layout, current: Generation | None, model: str) -> str:
    """Give up a generation that publications of a model cannot go on from; returns why, if the user should know."""
    try:
        candidate = read_next(layout)
    except StoreError as error:
        drop(layout)
        return f"the index that was to take over is given up: {error}"
    if candidate is None or (current is not None and candidate.is_of(model) and not current.is_of(model)):
        return ""
    drop(layout)
    if candidate.is_of(model):  # a writer died after it took over, or a user rolled back to it
        return ""
    if candidate.model == model:
        return "the index that was to take over is given up: another version of docindex made it"
    return f"the index of {candidate.model}, which was to take over, is given up: the model is {model}"
