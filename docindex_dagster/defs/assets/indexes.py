"""The three stores, published as one: a third of a publication would be a lie."""

import time
from collections.abc import Iterator
from typing import Any

import dagster as dg
import pyarrow as pa

from docindex_dagster.defs import metadata
from docindex_dagster.defs.partitions import SOURCES
from docindex_dagster.defs.resources import EmbeddingModel, SourceRun
from docindex_dagster.errors import VerificationError
from docindex_dagster.search.golden import golden_query
from docindex_dagster.stores.difference import Difference
from docindex_dagster.stores.generation import SCHEMA_VERSION
from docindex_dagster.stores.publish import GRAPH_VERSION, STORE_RULES, Publication, publish

_STORES = {
    "lancedb_table": ("lancedb", "Vectors and all columns of the chunks, for semantic search."),
    "tantivy_index": ("tantivy", "BM25 over text, symbols, headings and paths."),
    "knowledge_graph": (
        "networkx",
        "Nodes and edges: what defines, contains and imports what, and which sections there are.",
    ),
}
_GRAPH_COMPLETE = "graph_is_complete"
_GOLDEN = "golden_query_finds_itself"


def _specs() -> Iterator[dg.AssetSpec]:
    for key, (kind, description) in _STORES.items():
        yield dg.AssetSpec(
            key,
            deps=["chunks", "embeddings"],
            description=description,
            group_name="indexes",
            kinds={kind},
            code_version=f"{SCHEMA_VERSION}.{GRAPH_VERSION}",
            partitions_def=SOURCES,
            skippable=True,
        )


def _check_specs() -> Iterator[dg.AssetCheckSpec]:
    for key in _STORES:
        yield from metadata.rule_specs(key, STORE_RULES)
    yield dg.AssetCheckSpec(
        _GRAPH_COMPLETE, asset="knowledge_graph", description="Warns when the graph of a source could not be extracted."
    )
    yield dg.AssetCheckSpec(
        _GOLDEN,
        asset="lancedb_table",
        description="Warns when a search for the text of a chunk does not find that chunk.",
    )


@dg.multi_asset(
    name="publish_stores",
    specs=list(_specs()),
    check_specs=list(_check_specs()),
    ins={"chunks": dg.AssetIn("chunks"), "embeddings": dg.AssetIn("embeddings")},
    can_subset=False,
)
def publish_stores(
    context: dg.AssetExecutionContext,
    run: SourceRun,
    embedding_model: EmbeddingModel,
    chunks: pa.Table,
    embeddings: pa.Table,
) -> Iterator[dg.MaterializeResult[Any] | dg.AssetCheckResult]:
    """Write, verify and publish the three stores of one source."""
    started = time.perf_counter()
    key = context.partition_key
    with run.publication(context.log):
        try:
            published = publish(
                run.layout,
                key,
                chunks,
                embeddings,
                embedding_model.model(),
                with_graph=run.settings.graph.enabled,
                force=run.is_full,
            )
        except VerificationError as error:
            for store in _STORES:
                yield from metadata.failed(store, STORE_RULES, error)
            return
    for warning in published.warnings:
        context.log.warning(warning)
    found = golden_query(run.layout, key, embedding_model.load) if published.is_new else ""
    for store, details in _details(published).items():
        checks = metadata.passed(store, STORE_RULES)
        if store == "knowledge_graph":
            checks.append(_warning(_GRAPH_COMPLETE, store, problem="; ".join(published.warnings)))
        if store == "lancedb_table":
            checks.append(_warning(_GOLDEN, store, problem=found))
        yield dg.MaterializeResult(
            asset_key=store,
            data_version=dg.DataVersion(published.source.version if published.source else ""),
            metadata={
                "generation": published.generation.number,
                "seconds": time.perf_counter() - started,
                "uri": f"stores/{store}",
                **details,
            },
            check_results=checks,
        )


def _warning(check: str, asset: str, problem: str) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        passed=not problem,
        severity=dg.AssetCheckSeverity.WARN,
        asset_key=asset,
        check_name=check,
        metadata={"reason": problem} if problem else {},
    )


def _details(published: Publication) -> dict[str, dict[str, Any]]:
    """Counts and tables of each store."""
    entry = published.source
    rows = entry.chunks if entry else 0
    graph: dict[str, Any] = {"nodes": entry.nodes if entry else 0, "edges": entry.edges if entry else 0}
    if published.graph:
        graph["predicates"] = metadata.counts(published.graph.triples["predicate"], "predicate", "edges")
        graph["sample"] = metadata.sample_rows(
            published.graph.triples.select(["subject", "predicate", "object", "path", "line"])
        )
        graph["dagster/column_schema"] = metadata.column_schema(published.graph.triples.schema)
    return {
        "lancedb_table": {
            "table": published.generation.table,
            "table_version": published.generation.table_version,
            **_changes(published.lance, rows),
        },
        "tantivy_index": {"folder": published.generation.tantivy, **_changes(published.tantivy, rows)},
        "knowledge_graph": graph,
    }


def _changes(change: Difference | None, rows: int) -> dict[str, Any]:
    """Counts under the same names whether or not there was anything to do."""
    return {
        "dagster/partition_row_count": rows,
        "added": change.added if change else 0,
        "changed": change.changed if change else 0,
        "reused": change.reused if change else rows,
        "removed": change.removed if change else 0,
    }
