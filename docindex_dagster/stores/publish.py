"""Publication: write a source's rows to the three stores, verify them, and publish all by replacing a single file."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.chunking.inputs import stored_inputs_digest
from docindex_dagster.chunking.table_rules import fallbacks
from docindex_dagster.core import tables
from docindex_dagster.core.errors import DamagedStoreError, StoreError, VerificationError
from docindex_dagster.core.events import ignore, reporter
from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.schemas import COMMIT, NO_LANGUAGE
from docindex_dagster.graph.extraction import EVERYTHING, GraphPlan
from docindex_dagster.stores import cleanup, graph_files, lance_table, row_files, takeover, tantivy_index
from docindex_dagster.stores.damage import reading_stores
from docindex_dagster.stores.difference import Difference, disagreement
from docindex_dagster.stores.generation import (
    SCHEMA_VERSION,
    Generation,
    PublishedSource,
    read_generation,
    write_generation,
)
from docindex_dagster.stores.parts import VECTOR
from docindex_dagster.stores.reader import check_generation
from docindex_dagster.stores.rows import AGREE, SourceRows, in_batches, rows_of_others
from docindex_dagster.stores.staging import Model, Staged, Start, start_of
from docindex_dagster.stores.takeover import Takeover

_FEW_ROWS = 1_000  # up to this many changed rows, verify only these

STORE_RULES = {
    AGREE: "LanceDB and Tantivy hold exactly the chunks of the source, row for row, each with its vector.",
}


@dataclass(frozen=True, slots=True)
class Publication:
    """The result of a publication. `lance` and `tantivy` are None if the source was already up to date.

    `takeover` is None if searches use `generation`; otherwise it lists the sources that the migration still lacks.
    """

    generation: Generation
    source: PublishedSource
    lance: Difference | None = None
    tantivy: Difference | None = None
    warnings: tuple[str, ...] = ()
    graph_problem: str = ""
    takeover: Takeover | None = None

    @property
    def is_new(self) -> bool:
        """Whether a new generation was published, as opposed to finding it up to date."""
        return self.lance is not None


@dataclass(frozen=True, slots=True)
class _Written:
    """The result of staging sources: the rows that the stores should hold, and the source entries."""

    in_lance: pa.Table  # see `lance_table.expected`
    in_tantivy: pa.Table  # the chunks of all sources
    entries: dict[str, PublishedSource]
    lance: Difference
    tantivy: Difference

    @property
    def changes(self) -> tuple[Difference, Difference]:
        """The changes to both stores."""
        return self.lance, self.tantivy

    @property
    def is_unchanged(self) -> bool:
        """Whether LanceDB and Tantivy already held these rows."""
        return all(change.is_empty for change in self.changes)


def publish(
    layout: Layout,
    rows: SourceRows,
    model: Model,
    *,
    plan: GraphPlan = EVERYTHING,
    force: bool = False,
    ready: Callable[[], None] | None = None,
) -> Publication:
    """Make the published stores hold exactly these rows of a source. The caller must hold the publication lock.

    If the published version is the requested one and can be opened, no rows are read. With `force`, all rows are
    compared anyway, and damaged stores are rebuilt from the tables of all sources. `ready` is called before `CURRENT`
    is replaced or left as it is; an error that it raises stops the publication. If the model is not the published one,
    the rows go to the pending generation, see `takeover`. The graph of the rows is awaited after LanceDB and Tantivy
    are written.

    A provisional graph is published once with its rows; if the rows are already published, nothing is done. The
    complete graph of the same rows later replaces it in the same generation, without reading or writing any row. A
    rollback therefore skips both.

    Raises:
        VerificationError: inputs or staged stores break a rule; the published generation is unchanged.
        DamagedStoreError: the stores are damaged, and `force` is not set.
    """
    rows.verify(model)
    if force:
        cleanup.remove_unused(layout, layout.links, set())  # derived from data that was not compared
        cleanup.stop_maintenance(layout)  # its rows may be damaged
    start = start_of(layout, model.name)
    try:
        found = None if force or start.is_due else _find_published(layout, rows, model, start, ready=ready)
        return found or _publish(layout, rows, model, start, plan=plan, force=force, ready=ready)
    except DamagedStoreError as error:
        is_candidate = start.serving is not None  # searches do not use it
        if start.base is None or not (force or is_candidate):
            raise
        cleanup.stop_maintenance(layout)  # it copies the damaged rows
        fresh = start.from_empty(error.problem)
        return _publish(layout, rows, model, fresh, plan=plan, force=force, ready=ready)


def _find_published(
    layout: Layout, rows: SourceRows, model: Model, start: Start, *, ready: Callable[[], None] | None
) -> Publication | None:
    """Return the published state if it has these rows, with an incomplete graph replaced by the current one.

    Raises:
        DamagedStoreError: the published generation cannot be opened.
    """
    published = start.base.sources.get(rows.key) if start.base else None
    if start.base is None or published is None or not _has_rows(published, rows, model):
        return None
    if not row_files.is_complete(layout, rows.key, published):
        return None
    rows.verify_graph()
    check_generation(layout, start.base)
    cleanup.remove_old_generations(layout)  # a killed run may have left some
    if ready:
        ready()
    known = published if rows.extraction.is_provisional else _complete_graph(layout, rows, model, published)
    generation = replace(start.base.with_source(rows.key, known), endpoint=model.endpoint)
    if generation != start.base:
        start.replace_base(layout, generation)
    if known.graph != published.graph:
        cleanup.remove_old_generations(layout)
    problem = rows.extraction.missing
    return Publication(
        generation, known, warnings=start.warnings, graph_problem=problem, takeover=start.remaining(start.base)
    )


def _has_rows(published: PublishedSource, rows: SourceRows, model: Model) -> bool:
    """Return whether a source has these rows and a graph of the same plan (any plan if its graph is provisional)."""
    extraction = rows.extraction
    plan = published.graph_made_by if extraction.is_provisional else extraction.plan
    return published.version == rows_version(rows, model.name, plan)


def _complete_graph(layout: Layout, rows: SourceRows, model: Model, published: PublishedSource) -> PublishedSource:
    """Return the entry of a published source with its current graph, if the published one is incomplete."""
    inputs = _inputs(stored_inputs_digest(rows.chunks), rows.revision, model, rows.extraction.plan)
    if not published.lacks_of_graph:
        # Other files may produce the same chunks, and earlier versions did not count fallbacks.
        return replace(published, inputs=inputs, fallbacks=len(fallbacks(rows.chunks)))
    entry = _write_graph(layout, rows, model)
    # The rows may be in a pack, together with the replaced graph.
    return replace(
        entry, rows=published.rows or _write_rows(layout, rows, entry.version), changed_at=published.changed_at
    )


def published_from(
    layout: Layout, key: str, made_from: str, revision: str | None, model: Model, *, plan: GraphPlan = EVERYTHING
) -> Publication | None:
    """Return the publication of a source if its inputs are unchanged; reads only `CURRENT` and `NEXT`."""
    try:
        remaining = takeover.migration_progress(layout, model.name)
        generation = takeover.written(layout, model.name)
    except StoreError:
        return None
    published = generation.sources.get(key) if generation else None
    inputs = _inputs(made_from, revision, model, plan.fingerprint)
    if generation is None or published is None or published.inputs != inputs or generation.endpoint != model.endpoint:
        return None
    return Publication(generation, published, takeover=remaining)


def withdraw(layout: Layout, key: str) -> Generation | None:
    """Publish a generation without a source; return None if nothing is published.

    The source is also removed from the pending generation, which is published if it only lacked this source. The
    caller must hold the publication lock.

    Raises:
        StoreError: the published generation cannot be read.
    """
    current = read_generation(layout)
    if current is None:
        return None
    candidate = _withdraw_from_next(layout, key, current)  # first: it must not hold a source that `CURRENT` lacks
    if key not in current.sources:
        return current
    if candidate is None or not takeover.holds_all_sources(candidate, current.with_source(key, None)):
        return _without(layout, key, current, write_generation)
    takeover.publish_or_stage(layout, candidate, current.with_source(key, None))
    cleanup.remove_old_generations(layout)
    return candidate


def _withdraw_from_next(layout: Layout, key: str, current: Generation) -> Generation | None:
    """Return the pending generation without a source; None if there is none, or it had to be discarded."""
    candidate = takeover.pending(layout)
    if candidate is None:
        return None
    try:
        check_generation(layout, candidate)
        if key not in candidate.sources:
            return candidate
        return _without(layout, key, candidate, lambda layout, left: takeover.publish_or_stage(layout, left, current))
    except DamagedStoreError:
        takeover.drop(layout)
        return None


def _without(layout: Layout, key: str, base: Generation, write: Callable[[Layout, Generation], None]) -> Generation:
    with reading_stores(), Staged.opened(layout, Model(base.model, 0, base.endpoint), base) as staged:
        lance_table.remove(staged.table, key)
        tantivy_index.remove(staged.index, key)
        return staged.go_live({key: None}, write, changed_rows=base.sources[key].chunks)


def _publish(
    layout: Layout,
    rows: SourceRows,
    model: Model,
    start: Start,
    *,
    plan: GraphPlan,
    force: bool,
    ready: Callable[[], None] | None,
) -> Publication:
    warnings = list(start.warnings)
    with reading_stores(), Staged.opened(layout, model, start.base) as staged:
        entries: dict[str, PublishedSource | None] = {}
        changed_rows = 0
        if start.rebuild_because:
            built = "the stores were" if start.serving is None else "the pending index was"
            warnings.append(f"{built} rebuilt: {start.rebuild_because}")
        if start.rebuild_because or (start.serving and start.base is None):
            # Sources without vectors of a new model are expected, so do not warn of them.
            skipped = [] if start.serving else warnings
            others = rows_of_others(layout, rows.key, model, start.known, skipped, plan=plan)
            for batch in in_batches(others):
                rebuilt = _stage(staged, batch, rewrite=True)
                _verify(staged, rebuilt)
                changed_rows += rebuilt.lance.written
                entries |= {key: _keep_date(entry, key, start.known) for key, entry in rebuilt.entries.items()}
        written = _stage(staged, [rows], rewrite=force, report=True, ready=partial(_await_graph, rows, ready))
        entry = _keep_date(written.entries[rows.key], rows.key, start.known)
        graph_problem = rows.extraction.missing
        is_current = (
            start.base is not None
            and entry == start.base.sources.get(rows.key)
            and start.base.endpoint == model.endpoint
        )
        if start.base and is_current and written.is_unchanged and not start.is_due:
            if force:
                _check_consistency(staged, start.base, written)
            return Publication(
                start.base,
                entry,
                warnings=tuple(warnings),
                graph_problem=graph_problem,
                takeover=start.remaining(start.base),
            )
        if force or any(change.written > _FEW_ROWS for change in written.changes):
            _verify(staged, written)
        else:
            _verify_changes(staged, rows.key, written)
        changed_rows += written.lance.written
        generation = staged.go_live({**entries, rows.key: entry}, start.publish, changed_rows=changed_rows)
    warnings += filter(None, [start.describe_change(generation)])
    return Publication(
        generation,
        entry,
        written.lance,
        written.tantivy,
        tuple(warnings),
        graph_problem,
        start.remaining(generation),
    )


def _await_graph(rows: SourceRows, ready: Callable[[], None] | None) -> None:
    """Wait for the graph, verify it, then call `ready`."""
    rows.verify_graph()
    if ready:
        ready()


def _keep_date(entry: PublishedSource, key: str, known: Generation | None) -> PublishedSource:
    """Return the entry with the date on which its version was first published."""
    before = known.sources.get(key) if known else None
    return replace(entry, changed_at=before.changed_at) if before and before.version == entry.version else entry


def _check_consistency(staged: Staged, base: Generation, written: _Written) -> None:
    """Check for duplicate rows and rows of unpublished sources, which a comparison by id does not detect."""
    try:
        _verify(staged, written)
    except VerificationError as error:
        raise DamagedStoreError(str(error)) from error
    expected = sum(source.chunks for source in base.sources.values())
    for store, number in (("LanceDB", staged.table.count_rows()), ("Tantivy", staged.index.searcher().num_docs)):
        if number != expected:
            raise DamagedStoreError(f"{store} holds {number} rows, but {expected} were published")


def _stage(
    staged: Staged,
    batch: Sequence[SourceRows],
    *,
    rewrite: bool,
    report: bool = False,
    ready: Callable[[], None] | None = None,
) -> _Written:
    """Write the rows of sources into the staged stores, with one commit per store.

    With `rewrite`, all files are rewritten; with `report`, progress is reported. Once `ready` returns, the tables of
    the sources are on disk, so that their files can be copied.
    """
    keys = [rows.key for rows in batch]
    chunks = pa.concat_tables([rows.chunks for rows in batch])
    embeddings = pa.concat_tables([rows.embeddings for rows in batch])
    announce = reporter(keys[-1], "stores", "chunks") if report else ignore
    listeners = copy_context()
    with ThreadPoolExecutor(1) as executor:  # write to Tantivy and LanceDB in parallel
        future = executor.submit(listeners.run, tantivy_index.reconcile, staged.index, keys, chunks, announce)
        target = lance_table.expected(chunks, embeddings)
        lance = lance_table.reconcile(staged.table, keys, chunks, embeddings, target)
        if ready:
            ready()
        change = lance if len(batch) == 1 else None
        entries = {rows.key: _stage_files(staged, rows, change, rewrite=rewrite) for rows in batch}
        tantivy = future.result()
    return _Written(target, chunks, entries, lance, tantivy)


def _stage_files(staged: Staged, rows: SourceRows, change: Difference | None, *, rewrite: bool) -> PublishedSource:
    """Write the row and graph files of a source, and return its entry.

    `change` is the difference between its rows and those of the base, if known.
    """
    entry = _write_graph(staged.layout, rows, staged.model, rewrite=rewrite)
    known = staged.base.sources.get(rows.key) if staged.base else None
    before = row_files.Before(known.rows, change) if known and change else None
    return replace(entry, rows=_write_rows(staged.layout, rows, entry.version, before, rewrite=rewrite))


def _write_graph(layout: Layout, rows: SourceRows, model: Model, *, rewrite: bool = False) -> PublishedSource:
    """Write the graph of a source, and return its entry without the row files."""
    entry, extraction = _entry(rows, rows_version(rows, model.name, rows.extraction.plan)), rows.extraction
    if extraction.is_settled:
        entry = replace(entry, inputs=_inputs(stored_inputs_digest(rows.chunks), rows.revision, model, extraction.plan))
    if extraction.graph:
        version = digest_parts(entry.version, extraction.version)
        from_tables = "" if rewrite else extraction.version
        entry = replace(entry, graph=graph_files.write(layout, rows.key, extraction.graph, version, made=from_tables))
    return entry


def _write_rows(
    layout: Layout, rows: SourceRows, version: str, before: row_files.Before | None = None, *, rewrite: bool = False
) -> tuple[str, ...]:
    with_vectors = rows.chunks.append_column(VECTOR, rows.embeddings[VECTOR])
    return row_files.write(layout, rows.key, version, with_vectors, before, rewrite=rewrite)


def _verify(staged: Staged, written: _Written) -> None:
    """Read back the staged rows and compare them with the expected rows."""
    keys, index = list(written.entries), staged.index
    in_lance = lance_table.held(staged.table, keys)
    in_tantivy = tantivy_index.held(index.searcher(), index.schema, keys)
    differences = {
        "LanceDB": disagreement(in_lance, written.in_lance),
        "Tantivy": disagreement(in_tantivy, written.in_tantivy),
    }
    if broken := "; ".join(f"{store}: {text}" for store, text in differences.items() if text):
        raise VerificationError("publication", {AGREE: broken})


def _verify_changes(staged: Staged, key: str, written: _Written) -> None:
    """Read back the changed rows of a source, and count all its rows.

    The unchanged rows were compared before. If a store loses one, the next publication detects it.
    """
    searcher, schema = staged.index.searcher(), staged.index.schema
    changed = pc.unique(
        pa.concat_arrays([ids for change in written.changes for ids in (change.writes, change.deletes)])
    )
    ids = changed.to_pylist()
    problems = {
        "LanceDB": _problem_with(
            lance_table.held_of(staged.table, ids), lance_table.number(staged.table, key), written.in_lance, changed
        ),
        "Tantivy": _problem_with(
            tantivy_index.held_of(searcher, schema, ids),
            tantivy_index.number(searcher, schema, key),
            written.in_tantivy,
            changed,
        ),
    }
    if broken := "; ".join(f"{store}: {text}" for store, text in problems.items() if text):
        raise VerificationError("publication", {AGREE: broken})


def _problem_with(held: pa.Table, number: int, target: pa.Table, changed: pa.Array) -> str:
    """Return the problem with the changed rows of a store, or with the total number of rows; empty if there is none."""
    found = disagreement(held, target.filter(pc.is_in(target["chunk_id"], changed)))
    return found or ("" if number == target.num_rows else f"expected {target.num_rows} rows, got {number}")


def _inputs(made_from: str | None, revision: str | None, model: Model, plan: str) -> str | None:
    """Return a hash of all inputs of a source's publication; `plan` is the fingerprint of a GraphPlan."""
    return None if made_from is None else _version(made_from, revision=revision, model=model.name, plan=plan)


