"""Stage that extracts the graph of a source from its chunks and references, and stores it until it is published.

A failing extractor costs the source its graph, or a part of it, but never stops a run. Publishing is not part of this
module.
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
    OUTSIDE_TYPES,
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
# Keys of the tables' metadata: the extractor of the concepts; the plan of a graph, the versions of its chunks and
# references, why it is incomplete, and whether the plan asked for a graph.
_FOUND_BY = b"docindex.found_by"
_PLAN, _CHUNKS, _PROBLEM = b"docindex.plan", b"docindex.chunks", b"docindex.problem"
_REFERENCES = b"docindex.references_version"
_IS_WANTED = b"docindex.is_wanted"
_NO_METADATA: Mapping[bytes, bytes] = {}
_NO_GRAPH = Graph(NODES.empty_table(), TRIPLES.empty_table())


@dataclass(frozen=True)
class GraphPlan:
    """Plan for a graph: whether to build one, and with which content."""

    settings: GraphSettings = field(default_factory=GraphSettings)
    llm: LLMSettings = field(default_factory=LLMSettings)
    precise: str = ""  # the version of the precise index of the source; "" for none

    def of(self, layout: Layout, key: str) -> "GraphPlan":
        """Return this plan for another source, which may have its own precise index."""
        precise = precise_version(layout, key)
        return self if precise == self.precise else replace(self, precise=precise)

    @property
    def is_wanted(self) -> bool:
        """Whether to build a graph at all."""
        return self.settings.enabled

    @cached_property
    def extractor(self) -> Extractor | None:
        """The extractor of concepts, if any."""
        return load_extractor(self.settings, self.llm) if self.settings.enabled else None

    @cached_property
    def fingerprint(self) -> str:
        """Hash of all settings that affect the graph of the same chunks and files."""
        if not self.settings.enabled:
            return digest_parts(GRAPH_VERSION, "none")
        found_by = self.extractor.name if self.extractor else "none"
        most = self.settings.max_triples_per_chunk
        read = extraction_fingerprint() if self.settings.code else "none"
        return digest_parts(GRAPH_VERSION, read, found_by, str(most), *filter(None, [self.precise]))

    def content(self, concepts: Findings) -> "Content":
        """Return the content of the graph, with these concepts."""
        from docindex_dagster.graph.build import Content  # deferred, because it loads the call resolver

        found_by = self.settings.concepts if self.extractor else "none"
        limits = Limits(file_s=self.settings.file_timeout_s, source_s=self.settings.timeout_s)
        return Content(self.settings.code, concepts, self.settings.max_triples_per_chunk, found_by, limits)


EVERYTHING = GraphPlan()
"""The plan that the default settings yield."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """Graph, if the plan wants one, and why it is incomplete, if it is."""

    graph: Graph | None
    plan: str  # the fingerprint of its GraphPlan
    chunks: str = ""  # data version of the chunks it was extracted from
    references: str = ""  # data version of the references
    problem: str = ""
    unlinked: int | None = None  # number of files that lack edges in a provisional graph; None for a full graph
    taken_from: str = ""  # version of the previous graph that a provisional graph is a part of

    @property
    def is_provisional(self) -> bool:
        """Whether the graph is a part of the previous one, published until the graph of these chunks is extracted."""
        return self.unlinked is not None

    @property
    def is_settled(self) -> bool:
        """Whether another attempt would yield the same graph."""
        return not self.is_provisional and not self.problem and (self.graph is None or self.graph.is_settled)

    @property
    def version(self) -> str:
        """Version of the extraction, equal for equal graphs of equal chunks and references."""
        made_from = self.plan, self.chunks, self.references
        if self.is_provisional:
            return digest_parts(*made_from, "provisional", self.taken_from)
        if self.graph is None or self.is_settled:
            return digest_parts(*made_from)
        content = (tables.data_version(table) for table in (self.graph.nodes, self.graph.triples))
        return digest_parts(*made_from, self.problem, *content)

    @property
    def missing(self) -> str:
        """What the graph lacks; "" if it is complete."""
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
        layout: The location of the index. It caches the findings by text, so that extractors see only new texts.
        key: The key of the source.
        chunks: All chunks of the source, as their stage returns them.
        references: All references of the source, or None. Code files without a row get only their definitions, and the
            graph is incomplete.
        plan: The content of the graph.
        previous: The result of an earlier run. If it is complete and has the same plan, the rows of files are reused
            unless they, or anything they looked at, changed.

    Raises:
        VerificationError: An edge lacks the chunk that proves it; nothing may be written.
    """
    from docindex_dagster.graph.build import build_graph, update_graph  # deferred, because it loads the call resolver

    version = version_of(chunks)
    read = REFERENCES.empty_table() if references is None else references
    references_version = tables.stamped_version(read.schema.metadata) or ""
    if plan.extractor is None:
        layout.table(_CONCEPTS, key).unlink(missing_ok=True)  # it quotes texts that may have been deleted since
    if not plan.is_wanted:
        return Extraction(None, plan.fingerprint, version, references_version)
    try:
        concepts = _concepts(layout, key, chunks, plan)
        precise = _read_precise(layout, key, plan)
        content = plan.content(concepts)
        if previous is None or previous.graph is None or previous.problem or previous.plan != plan.fingerprint:
            graph = build_graph(chunks, read, content)
        else:
            graph = update_graph(_reusable_graph(previous.graph, precise, chunks, read), chunks, read, content)
        graph = _merge_precise(graph, precise, chunks)
    except Exception as error:  # noqa: BLE001 reported as a failed check
        problem = f"cannot extract the graph: {type(error).__name__}: {error}"
        nothing = build_graph(chunks.slice(0, 0), REFERENCES.empty_table())
        return Extraction(nothing, plan.fingerprint, version, references_version, problem)
    verify_graph(graph, chunks)
    missing = lacking(chunks, read) if content.code else 0
    problems = concepts.problem, f"references of {missing:,} files were not extracted" if missing else ""
    return Extraction(graph, plan.fingerprint, version, references_version, "; ".join(filter(None, problems)))


