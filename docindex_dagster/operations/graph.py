"""Graph questions: callers, callees, impact, neighbors and paths of symbols."""

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from docindex_dagster.core.safe_text import well_formed
from docindex_dagster.graph import queries
from docindex_dagster.graph.open_graph import OpenGraph
from docindex_dagster.graph.queries import Step
from docindex_dagster.operations.fields import Names, RawText, Request, Sources
from docindex_dagster.operations.view import View
from docindex_dagster.search.lookup import node_name

Question = Literal["callers", "callees", "impact", "neighbors", "path"]


class GraphRequest(Request):
    """Ask the graph about a symbol."""

    symbol: RawText = Field(
        default="", description="A qualified name or its end, as Store.add; PATH::Store.add; PATH[:LINE]; a heading."
    )
    to: RawText = Field(default="", description="The other end of a path.")
    depth: int | None = Field(
        default=None, ge=1, le=50, description="Most edges to follow. Default: 1; for impact 5, for path 12."
    )
    edges: Names = Field(default=[], description="For neighbors: only these edges, such as imports.")
    sources: Sources = Field(default=[])


@dataclass(frozen=True, slots=True)
class GraphAnswer:
    """Edges, nearest first, and what is missing.

    Attributes:
        steps: the edges, in the order of the walk.
        unanswered: a sentence for each symbol without an edge.
        unlinked: how many files are not linked yet, as a sentence; empty if all are.
        graph: the graph of the named sources.
    """

    steps: list[Step]
    unanswered: list[str]
    unlinked: str
    graph: OpenGraph

    @property
    def notes(self) -> list[str]:
        """Sentences to print with the edges."""
        return [*self.unanswered, *filter(None, [self.unlinked])]


def graph(view: View, question: Question, request: GraphRequest) -> GraphAnswer:
    """Return the edges that answer a question.

    Raises:
        QueryError: a symbol is unknown, or ambiguous where one is needed.
        SourceError: a source is unknown or not indexed.
        DamagedStoreError: a graph file is missing or damaged.
    """
    opened = view.graph(request.sources)
    symbol, to = (resolve_node(view, opened, end) if end else "" for end in (request.symbol, request.to))
    steps = queries.answer(opened, question, symbol, to, request.depth, predicates=request.edges or None)
    return GraphAnswer(steps, queries.unanswered(opened, question, symbol, to, steps), opened.unlinked_files, opened)


def resolve_node(view: View, opened: OpenGraph, typed: str) -> str:
    """Return the graph's name for a reference, which may be a path on disk.

    Raises:
        QueryError: as `node_name`.
    """
    return node_name(view.reader, opened, well_formed(typed), view.readings(typed), view.default_sources)