def rows_version(rows: SourceRows, model: str, plan: str) -> str:
    """Return the version of published rows: equal rows with a graph of the same plan have equal versions."""
    vectors = tables.stamped_version(rows.embeddings.schema.metadata) or tables.data_version(rows.embeddings)
    chunks = tables.column_version(rows.chunks, "row_hash")
    return _version(chunks, vectors, revision=rows.revision, model=model, plan=plan)


def _version(*content: str, revision: str | None, model: str, plan: str) -> str:
    return digest_parts(SCHEMA_VERSION, plan, model, revision or "", *content)


def _entry(rows: SourceRows, version: str) -> PublishedSource:
    graph = rows.extraction.graph
    of_files = rows.chunks.filter(pc.not_equal(rows.chunks["source_type"], COMMIT))
    languages = pc.value_counts(pc.fill_null(of_files["language"], NO_LANGUAGE))
    counts = zip(languages.field("values").to_pylist(), languages.field("counts").to_pylist(), strict=True)
    return PublishedSource(
        version=version,
        revision=rows.revision,
        graph=None,
        files=len(pc.unique(of_files["path"])),
        chunks=rows.chunks.num_rows,
        text_bytes=pc.sum(pc.binary_length(rows.chunks["text"]), min_count=0).as_py() or 0,
        nodes=graph.nodes.num_rows if graph else 0,
        edges=graph.triples.num_rows if graph else 0,
        graph_failures=len(graph.problems) if graph else 0,
        unreadable_configurations=len(graph.unreadable) if graph else 0,
        languages=dict(sorted(counts)),
        changed_at=datetime.now(UTC).isoformat(timespec="seconds"),
        commits=rows.chunks.num_rows - of_files.num_rows,
        fallbacks=len(fallbacks(rows.chunks)),
        graph_made_by=rows.extraction.plan,
        lacks_of_graph=not rows.extraction.is_settled,
        unlinked=rows.extraction.unlinked,
    )
