"""Read-only checks whether the published index of a source is up to date with its files and settings."""

from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from docindex_dagster.chunking.inputs import MADE_FROM
from docindex_dagster.chunking.inputs import fingerprint as chunking_fingerprint
from docindex_dagster.chunking.summaries import create_summariser
from docindex_dagster.chunking.table_rules import is_above_threshold
from docindex_dagster.core import locks, tables
from docindex_dagster.core.errors import DamagedStoreError
from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.core.schemas import DISCOVERED_FILES
from docindex_dagster.core.settings import Settings
from docindex_dagster.embedding.providers import load_embedder
from docindex_dagster.graph.extraction import GraphPlan
from docindex_dagster.pipeline import chunking
from docindex_dagster.pipeline.publication import revision_of
from docindex_dagster.pipeline.source_run import SourceRun
from docindex_dagster.pipeline.stages import by_name
from docindex_dagster.sources.changes import fingerprint
from docindex_dagster.sources.commits import is_current_history
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.previous_listing import fingerprint_of, head_of
from docindex_dagster.stores import cleanup
from docindex_dagster.stores.publish import Publication, published_from
from docindex_dagster.stores.reader import can_be_opened, check_published
from docindex_dagster.stores.staging import Model

_FILES, _COMMITS, _CHUNKS = "discovered_files", "commits", "chunks"


@dataclass(frozen=True, slots=True)
class Settled:
    """A source that is up to date, so a run would do nothing.

    Attributes:
        files: Its table of discovered files.
        publication: Its current publication.
    """

    files: pa.Table
    publication: Publication


def settled(settings: Settings, source: Source) -> Settled | None:
    """Return the state of a source if a run would have nothing to do; None if it would, or if that is unknown.

    No file is read. The result is always None in three cases: for cloned repositories, since their remote is not
    queried; after a killed run, which the next run must report; and if every run of the source warns.

    Raises:
        SourceError: The source cannot be listed.
    """
    run = SourceRun(settings, source, lambda: load_embedder(settings.embedding))
    if source.remote is not None or settings.storage.url is not None or run.layout.next.exists():
        return None
    if locks.was_abandoned(run.layout.source_lock(source.key)):
        return None
    found = _found(run, fingerprint(source))
    if found is None:
        return None
    try:
        publication = unchanged(run, *found)
    except DamagedStoreError:  # a run reports it
        return None
    if publication is None or _is_warned_of(run, publication):
        return None
    return Settled(found[0], publication)


def _is_warned_of(run: SourceRun, publication: Publication) -> bool:
    """Return whether a run may warn even without work: about a precise index, or many files chunked as plain text."""
    source = publication.source
    return bool(run.graph_plan.precise) or is_above_threshold(source.fallbacks, source.files)


def is_current(settings: Settings, source: Source, seen: str | None = None) -> bool:
    """Return whether the published index of a source matches its current files and settings.

    No file is read, and no stage runs. For a cloned repository, the current files are those in its checkout. Returns
    False if the answer is unknown: after a run over single files, or if files changed while a run read them.

    Args:
        settings: The current settings.
        source: The source to check.
        seen: Its current `fingerprint`, if known.

    Raises:
        SourceError: The source cannot be listed.
    """
    run = SourceRun(settings, source, lambda: load_embedder(settings.embedding))
    found = _found(run, fingerprint(source) if seen is None else seen)
    return found is not None and _published(run, *found) is not None


def settings_fingerprint(settings: Settings, source: Source) -> str:
    """Return a hash of the settings that determine the index of a source: its own, and those of the stages.

    The hash is the same on all machines, regardless of the local path of the source.
    """
    own = replace(source, path=Path(), remote=source.remote and replace(source.remote, repository=Path()))
    model = load_embedder(settings.embedding).name  # an upgrade may change it under the same settings
    chunked_by = chunking_fingerprint(settings.chunking, create_summariser(settings, source.key))
    graph = GraphPlan(settings.graph, settings.llm).fingerprint
    return digest_parts(repr(own), repr((chunked_by, model, graph, settings.history)))


def state_of(settings: Settings, source: Source, seen: str) -> str:
    """Return a hash of everything that a source's tables are built from: its `fingerprint` and the settings."""
    return digest_parts(seen, settings_fingerprint(settings, source))


def state_of_tables(settings: Settings, source: Source) -> str:
    """Return the `state_of` that the local tables were built from; "" if tables are missing or inconsistent."""
    run = SourceRun(settings, source, lambda: load_embedder(settings.embedding))
    files = tables.read(run.layout.table(_FILES, run.key))
    seen = fingerprint_of(files) if files is not None else None
    found = _found(run, seen) if seen is not None else None
    if seen is None or found is None or not _are_kept(run, chunking.inputs_of(run, *found).made_from):
        return ""
    return state_of(settings, source, seen)


def _found(run: SourceRun, seen: str) -> tuple[pa.Table, pa.Table] | None:
    """Return the tables of a source's files and commits if they match its fingerprint `seen`."""
    files, commits = (tables.read(run.layout.table(name, run.key)) for name in (_FILES, _COMMITS))
    if files is None or commits is None or not files.schema.equals(DISCOVERED_FILES):
        return None
    is_up_to_date = fingerprint_of(files) == seen and is_current_history(
        run.source, commits, head_of(files), run.settings.history.commits
    )
    return (files, commits) if is_up_to_date else None


def unchanged(run: SourceRun, files: pa.Table, commits: pa.Table) -> Publication | None:
    """Return the current publication if it was built from these files and commits, and needs no work.

    Raises:
        DamagedStoreError: Searches use the publication, and it cannot be opened.
    """
    published = None if run.is_full or run.is_verifying else _published(run, files, commits)
    if published is None:
        return None
    if published.takeover is not None:  # a new publication repairs a candidate that is damaged or late
        is_settled = bool(published.takeover.missing) and can_be_opened(run.layout, published.generation)
        return published if is_settled else None
    check_published(run.layout)  # otherwise searches would find nothing, and no later run would notice
    if run.layout.next.exists():
        with run.publishing():
            cleanup.discard_pending(run.layout, published.generation.model)
    return published


def _published(run: SourceRun, files: pa.Table, commits: pa.Table) -> Publication | None:
    """Return the current publication if it and all tables were built from exactly these inputs."""
    made_from = chunking.inputs_of(run, files, commits).made_from
    model = Model.of(run.load_embedder())
    published = published_from(run.layout, run.key, made_from, revision_of(run), model, plan=run.graph_plan)
    return published if published is not None and _are_kept(run, made_from) else None


def _are_kept(run: SourceRun, made_from: str) -> bool:
    """Return whether the tables of all stages after the first two were built from `made_from`, per their footers."""
    if tables.metadata_value(run.layout.table(_CHUNKS, run.key), MADE_FROM) != made_from:
        return False
    known = by_name()
    kept = {name: stage.storage.kept_version(run.layout, run.key) for name, stage in known.items() if stage.storage}
    for stage in known.values():
        if stage.storage is None or stage.name in {_FILES, _COMMITS, _CHUNKS}:
            continue
        input_versions = {name: kept.get(name) or "" for name in stage.inputs}
        if stage.storage.input_fingerprint(run.layout, run.key) != stage.made_of(run, input_versions):
            return False
    return True
