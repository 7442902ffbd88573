"""The three stores, published as one: a third of a publication would be a lie."""

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
from docindex_dagster.graph.analysis import statistics
from docindex_dagster.graph.build import GRAPH_VERSION, Graph
from docindex_dagster.graph.opened import open_graphs
from docindex_dagster.graph.plan import GraphPlan
from docindex_dagster.layout import Layout
from docindex_dagster.search.golden import golden_query
from docindex_dagster.stores import graph_files
from docindex_dagster.stores.difference import Difference
from docindex_dagster.stores.publish import PROVED, STORE_RULES, Publication, publish
from docindex_dagster.stores.rows import AGREE, SourceRows
from docindex_dagster.stores.schema_version import SCHEMA_VERSION

_STORES = {
    "lancedb_table": ("lancedb", "For semantic search: the vectors and all columns of the chunks."),
    "tantivy_index": ("tantivy", "For the search for words: BM25 over text, symbols, headings and paths."),
    "knowledge_graph": (
        "networkx",
        "For questions of structure: what defines, contains and imports what, and which sections there are.",
    ),
}
_RULES = {
    "lancedb_table": {AGREE: STORE_RULES[AGREE]},
    "tantivy_index": {AGREE: STORE_RULES[AGREE]},
    "knowledge_graph": {PROVED: STORE_RULES[PROVED]},
}
_GRAPH_COMPLETE = "graph_is_complete"
_GOLDEN = "golden_query_finds_itself"


def _specs() -> Iterator[dg.AssetSpec]:
    for key, (kind, description) in _STORES.items():
        yield dg.AssetSpec(
            key,
            deps=["chunks", "embeddings"],
            description=f"{description} See docs/architecture.md, “Publication”.",
            group_name="indexes",
            kinds={kind},
            code_version=f"{SCHEMA_VERSION[:8]}.{GRAPH_VERSION}",
            partitions_def=SOURCES,
            skippable=True,
        )


def _check_specs() -> Iterator[dg.AssetCheckSpec]:
    for key, rules in _RULES.items():
        yield from metadata.rule_specs(key, rules)
    yield metadata.source_warning_spec(
        _GRAPH_COMPLETE,
        "knowledge_graph",
        "Warns when the graph of a source could not be extracted; its chunks can be searched nevertheless.",
    )
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
    ins={"chunks": dg.AssetIn("chunks"), "embeddings": dg.AssetIn("embeddings")},
    can_subset=False,
)
@told
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
    rows = SourceRows(key, chunks, embeddings, run.revision())
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
            for store, rules in _RULES.items():
                yield from metadata.failed(store, rules, error)
            yield from metadata.not_evaluated("knowledge_graph", _GRAPH_COMPLETE)
            yield from metadata.not_evaluated("lancedb_table", _GOLDEN)
            return
    kept.settle(run.layout, key, embeddings)
    warnings = [*published.warnings, *filter(None, [published.graph_problem])]
    for warning in warnings:
        context.log.warning(warning)
    extra_checks = {
        "knowledge_graph": [_warning(_GRAPH_COMPLETE, "knowledge_graph", published.graph_problem)],
        "lancedb_table": [_warning(_GOLDEN, "lancedb_table", _golden(run, key, embedding_model, published))],
    }
    seconds = metadata.seconds_since(started)
    for store, details in _details(run.layout, published, chunks).items():
        yield dg.MaterializeResult(
            asset_key=store,
            data_version=dg.DataVersion(published.source.version),
            metadata={
                **({"warnings": "\n".join(warnings)} if warnings else {}),
                **({"takeover": str(published.takeover)} if published.takeover else {}),
                "generation": published.generation.number,
                "seconds": seconds,
                **details,
            },
            check_results=[*metadata.passed(store, _RULES[store]), *extra_checks.get(store, ())],
        )


def _golden(run: SourceRun, key: str, embedding_model: EmbeddingModel, published: Publication) -> str:
    """Why the golden query failed; it is a warning, so no error of it may undo what is published."""
    if not published.is_new:
        return ""
    try:
        return golden_query(run.layout, key, embedding_model.load)
    except Exception as error:  # noqa: BLE001 it is reported as a failed check
        return f"{type(error).__name__}: {error}"


def _warning(check: str, asset: str, problem: str) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        passed=not problem,
        severity=dg.AssetCheckSeverity.WARN,
        asset_key=asset,
        check_name=check,
        metadata={"reason": problem} if problem else {},
    )


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
    graph = graph_files.read(layout, source.graph) if source.graph else None
    if graph is None:
        return {**details, "knowledge_graph": {"nodes": 0, "edges": 0}}
    details["knowledge_graph"] = metadata.of_table(
        graph.triples,
        {
            "nodes": source.nodes,
            "edges": source.edges,
            **_about_graph(graph),
            "dagster/uri": layout.graph.relative_to(layout.home).as_posix(),
        },
        sample=graph.triples.select(["path", "line", "subject_type", "predicate", "object_type", "resolution"]),
        predicates=metadata.counts(graph.triples["predicate"], "predicate", "edges"),
    )
    return details


def _about_graph(graph: Graph) -> dict[str, Any]:
    """How much is resolved, what is called most, and how many parts there are."""
    found = statistics(open_graphs({"": graph}))
    hubs = [{"symbol": name.partition("!")[2], "callers": count} for name, count in found.hubs]
    return {
        "calls": sum(found.calls.values()),
        "resolved_share": found.resolved,
        "components": found.components,
        "kinds": metadata.counts(graph.nodes["type"], "kind", "nodes"),
        "hubs": metadata.records(hubs, ["symbol", "callers"]),
    }


def _changes(change: Difference | None, rows: int) -> dict[str, Any]:
    """Counts under the same names whether or not there was anything to do."""
    return {
        "added": change.added if change else 0,
        "changed": change.changed if change else 0,
        "reused": change.reused if change else rows,
        "removed": change.removed if change else 0,
    }
