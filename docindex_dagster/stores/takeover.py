"""Migration to another model or schema version: the pending generation, which `NEXT` names, and its publication.

Vectors of different models are not comparable, and rows of different schemas cannot share a store. So if the model or
schema changes, publications go to a separate pending generation, source by source. Searches use the old generation
until the pending one holds all of its sources. A pending generation that becomes useless is discarded and rebuilt from
the tables.
"""

from dataclasses import dataclass

from docindex_dagster.core.errors import StoreError
from docindex_dagster.core.layout import Layout
from docindex_dagster.stores.generation import Generation, read_generation, read_next, replace_next, write_generation


@dataclass(frozen=True, slots=True)
class Takeover:
    """Progress of the migration from one model to another, or to another schema version."""

    old: str  # the model that searches use
    new: str
    sources: int  # number of searchable sources
    missing: tuple[str, ...]  # keys of those without vectors of the new model

    def __str__(self) -> str:
        done = self.sources - len(self.missing)
        target = f"from {self.old} to {self.new}" if self.old != self.new else "to the format of this docindex version"
        return f"the index is migrating {target}: {done} of {self.sources} sources are done"


def progress_to(serving: Generation, model: str, candidate: Generation | None) -> Takeover:
    """Return the progress of migrating from `serving` to a model; `candidate` is the pending generation, if any."""
    done = candidate.sources if candidate is not None and candidate.is_of(model) else {}
    missing = tuple(key for key in serving.sources if key not in done)
    return Takeover(serving.model, model, len(serving.sources), missing)


def migration_progress(layout: Layout, model: str) -> Takeover | None:
    """Return the progress of the migration to a model; None if it is complete, or nothing is published.

    Raises:
        StoreError: the published generation cannot be read.
    """
    current = read_generation(layout)
    if current is None or current.is_of(model):
        return None
    return progress_to(current, model, pending(layout))


def pending(layout: Layout) -> Generation | None:
    """Return the pending generation; None if there is none, it is obsolete, or it cannot be read."""
    try:
        current, candidate = read_generation(layout), read_next(layout)
    except StoreError:
        return None
    if current is None or candidate is None or candidate.is_like(current):
        return None
    return candidate


def written(layout: Layout, model: str) -> Generation | None:
    """Return the generation that publications of a model continue: the published or the pending one.

    Raises:
        StoreError: the published generation cannot be read.
    """
    current = read_generation(layout)
    if current is None or current.is_of(model):
        return current
    candidate = pending(layout)
    return candidate if candidate is not None and candidate.is_of(model) else None


def holds_all_sources(candidate: Generation, serving: Generation) -> bool:
    """Return whether a generation holds every source of another."""
    return serving.sources.keys() <= candidate.sources.keys()


def publish_or_stage(layout: Layout, candidate: Generation, serving: Generation) -> None:
    """Publish `candidate` if it holds every source of `serving`; until then, let `NEXT` name it."""
    if holds_all_sources(candidate, serving):
        write_generation(layout, candidate)
        drop(layout)
    else:
        replace_next(layout, candidate)


def drop(layout: Layout) -> None:
    """Discard the pending generation; the next cleanup removes its files."""
    layout.next.unlink(missing_ok=True)


def drop_other(layout: Layout, current: Generation | None, model: str) -> str:
    """Discard a pending generation that publications of a model cannot continue; return the reason, if any."""
    try:
        candidate = read_next(layout)
    except StoreError as error:
        drop(layout)
        return f"the pending index was discarded: {error}"
    if candidate is None or (current is not None and candidate.is_of(model) and not current.is_of(model)):
        return ""
    drop(layout)
    if candidate.is_of(model):  # a writer died after publishing it, or a user rolled back to it
        return ""
    if candidate.model == model:
        return "the pending index was discarded: another version of docindex built it"
    return f"the pending index of {candidate.model} was discarded: the model is now {model}"
