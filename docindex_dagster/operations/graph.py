"""Questions to the graph: who calls a symbol, what it calls, what may break, how two hang together."""

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from docindex_dagster.core.printable import well_formed
from docindex_dagster.graph import ask
from docindex_dagster.graph.ask import Step
from docindex_dagster.graph.opened import OpenGraph
from docindex_dagster.operations.fields import Names, Request, Sources, Typed
from docindex_dagster.operations.view import View
from docindex_dagster.search.lookup import node_name
from docindex_dagster.search.places import readings_of

Question = Literal["callers", "callees", "impact", "neighbors", "path"]


class GraphRequest(Request):
    """A question to the graph."""

    symbol: Typed = Field(
        default="", description="A qualified name or its end, as Store.add; PATH::Store.add; PATH[:LINE]; a heading."
    )
    to: Typed = Field(default="", description="The other end of a path.")
    depth: int | None = Field(
        default=None, ge=1, le=50, description="How many edges far: 1 unless given, of impact 5, of path 12."
    )
    edges: Names = Field(default=[], description="Only these edges, such as imports; for neighbors.")
    sources: Sources = Field(default=[])


@dataclass(frozen=True, slots=True)
class GraphAnswer:
    """Edges, the nearest first, and what is not known.

    Attributes:
        steps: the edges, as they were walked.
        unanswered: a sentence for each symbol of which nothing is known.
        unlinked: how many files are not linked yet, as a sentence; empty for none.
        graph: that was asked.
    """

    steps: list[Step]
    unanswered: list[str]
    unlinked: str
    graph: OpenGraph

    @property
    def notes(self) -> list[str]:
        """What to say beside the edges."""
        return [*self.unanswered, *filter(None, [self.unlinked])]


def graph(view: View, question: Question, request: GraphRequest) -> GraphAnswer:
    """The edges that answer a question.

    Raises:
        QueryError: there is no such symbol, or there are several where one is needed.
        SourceError: a source is not known or not indexed.
        DamagedStoreError: a file of the graph is missing or damaged.
    """
    opened = view.graph(request.sources)
    symbol, to = (node_of(view, opened, end) if end else "" for end in (request.symbol, request.to))
    steps = ask.answer(opened, question, symbol, to, request.depth, predicates=request.edges or None)
    return GraphAnswer(steps, ask.unanswered(opened, question, symbol, to, steps), opened.unlinked_files, opened)


def node_of(view: View, opened: OpenGraph, typed: str) -> str:
    """The name in the graph of what a user typed, which may be a path on disk.

    Raises:
        QueryError: as `node_name`.
    """
    readings = readings_of(view.settings, typed, view.reader.generation.sources) if view.is_local else []
    return node_name(view.reader, opened, well_formed(typed), readings, view.usual)
