"""The stores, published as one, with the graph: a part of a publication would be a lie."""

import time
from collections.abc import Iterator
from typing import Any

import dagster as dg
import pyarrow as pa

from docindex_dagster.defs import metadata
from docindex_dagster.defs.failures import told
from docindex_dagster.defs.partitions import SOURCES
from docindex_dagster.defs.resources import EmbeddingModel, SourceRun
from docindex_dagster.embedding import kept
from docindex_dagster.errors import VerificationError
from docindex_dagster.files import folder_bytes
from docindex_dagster.graph.extraction import Extraction
from docindex_dagster.graph.plan import GraphPlan
from docindex_dagster.layout import Layout
from docindex_dagster.search.golden import golden_query
from docindex_dagster.stores.difference import Difference
from docindex_dagster.stores.publish import STORE_RULES, Publication, publish
from docindex_dagster.stores.rows import SourceRows
from docindex_dagster.stores.schema_version import SCHEMA_VERSION

_STORES = {
    "lancedb_table": ("lancedb", "For semantic search: the vectors and all columns of the chunks."),
    "tantivy_index": ("tantivy", "For the search for words: BM25 over text, symbols, headings and paths."),
}
_GOLDEN = "golden_query_finds_itself"


def _specs() -> Iterator[dg.AssetSpec]:
    for key, (kind, description) in _STORES.items():
        yield dg.AssetSpec(
            key,
            deps=["chunks", "embeddings", "knowledge_graph"],
            description=f"{description} See docs/architecture.md, “Publication”.",
            group_name="indexes",
            kinds={kind},
            code_version=SCHEMA_VERSION[:8],
            partitions_def=SOURCES,
            skippable=True,
        )


def _check_specs() -> Iterator[dg.AssetCheckSpec]:
    for key in _STORES:
        yield from metadata.rule_specs(key, STORE_RULES)
    yield metadata.source_warning_spec(
        _GOLDEN,
        "lancedb_table",
        "Warns when a search for the text of a chunk does not find that chunk: `docindex doctor` says what is damaged, "
        "`docindex rollback` takes the publication back.",
    )


@dg.multi_asset(
    name="publish_stores",
    specs=list(_specs()),
    check_specs=list(_check_specs()),
    ins={name: dg.AssetIn(name) for name in ("chunks", "embeddings", "knowledge_graph")},
    can_subset=False,
)
@told
def publish_stores(  # noqa: PLR0917 Dagster gives each input by its name
    context: dg.AssetExecutionContext,
    run: SourceRun,
    embedding_model: EmbeddingModel,
    chunks: pa.Table,
    embeddings: pa.Table,
    knowledge_graph: Extraction,
) -> Iterator[dg.MaterializeResult[Any] | dg.AssetCheckResult]:
    """Write, verify and publish the stores and the graph of one source."""
    started = time.perf_counter()
    key = context.partition_key
    rows = SourceRows(key, chunks, embeddings, knowledge_graph, run.revision())
    with run.publication(context.log):
        try:
            published = publish(
                run.layout,
                rows,
                embedding_model.model(),
                plan=GraphPlan(run.settings.graph, run.settings.llm),
                force=run.is_full or run.is_verifying,
            )
        except VerificationError as error:
            for store in _STORES:
                yield from metadata.failed(store, STORE_RULES, error)
            yield from metadata.not_evaluated("lancedb_table", _GOLDEN)
            return
    kept.settle(run.layout, key, embeddings)
    for warning in published.warnings:
        context.log.warning(warning)
    golden = metadata.warned(_GOLDEN, "lancedb_table", _golden(run, key, embedding_model, published))
    seconds = metadata.seconds_since(started)
    for store, details in _details(run.layout, published, chunks).items():
        yield dg.MaterializeResult(
            asset_key=store,
            data_version=dg.DataVersion(published.source.version),
            metadata={
                **({"warnings": "\n".join(published.warnings)} if published.warnings else {}),
                **({"takeover": str(published.takeover)} if published.takeover else {}),
                "generation": published.generation.number,
                "seconds": seconds,
                **details,
            },
            check_results=[*metadata.passed(store, STORE_RULES), *([golden] if store == "lancedb_table" else [])],
        )


def _golden(run: SourceRun, key: str, embedding_model: EmbeddingModel, published: Publication) -> str:
    """Why the golden query failed; it is a warning, so no error of it may undo what is published."""
    if not published.is_new:
        return ""
    try:
        return golden_query(run.layout, key, embedding_model.load)
    except Exception as error:  # noqa: BLE001 it is reported as a failed check
        return f"{type(error).__name__}: {error}"


def _details(layout: Layout, published: Publication, chunks: pa.Table) -> dict[str, dict[str, Any]]:
    """Counts, sizes, columns and samples of each store."""
    generation, source = published.generation, published.source
    folders = {"lancedb_table": layout.lance, "tantivy_index": layout.tantivy / generation.tantivy}
    details: dict[str, dict[str, Any]] = {}
    for store, change in (("lancedb_table", published.lance), ("tantivy_index", published.tantivy)):
        details[store] = metadata.of_table(
            chunks,
            {
                **_changes(change, source.chunks),
                "bytes": folder_bytes(folders[store]),
                **({"table_version": generation.table_version} if store == "lancedb_table" else {}),
                "dagster/uri": folders[store].relative_to(layout.home).as_posix(),
            },
            sample=chunks.select(["path", "start_line", "chunk_type", "qualified_name"]),
        )
    return details


def _changes(change: Difference | None, rows: int) -> dict[str, Any]:
    """Counts under the same names whether or not there was anything to do."""
    return {
        "added": change.added if change else 0,
        "changed": change.changed if change else 0,
        "reused": change.reused if change else rows,
        "removed": change.removed if change else 0,
    }