def version_of(chunks: pa.Table) -> str:
    """Return the version by which a graph identifies these chunks."""
    return tables.stamped_version(chunks.schema.metadata) or tables.column_version(chunks, "row_hash")


def write(layout: Layout, key: str, extraction: Extraction, metadata: Mapping[bytes, bytes] = _NO_METADATA) -> bool:
    """Store a graph in the tables of its source, with metadata, and return whether they changed."""
    graph = extraction.graph or _NO_GRAPH
    metadata_fields = {_PLAN: extraction.plan, _CHUNKS: extraction.chunks, _PROBLEM: extraction.problem}
    metadata_fields[_REFERENCES] = extraction.references
    metadata_fields[_IS_WANTED] = str(extraction.graph is not None)
    described = {**metadata, **{name: text.encode("utf-8", "replace") for name, text in metadata_fields.items()}}
    is_written = False
    for asset, table in ((NODES_TABLE, graph.nodes), (TRIPLES_TABLE, graph.triples)):
        marked = table.replace_schema_metadata(described)
        is_written |= tables.write(layout.table(asset, key), tables.stamp(marked, extraction.version))
    return is_written


def read(layout: Layout, key: str) -> Extraction | None:
    """Return the graph that the last run of a source stored, or None if there is none or a table is damaged."""
    nodes, triples = (tables.read(layout.table(asset, key)) for asset in (NODES_TABLE, TRIPLES_TABLE))
    if nodes is None or triples is None:
        return None
    metadata_fields, triples_metadata = (_decoded_metadata(table.schema.metadata) for table in (nodes, triples))
    nodes, triples = (table.replace_schema_metadata(None) for table in (nodes, triples))
    if not nodes.schema.equals(NODES) or not triples.schema.equals(TRIPLES) or metadata_fields != triples_metadata:
        return None
    graph = Graph(nodes, triples) if metadata_fields.get(_IS_WANTED) == str(True) else None
    made_from = metadata_fields.get(_CHUNKS, ""), metadata_fields.get(_REFERENCES, "")
    return Extraction(graph, metadata_fields.get(_PLAN, ""), *made_from, metadata_fields.get(_PROBLEM, ""))


