"""Stage that writes the stores and publishes them atomically."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from docindex_dagster.core import tables
from docindex_dagster.core.files import folder_bytes
from docindex_dagster.core.layout import Layout
from docindex_dagster.embedding import cache
from docindex_dagster.embedding.protocol import Embedder
from docindex_dagster.graph import extraction
from docindex_dagster.graph.extraction import provisional
from docindex_dagster.pipeline.source_run import SourceRun
from docindex_dagster.pipeline.stage import CheckResult, Inputs, Outcome, Product, Report, Stage, pick_sample_chunks
from docindex_dagster.sources.previous_listing import HEAD
from docindex_dagster.stores import tantivy_index
from docindex_dagster.stores.difference import Difference
from docindex_dagster.stores.generation import SCHEMA_VERSION
from docindex_dagster.stores.publish import STORE_RULES, Publication, publish
from docindex_dagster.stores.reader import open_for_model
from docindex_dagster.stores.rows import SourceRows
from docindex_dagster.stores.staging import Model

_NAME, _GRAPH = "stores", "knowledge_graph"
_LANCE, _TANTIVY = "lancedb_table", "tantivy_index"
_GOLDEN = "golden_query_finds_itself"
_SAMPLE = ("path", "start_line", "chunk_type", "qualified_name")
_WITHIN = 10


def revision_of(run: SourceRun) -> str | None:
    """Return the version of the source from the settings, or for git the commit that discovery saw."""
    return run.source.version or tables.metadata_value(run.layout.table("discovered_files", run.key), HEAD)


def _publish(run: SourceRun, inputs: Inputs) -> Outcome:
    chunks, embeddings = inputs["chunks"], inputs["embeddings"]
    extracted = inputs.get(_GRAPH) or provisional(extraction.read(run.layout, run.key), chunks, run.graph_plan)
    run.source.folder()  # raises if a pull has replaced it with a symlink since discovery
    published = _written(run, SourceRows(run.key, chunks, embeddings, extracted, revision_of(run)))
    cache.clear_spill(run.layout, run.key, embeddings)
    missed = _golden(run, published)
    return Outcome(
        published,
        _reports(run, published, chunks),
        checks={_GOLDEN: CheckResult(not missed, missed)},
        warnings=published.warnings,
    )


def _written(run: SourceRun, rows: SourceRows) -> Publication:
    with run.publishing():
        return publish(
            run.layout,
            rows,
            Model.of(run.load_embedder()),
            plan=run.graph_plan,
            force=run.is_full or run.is_verifying,
            ready=run.wait_for_tables,
        )


def _golden(run: SourceRun, published: Publication) -> str:
    """Return why the golden query failed. This is only a warning, so its errors must not affect the publication."""
    if not published.is_new:
        return ""
    try:
        return golden_query(run.layout, run.key, run.load_embedder)
    except Exception as error:  # noqa: BLE001 reported as a failed check
        return f"{type(error).__name__}: {error}"


def _reports(run: SourceRun, published: Publication, chunks: pa.Table) -> dict[str, Report]:
    """Report counts, sizes and a sample of each store."""
    generation, source, layout = published.generation, published.source, run.layout
    takeover = {"takeover": str(published.takeover)} if published.takeover else {}
    stores: tuple[tuple[str, Difference | None, Path, dict[str, int]], ...] = (
        (_LANCE, published.lance, layout.lance, {"table_version": generation.table_version}),
        (_TANTIVY, published.tantivy, layout.tantivy / generation.tantivy, {}),
    )
    return {
        store: Report(
            version=source.version,
            numbers={
                **takeover,
                "generation": generation.number,
                **_changes(change, source.chunks),
                "bytes": folder_bytes(folder),
                **of_store,
                "dagster/uri": folder.relative_to(layout.home).as_posix(),
            },
            rows=chunks,
            sample=pick_sample_chunks(chunks).select(list(_SAMPLE)),
        )
        for store, change, folder, of_store in stores
    }


def _changes(change: Difference | None, rows: int) -> dict[str, int]:
    """Return the counts of changed rows, also if the store was not written."""
    return {
        "added": change.added if change else 0,
        "changed": change.changed if change else 0,
        "reused": change.reused if change else rows,
        "removed": change.removed if change else 0,
    }


_SEE_ALSO = "See docs/explanation/publication.md."
STORES = Stage(
    name=_NAME,
    products=(
        Product(
            _LANCE,
            f"Vectors and all columns of the chunks, for semantic search. {_SEE_ALSO}",
            frozenset({"lancedb"}),
        ),
        Product(
            _TANTIVY,
            f"BM25 index of text, symbols, headings and paths, for keyword search. {_SEE_ALSO}",
            frozenset({"tantivy"}),
        ),
    ),
    group="indexes",
    version=SCHEMA_VERSION[:8],
    inputs=("chunks", "embeddings", _GRAPH),
    late=(_GRAPH,),
    run=_publish,
    rules=STORE_RULES,
    warnings={
        _GOLDEN: "Warns if a search for the text of a chunk does not find that chunk. `docindex doctor` reports the "
        "damage; `docindex rollback` reverts the publication.",
    },
)


def golden_query(layout: Layout, source: str, embedder: Callable[[], Embedder]) -> str:
    """Search a source for the text of one of its chunks with each retriever; return "" if all find it.

    Searches the model's last publication, even if that has not taken over yet. Only the rows of the source are
    searched: exactly if there are few, even if searches of the entire index are approximate.
    """
    from docindex_dagster.search.engine import search  # most runs publish nothing
    from docindex_dagster.search.filters import Filters
    from docindex_dagster.search.model import Mode

    reader = open_for_model(layout, embedder().name)
    sources = {key: item for key, item in reader.generation.sources.items() if key == source}
    reader = replace(reader, generation=replace(reader.generation, sources=sources))  # do not read the others
    rows = tantivy_index.matching(reader.searcher, reader.index.schema, "source", source, 1)
    if not rows:
        return ""
    chunk = rows[0]
    query = f"{chunk['path']} {chunk['qualified_name'] or ''} {chunk['text']}"
    filters = Filters(sources=(source,), source_types=(chunk["source_type"],))
    missed = [
        mode.value
        for mode in (Mode.BM25, Mode.VECTOR)
        if all(
            hit.text != chunk["text"]
            for hit in search(reader, query, embedder, mode=mode, top_k=_WITHIN, filters=filters)
        )
    ]
    location = f"{chunk['path']}:{chunk['start_line']}"
    return f"{' and '.join(missed)} did not find {location} by its own text" if missed else ""
