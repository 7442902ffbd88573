"""The knowledge graph of a source."""

import time
from collections.abc import Iterator
from typing import Any

import dagster as dg
import pyarrow as pa

from docindex_dagster.defs import metadata
from docindex_dagster.defs.failures import told
from docindex_dagster.defs.partitions import SOURCES
from docindex_dagster.defs.resources import SourceRun
from docindex_dagster.errors import VerificationError
from docindex_dagster.graph import extraction
from docindex_dagster.graph.analysis import statistics
from docindex_dagster.graph.build import GRAPH_VERSION, Graph
from docindex_dagster.graph.extraction import Extraction
from docindex_dagster.graph.opened import open_graphs
from docindex_dagster.graph.plan import GraphPlan
from docindex_dagster.graph.verify import GRAPH_RULES

_COMPLETE = "graph_is_complete"


@dg.asset(
    partitions_def=SOURCES,
    group_name="graph",
    kinds={"networkx", "parquet"},
    code_version=GRAPH_VERSION,
    io_manager_key="graph",
    output_required=False,
    check_specs=[
        *metadata.rule_specs("knowledge_graph", GRAPH_RULES),
        metadata.source_warning_spec(
            _COMPLETE,
            "knowledge_graph",
            "Warns when the graph of a source could not be extracted; its chunks can be searched nevertheless.",
        ),
    ],
)
@told
def knowledge_graph(
    context: dg.AssetExecutionContext, run: SourceRun, chunks: pa.Table
) -> Iterator[dg.MaterializeResult[Extraction] | dg.AssetCheckResult]:
    """For questions of structure: what defines, contains, imports and calls what, and what documents it.

    See docs/graph.md, “Nodes and edges”.
    """
    started = time.perf_counter()
    key, plan = context.partition_key, GraphPlan(run.settings.graph, run.settings.llm)
    previous = None if run.is_full else extraction.read(run.layout, key)
    try:
        extracted = extraction.extract(run.layout, key, chunks, plan, previous)
    except VerificationError as error:
        yield from metadata.failed("knowledge_graph", GRAPH_RULES, error)
        yield from metadata.not_evaluated("knowledge_graph", _COMPLETE)
        return
    if extracted.told:
        context.log.warning(extracted.told)
    yield dg.MaterializeResult(
        value=extracted,
        data_version=dg.DataVersion(extracted.version),
        metadata={
            **({"warnings": extracted.told} if extracted.told else {}),
            "seconds": metadata.seconds_since(started),
            **_details(extracted.graph),
        },
        check_results=[
            *metadata.passed("knowledge_graph", GRAPH_RULES),
            metadata.warned(_COMPLETE, "knowledge_graph", extracted.told),
        ],
    )


def _details(graph: Graph | None) -> dict[str, Any]:
    """Counts, columns and a sample."""
    if graph is None:
        return {"nodes": 0, "edges": 0}
    return metadata.of_table(
        graph.triples,
        {"nodes": graph.nodes.num_rows, "edges": graph.triples.num_rows, **_about(graph)},
        sample=graph.triples.select(["path", "line", "subject_type", "predicate", "object_type", "resolution"]),
        predicates=metadata.counts(graph.triples["predicate"], "predicate", "edges"),
    )


def _about(graph: Graph) -> dict[str, Any]:
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