def _read_precise(layout: Layout, key: str, plan: GraphPlan) -> pa.Table:
    """Return the imported precise index of a source.

    Raises:
        ScipError: The index is damaged.
    """
    if not plan.precise or not plan.settings.code:
        return PRECISE.empty_table()
    found = read_precise(layout, key)
    if found is None:
        raise ScipError("the precise index is damaged: import it again, or run `docindex graph import --remove`")
    return found


def _merge_precise(graph: Graph, precise: pa.Table, chunks: pa.Table) -> Graph:
    if not precise.num_rows:
        return graph
    from docindex_dagster.graph.scip.merge import merge_precise

    return merge_precise(graph, precise, chunks)


def _reusable_graph(previous: Graph, precise: pa.Table, chunks: pa.Table, references: pa.Table) -> Graph:
    """Return the previous graph, with every file marked as changed that has a precise edge to a changed target."""
    if not precise.num_rows:
        return previous
    from docindex_dagster.graph.build import versions_of
    from docindex_dagster.graph.scip.merge import mark_doubtful_as_changed

    targets = chunks.filter(pc.is_in(chunks["path"], pc.unique(precise["target_path"])))
    return mark_doubtful_as_changed(previous, precise, versions_of(targets, references))


def _decoded_metadata(metadata: Mapping[bytes, bytes] | None) -> dict[bytes, str]:
    return {name: value.decode() for name, value in (metadata or {}).items()}


def _concepts(layout: Layout, key: str, chunks: pa.Table, plan: GraphPlan) -> Findings:
    """Return the concepts in the documents of a source, cached by text so that the extractor sees only new texts."""
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
    """Return the rows of the previous graph that are valid for new chunks, and how many files are not linked yet.

    These rows belong to files with unchanged chunks. They keep the edges of the previous graph, except edges to nodes
    of other files that changed or were deleted. A file that lost an edge counts as not linked.

    Args:
        previous: The result of an earlier run; nothing is reused from one with another plan.
        chunks: All chunks of the source, as their stage returns them.
        plan: The content of the graph; if it wants no graph, the extraction is complete.
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
    """Return, by path, the prefix of `made_from` that identifies the chunks of a file."""
    columns = chunks.select(["path", "row_hash", "source_type"])
    columns = columns.filter(pc.not_equal(columns["source_type"], COMMIT))
    by_path: dict[str, list[str]] = {}
    for path, row_hash in zip(columns["path"].to_pylist(), columns["row_hash"].to_pylist(), strict=True):
        by_path.setdefault(path, []).append(row_hash)
    return {path: made_from(hashes, "") for path, hashes in by_path.items()}


def _unchanged(nodes: pa.Table, files: dict[str, str]) -> pa.Array:
    """Return the paths of files that have all their edges, and the chunks that their nodes were made from."""
    columns = nodes.select(["path", "made_from", "problem"]).filter(pc.equal(nodes["type"], "file"))
    has_edges = pc.starts_with(pc.fill_null(columns["problem"], UNREADABLE), UNREADABLE)
    columns = columns.filter(has_edges)
    now = pa.array([files.get(path) for path in columns["path"].to_pylist()], pa.string())
    is_same = pc.equal(pc.utf8_slice_codeunits(columns["made_from"], 0, CHUNKS_DIGITS), now)
    return columns["path"].filter(is_same).combine_chunks()


def _restricted(graph: Graph, paths: pa.Array, chunk_ids: pa.ChunkedArray) -> tuple[Graph, pa.Array]:
    """Restrict a graph to some files, and return it with the paths of those that lost edges to other files."""
    nodes = graph.nodes.filter(pc.is_in(graph.nodes["path"], paths))
    triples = graph.triples.filter(pc.is_in(graph.triples["path"], paths))
    is_valid = pc.is_in(triples["chunk_id"], chunk_ids)
    for end in ("subject", "object"):
        is_known = pc.or_(
            pc.is_in(triples[f"{end}_type"], pa.array(OUTSIDE_TYPES)), pc.is_in(triples[end], nodes["node"])
        )
        is_valid = pc.and_(is_valid, is_known)
    cut = pc.unique(triples["path"].filter(pc.invert(is_valid)))
    triples = triples.filter(is_valid)
    return Graph(pa.concat_tables([nodes, outside_nodes(triples)]).combine_chunks(), triples.combine_chunks()), cut
