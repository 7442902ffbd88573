"""The stage that makes the graph of a source from its chunks and references, and keeps it until it is published.

An extractor that fails costs the graph of its source, or a part of it; no error of it stops a run. How a graph is
published is not here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.callgraph.table import REFERENCES, lacking
from docindex_dagster.callgraph.tabling import Limits
from docindex_dagster.chunking.inputs import extraction_fingerprint
from docindex_dagster.core import tables
from docindex_dagster.core.errors import ScipError
from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.schemas import COMMIT, NODES, TRIPLES
from docindex_dagster.core.settings import GraphSettings, LLMSettings
from docindex_dagster.graph.concepts.extractor import Extractor, load_extractor
from docindex_dagster.graph.concepts.findings import NOTHING, Findings, find_concepts
from docindex_dagster.graph.failures import sentence, sentence_unreadable
from docindex_dagster.graph.scip.table import PRECISE
from docindex_dagster.graph.scip.table import read as read_precise
from docindex_dagster.graph.scip.table import version as precise_version
from docindex_dagster.graph.source_graph import (
    CHUNKS_DIGITS,
    GRAPH_VERSION,
    NODES_TABLE,
    OUTSIDE,
    TRIPLES_TABLE,
    UNREADABLE,
    Graph,
    made_from,
    outside_nodes,
    verify_graph,
)

if TYPE_CHECKING:
    from docindex_dagster.graph.build import Content

_CONCEPTS = "concepts"
# In the metadata of these tables: who found the concepts; the plan of a graph, the versions of its chunks and
# references, why it is not complete, if it is not, and whether the plan wanted one.
_FOUND_BY = b"docindex.found_by"
_PLAN, _CHUNKS, _PROBLEM = b"docindex.plan", b"docindex.chunks", b"docindex.problem"
_REFERENCES = b"docindex.references_version"
_IS_WANTED = b"docindex.is_wanted"
_NO_METADATA: Mapping[bytes, bytes] = {}
_NO_GRAPH = Graph(NODES.empty_table(), TRIPLES.empty_table())


@dataclass(frozen=True)
class GraphPlan:
    """Whether there is a graph, and what is in it."""

    settings: GraphSettings = field(default_factory=GraphSettings)
    llm: LLMSettings = field(default_factory=LLMSettings)
    precise: str = ""  # the version of the precise index of the source; "" for none

    def of(self, layout: Layout, key: str) -> "GraphPlan":
        """The same for another source, which may have a precise index of its own."""
        precise = precise_version(layout, key)
        return self if precise == self.precise else replace(self, precise=precise)

    @property
    def is_wanted(self) -> bool:
        """Whether there is a graph at all."""
        return self.settings.enabled

    @cached_property
    def extractor(self) -> Extractor | None:
        """Who finds concepts."""
        return load_extractor(self.settings, self.llm) if self.settings.enabled else None

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all that decides the graph of given chunks, and of their files."""
        if not self.settings.enabled:
            return digest_parts(GRAPH_VERSION, "none")
        found_by = self.extractor.name if self.extractor else "none"
        most = self.settings.max_triples_per_chunk
        read = extraction_fingerprint() if self.settings.code else "none"
        return digest_parts(GRAPH_VERSION, read, found_by, str(most), *filter(None, [self.precise]))

    def content(self, concepts: Findings) -> "Content":
        """What goes into the graph, with these concepts."""
        from docindex_dagster.graph.build import Content  # it loads what resolves calls

        found_by = self.settings.concepts if self.extractor else "none"
        limits = Limits(file_s=self.settings.file_timeout_s, source_s=self.settings.timeout_s)
        return Content(self.settings.code, concepts, self.settings.max_triples_per_chunk, found_by, limits)


EVERYTHING = GraphPlan()
"""What the defaults say."""


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


def provisional(previous: Extraction | None, chunks: pa.Table, plan: GraphPlan) -> Extraction:
    """Return the rows of the previous graph that hold for new chunks, and how many files are yet to be linked.

    These rows are of files whose chunks are the same. Their edges are those of the previous graph, but for edges to
    nodes of other files that changed or are gone. A file that lost an edge counts as one to be linked.

    Args:
        previous: what an earlier run made; of another plan, nothing is taken over.
        chunks: all of the source, as their stage gives them.
        plan: what goes into the graph; one that wants no graph gives an extraction that is complete.
    """
    version = version_of(chunks)
    if not plan.is_wanted:
        return Extraction(None, plan.fingerprint, version)
    files = _chunk_versions(chunks)
    if previous is None or previous.graph is None or previous.plan != plan.fingerprint:
        return Extraction(_NO_GRAPH, plan.fingerprint, version, unlinked=len(files))
    same = _unchanged(previous.graph.nodes, files)
    graph, cut = _restricted(previous.graph, same, chunks["chunk_id"])
    unlinked = len(files) - len(same) + len(cut)
    return Extraction(graph, plan.fingerprint, version, unlinked=unlinked, taken_from=previous.version)


def _chunk_versions(chunks: pa.Table) -> dict[str, str]:
    """By path, what identifies the chunks of a file in what its node was made from."""
    columns = chunks.select(["path", "row_hash", "source_type"])
    columns = columns.filter(pc.not_equal(columns["source_type"], COMMIT))
    by_path: dict[str, list[str]] = {}
    for path, row_hash in zip(columns["path"].to_pylist(), columns["row_hash"].to_pylist(), strict=True):
        by_path.setdefault(path, []).append(row_hash)
    return {path: made_from(hashes, "") for path, hashes in by_path.items()}


def _unchanged(nodes: pa.Table, files: dict[str, str]) -> pa.Array:
    """The paths of files that have the chunks that their nodes were made from, and all their edges."""
    columns = nodes.select(["path", "made_from", "problem"]).filter(pc.equal(nodes["type"], "file"))
    has_edges = pc.starts_with(pc.fill_null(columns["problem"], UNREADABLE), UNREADABLE)
    columns = columns.filter(has_edges)
    now = pa.array([files.get(path) for path in columns["path"].to_pylist()], pa.string())
    is_same = pc.equal(pc.utf8_slice_codeunits(columns["made_from"], 0, CHUNKS_DIGITS), now)
    return columns["path"].filter(is_same).combine_chunks()


def _restricted(graph: Graph, paths: pa.Array, chunk_ids: pa.ChunkedArray) -> tuple[Graph, pa.Array]:
    """The graph of some of its files alone, and those of them that have edges to other files."""
    nodes = graph.nodes.filter(pc.is_in(graph.nodes["path"], paths))
    triples = graph.triples.filter(pc.is_in(graph.triples["path"], paths))
    is_whole = pc.is_in(triples["chunk_id"], chunk_ids)
    for end in ("subject", "object"):
        is_known = pc.or_(pc.is_in(triples[f"{end}_type"], pa.array(OUTSIDE)), pc.is_in(triples[end], nodes["node"]))
        is_whole = pc.and_(is_whole, is_known)
    cut = pc.unique(triples["path"].filter(pc.invert(is_whole)))
    triples = triples.filter(is_whole)
    return Graph(pa.concat_tables([nodes, outside_nodes(triples)]).combine_chunks(), triples.combine_chunks()), cut
