"""Graph questions about symbols: callers, callees, impact, neighbors and paths."""

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
    """Query the graph about a symbol."""

    symbol: RawText = Field(
        default="",
        description="A qualified name or its suffix such as Store.add, PATH::Store.add, PATH[:LINE], or a heading.",
    )
    to: RawText = Field(default="", description="The last node of a path.")
    depth: int | None = Field(
        default=None,
        ge=1,
        le=50,
        description="Maximum number of edges to follow. Default: 1; 5 for impact, 12 for path.",
    )
    edges: Names = Field(default=[], description="For neighbors: only these edge types, such as imports.")
    sources: Sources = Field(default=[])


@dataclass(frozen=True, slots=True)
class GraphAnswer:
    """The edges of an answer, nearest first, and what is missing.

    Attributes:
        steps: the edges, in the order of the walk.
        unanswered: a sentence for each symbol without an edge.
        unlinked: the number of files that are not linked yet, as a sentence; empty if all are.
        graph: the graph of the named sources.
    """

    steps: list[Step]
    unanswered: list[str]
    unlinked: str
    graph: OpenGraph

    @property
    def notes(self) -> list[str]:
        """The sentences to print with the edges."""
        return [*self.unanswered, *filter(None, [self.unlinked])]


def graph(view: View, question: Question, request: GraphRequest) -> GraphAnswer:
    """Return the edges that answer a question.

    Raises:
        QueryError: A symbol is unknown, or ambiguous where a single one is needed.
        SourceError: A source is unknown or not indexed.
        DamagedStoreError: A graph file is missing or damaged.
    """
    opened = view.graph(request.sources)
    symbol, to = (resolve_node(view, opened, end) if end else "" for end in (request.symbol, request.to))
    steps = queries.answer_query(opened, question, symbol, to, request.depth, predicates=request.edges or None)
    return GraphAnswer(steps, queries.unanswered(opened, question, symbol, to, steps), opened.unlinked_files, opened)


def resolve_node(view: View, opened: OpenGraph, typed: str) -> str:
    """Return the graph's name for a reference, which may be a path on disk.

    Raises:
        QueryError: As for `node_name`.
    """
    return node_name(view.reader, opened, well_formed(typed), view.readings(typed), view.default_sources)
