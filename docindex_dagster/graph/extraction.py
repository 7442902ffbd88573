"""The stage that makes the graph of a source from its chunks and references, and keeps it until it is published.

An extractor that fails costs the graph of its source, or a part of it; no error of it stops a run. How a graph is
published is not here.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.callgraph.table import REFERENCES, lacking
from docindex_dagster.core import tables
from docindex_dagster.core.errors import ScipError
from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.schemas import NODES, TRIPLES
from docindex_dagster.graph.concepts.findings import NOTHING, Findings, find_concepts
from docindex_dagster.graph.failures import sentence, sentence_unreadable
from docindex_dagster.graph.plan import GraphPlan
from docindex_dagster.graph.scip.table import PRECISE
from docindex_dagster.graph.scip.table import read as read_precise
from docindex_dagster.graph.source_graph import NODES_TABLE, TRIPLES_TABLE, Graph
from docindex_dagster.graph.verify import verify_graph

_CONCEPTS = "concepts"
# In the metadata of these tables: who found the concepts; the plan of a graph, the versions of its chunks and
# references, why it is not complete, if it is not, and whether the plan wanted one.
_FOUND_BY = b"docindex.found_by"
_PLAN, _CHUNKS, _PROBLEM = b"docindex.plan", b"docindex.chunks", b"docindex.problem"
_REFERENCES = b"docindex.references_version"
_IS_WANTED = b"docindex.is_wanted"
_NO_METADATA: Mapping[bytes, bytes] = {}
_NO_GRAPH = Graph(NODES.empty_table(), TRIPLES.empty_table())


@dataclass(frozen=True, slots=True)
class Extraction:
    """A graph, if the plan wants one, and why an extractor could not give all of it, if it could not."""

    graph: Graph | None
    plan: str  # the fingerprint of its GraphPlan
    chunks: str = ""  # the data version of the chunks that it was made from
    references: str = ""  # that of the references
    problem: str = ""
    unlinked: int | None = None  # files whose edges a provisional graph lacks in part; None: it is complete
    taken_from: str = ""  # the version of the graph that a provisional one is a part of

    @property
    def is_provisional(self) -> bool:
        """Whether the graph is a part of the previous one, published until that of these chunks is extracted."""
        return self.unlinked is not None

    @property
    def is_settled(self) -> bool:
        """Whether another try would give the same."""
        return not self.is_provisional and not self.problem and (self.graph is None or self.graph.is_settled)

    @property
    def version(self) -> str:
        """Equal graphs of equal chunks and references have an equal one."""
        made_from = self.plan, self.chunks, self.references
        if self.is_provisional:
            return digest_parts(*made_from, "provisional", self.taken_from)
        if self.graph is None or self.is_settled:
            return digest_parts(*made_from)
        content = (tables.data_version(table) for table in (self.graph.nodes, self.graph.triples))
        return digest_parts(*made_from, self.problem, *content)

    @property
    def missing(self) -> str:
        """What the graph lacks; empty where it lacks nothing."""
        if self.graph is None:
            return self.problem
        of_files = sentence(self.graph.problems, self.graph.files)
        return "; ".join(filter(None, (self.problem, of_files, sentence_unreadable(self.graph.unreadable))))


def extract(
    layout: Layout,
    key: str,
    chunks: pa.Table,
    references: pa.Table | None,
    *,
    plan: GraphPlan,
    previous: Extraction | None,
) -> Extraction:
    """Extract the graph of a source from its chunks and references.

    Args:
        layout: where the index lives; what was found in texts is kept there, so that an extractor sees new ones alone.
        key: of the source.
        chunks: all of them, as their stage gives them.
        references: likewise; None where there are none. Files of code without a row have their definitions alone, and
            the graph is not complete.
        plan: what goes into the graph.
        previous: what an earlier run made. Of files that did not change, and looked at nothing that did, its rows are
            taken over if it is complete and of the same plan.

    Raises:
        VerificationError: an edge is not proved by a chunk; nothing may be written.
    """
    from docindex_dagster.graph.build import build_graph, update_graph  # it loads what resolves calls

    version = version_of(chunks)
    read = REFERENCES.empty_table() if references is None else references
    of_references = tables.stamped_version(read.schema.metadata) or ""
    if plan.extractor is None:
        layout.table(_CONCEPTS, key).unlink(missing_ok=True)  # it has words of texts that may be gone by now
    if not plan.is_wanted:
        return Extraction(None, plan.fingerprint, version, of_references)
    try:
        concepts = _concepts(layout, key, chunks, plan)
        precise = _precise(layout, key, plan)
        content = plan.content(concepts)
        if previous is None or previous.graph is None or previous.problem or previous.plan != plan.fingerprint:
            graph = build_graph(chunks, read, content)
        else:
            graph = update_graph(_known(previous.graph, precise, chunks, read), chunks, read, content)
        graph = _merged(graph, precise, chunks)
    except Exception as error:  # noqa: BLE001 it is reported as a failed check
        problem = f"the graph could not be extracted: {type(error).__name__}: {error}"
        nothing = build_graph(chunks.slice(0, 0), REFERENCES.empty_table())
        return Extraction(nothing, plan.fingerprint, version, of_references, problem)
    verify_graph(graph, chunks)
    missing = lacking(chunks, read) if content.code else 0
    problems = concepts.problem, f"what {missing:,} files say was not extracted" if missing else ""
    return Extraction(graph, plan.fingerprint, version, of_references, "; ".join(filter(None, problems)))


def version_of(chunks: pa.Table) -> str:
    """A version that says whether a graph is of these chunks."""
    return tables.stamped_version(chunks.schema.metadata) or tables.column_version(chunks, "row_hash")


def write(layout: Layout, key: str, extraction: Extraction, metadata: Mapping[bytes, bytes] = _NO_METADATA) -> bool:
    """Keep a graph in the tables of its source, with metadata for them, and say whether they differ now."""
    graph = extraction.graph or _NO_GRAPH
    about = {_PLAN: extraction.plan, _CHUNKS: extraction.chunks, _PROBLEM: extraction.problem}
    about[_REFERENCES] = extraction.references
    about[_IS_WANTED] = str(extraction.graph is not None)
    described = {**metadata, **{name: text.encode("utf-8", "replace") for name, text in about.items()}}
    is_written = False
    for asset, table in ((NODES_TABLE, graph.nodes), (TRIPLES_TABLE, graph.triples)):
        marked = table.replace_schema_metadata(described)
        is_written |= tables.write(layout.table(asset, key), tables.stamp(marked, extraction.version))
    return is_written


def read(layout: Layout, key: str) -> Extraction | None:
    """The graph that the last run made of a source; None where there is none, or a table is damaged."""
    nodes, triples = (tables.read(layout.table(asset, key)) for asset in (NODES_TABLE, TRIPLES_TABLE))
    if nodes is None or triples is None:
        return None
    about, of_triples = (_about(table.schema.metadata) for table in (nodes, triples))
    nodes, triples = (table.replace_schema_metadata(None) for table in (nodes, triples))
    if not nodes.schema.equals(NODES) or not triples.schema.equals(TRIPLES) or about != of_triples:
        return None
    graph = Graph(nodes, triples) if about.get(_IS_WANTED) == str(True) else None
    made_from = about.get(_CHUNKS, ""), about.get(_REFERENCES, "")
    return Extraction(graph, about.get(_PLAN, ""), *made_from, about.get(_PROBLEM, ""))


def _precise(layout: Layout, key: str, plan: GraphPlan) -> pa.Table:
    """What was imported for a source.

    Raises:
        ScipError: it is damaged.
    """
    if not plan.precise or not plan.settings.code:
        return PRECISE.empty_table()
    found = read_precise(layout, key)
    if found is None:
        raise ScipError("the precise index is damaged: import it again, or `docindex graph import --remove` it")
    return found


def _merged(graph: Graph, precise: pa.Table, chunks: pa.Table) -> Graph:
    if not precise.num_rows:
        return graph
    from docindex_dagster.graph.scip.merge import merged

    return merged(graph, precise, chunks)


def _known(previous: Graph, precise: pa.Table, chunks: pa.Table, references: pa.Table) -> Graph:
    """What can be gone on from: where a target of a precise edge changed, the file of the edge counts as changed."""
    if not precise.num_rows:
        return previous
    from docindex_dagster.graph.build import versions_of
    from docindex_dagster.graph.scip.merge import without_doubtful

    targets = chunks.filter(pc.is_in(chunks["path"], pc.unique(precise["target_path"])))
    return without_doubtful(previous, precise, versions_of(targets, references))


def _about(metadata: Mapping[bytes, bytes] | None) -> dict[bytes, str]:
    return {name: value.decode() for name, value in (metadata or {}).items()}


def _concepts(layout: Layout, key: str, chunks: pa.Table, plan: GraphPlan) -> Findings:
    """What is in the documents of a source. It is kept by their texts, so that an extractor sees new ones alone."""
    if plan.extractor is None:
        return NOTHING
    path = layout.table(_CONCEPTS, key)
    is_same = tables.metadata_value(path, _FOUND_BY) == plan.extractor.name
    known = tables.read(path) if is_same else None
    found = find_concepts(chunks, plan.extractor, known)
    marked = found.table.replace_schema_metadata({_FOUND_BY: plan.extractor.name.encode()})
    tables.write(path, tables.stamp(marked, tables.data_version(marked)))
    return found
