"""Stage that extracts the knowledge graph of a source from its chunks and references."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from operator import attrgetter

import pyarrow as pa

from docindex_dagster.core import child_process
from docindex_dagster.graph import extraction
from docindex_dagster.graph.analysis import Statistics, statistics
from docindex_dagster.graph.extraction import Extraction
from docindex_dagster.graph.open_graph import open_graphs
from docindex_dagster.graph.scip import table
from docindex_dagster.graph.source_graph import GRAPH_RULES, GRAPH_VERSION, NODES_TABLE, TRIPLES_TABLE, Graph
from docindex_dagster.pipeline.source_run import SourceRun
from docindex_dagster.pipeline.stage import (
    CheckResult,
    Inputs,
    Outcome,
    Product,
    Report,
    Stage,
    Storage,
    counts,
    previous,
)

_NAME = "knowledge_graph"
_COMPLETE = "graph_is_complete"
_LOCAL = frozenset({"none", "patterns", "spacy"})
# With fewer chunks, starting a process takes longer than it saves.
CHUNKS_WORTH_A_PROCESS = 2000
_SAMPLE = ("path", "line", "subject_type", "predicate", "object_type", "resolution")


_STORAGE = Storage((NODES_TABLE, TRIPLES_TABLE), extraction.read, extraction.write, attrgetter("version"))


@dataclass(frozen=True, slots=True)
class _Counted:
    """A graph and its statistics."""

    extraction: Extraction
    statistics: Statistics | None  # None without a graph

    @classmethod
    def of(cls, extracted: Extraction) -> "_Counted":
        """Compute the statistics of a graph."""
        graph = extracted.graph
        return cls(extracted, None if graph is None else statistics(open_graphs({"": graph}, evidence=())))


def _extracted(run: SourceRun, chunks: pa.Table, references: pa.Table, before: Extraction | None) -> _Counted:
    return _Counted.of(
        extraction.extract(run.layout, run.key, chunks, references, plan=run.graph_plan, previous=before)
    )


def _extracted_elsewhere(run: SourceRun, chunks: pa.Table, references: pa.Table, before: Extraction | None) -> _Counted:
    """Extract the graph in a child process, since this one is embedding; if that fails, extract it here."""
    from docindex_dagster.graph.build import without_code  # slow import

    plan = run.graph_plan
    sent = chunks if plan.precise else without_code(chunks)
    work = partial(extraction.extract, run.layout, run.key, sent, references, plan=plan, previous=before)
    try:
        # The statistics take memory, so they are computed after the child process has ended.
        return _Counted.of(child_process.run_in_child_process(work))
    except ChildProcessError as error:
        run.notice(f"extracting the graph again: {error}")
        return _extracted(run, chunks, references, before)


def _extract(run: SourceRun, inputs: Inputs) -> Outcome:
    chunks, references, before = inputs["chunks"], inputs["references"], previous(run, _STORAGE)
    is_much = (
        before is None and chunks.num_rows >= CHUNKS_WORTH_A_PROCESS and run.graph_plan.settings.concepts in _LOCAL
    )
    found = (_extracted_elsewhere if is_much else _extracted)(run, chunks, references, before)
    extracted: Extraction = found.extraction
    return Outcome(
        extracted,
        {_NAME: _report(extracted, found.statistics)},
        checks={_COMPLETE: CheckResult(not extracted.missing, extracted.missing)},
        warnings=tuple(filter(None, [extracted.missing, _stale(run, chunks)])),
    )


def _stale(run: SourceRun, chunks: pa.Table) -> str:
    """Return a warning about files for which the precise index is stale; empty if there are none."""
    precise = table.read(run.layout, run.key) if run.graph_plan.precise else None
    if precise is None:
        return ""
    from docindex_dagster.graph.scip.merge import stale_sentence  # slow import

    return stale_sentence(precise, chunks)


def _report(extracted: Extraction, found: Statistics | None) -> Report:
    graph = extracted.graph
    if graph is None or found is None:
        return Report(extracted.version, {"nodes": 0, "edges": 0})
    return Report(
        version=extracted.version,
        numbers={
            "nodes": graph.nodes.num_rows,
            "edges": graph.triples.num_rows,
            "calls": sum(found.calls.values()),
            "resolved_share": found.resolved,
            "components": found.components,
        },
        rows=graph.triples,
        sample=graph.triples.select(list(_SAMPLE)),
        breakdowns=_breakdowns(graph, found),
    )


def _breakdowns(graph: Graph, found: Statistics) -> Mapping[str, pa.Table]:
    hubs = {"symbol": [name.partition("!")[2] for name, _ in found.hubs], "callers": [count for _, count in found.hubs]}
    return {
        "kinds": counts(graph.nodes["type"], "kind", "nodes"),
        "hubs": pa.table(hubs, schema=pa.schema([("symbol", pa.string()), ("callers", pa.int64())])),
        "predicates": counts(graph.triples["predicate"], "predicate", "edges"),
    }


KNOWLEDGE_GRAPH = Stage(
    name=_NAME,
    products=(
        Product(
            _NAME,
            "Graph of definitions, containment, imports, calls and documentation, for structural queries.\n\nSee "
            "docs/explanation/call-graph.md.",
            frozenset({"networkx", "parquet"}),
        ),
    ),
    group="graph",
    version=GRAPH_VERSION,
    inputs=("chunks", "references"),
    run=_extract,
    storage=_STORAGE,
    rules=GRAPH_RULES,
    warnings={_COMPLETE: "Warns if the graph of a source could not be extracted. Its chunks are still searchable."},
    depends_on=lambda run: run.graph_plan.fingerprint,
)
