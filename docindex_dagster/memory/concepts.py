"""Concepts of messages: those found before a write is answered, and the graph that a fold makes of all.

A message leads to the concepts that it speaks of, and to the message of its session that it follows.
"""

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.chunking.messages import chunk_messages
from docindex_dagster.core.settings import Settings
from docindex_dagster.graph.build import build_graph
from docindex_dagster.graph.concepts.findings import NOTHING, find_concepts
from docindex_dagster.graph.plan import GraphPlan
from docindex_dagster.graph.source_graph import Graph
from docindex_dagster.graph.triple import CONCEPT, Triple, triple_table
from docindex_dagster.memory.chunks import chunk_rows, path_of
from docindex_dagster.memory.message import Message, compose

FOLLOWS = "follows"
_BY_SESSION = "session"
_FILE = "file"
_AT_ONCE = "patterns"  # in a millisecond, so that no write waits
_SPACY = "spacy"
_SHORT = 100  # words that spaCy reads in some 25 ms
State = Literal["done", "pending", "none"]


@dataclass(frozen=True, slots=True)
class Extracted:
    """What was found in a message at once."""

    concepts: tuple[str, ...] = ()
    edges: int = 0
    state: State = "none"


@dataclass(eq=False)
class FirstStage:
    """Finds concepts while a program waits: by patterns, and by spaCy once it is loaded, where the text is short.

    What is left is found by the next fold.
    """

    settings: Settings
    _is_warm: threading.Event = field(default_factory=threading.Event)
    _warming: threading.Thread | None = None

    def extract(self, chunks: pa.Table) -> Extracted:
        """What is in the chunks of one message."""
        wanted = self.settings.memory.concepts
        if wanted == "none" or not chunks.num_rows or not self.settings.graph.enabled:
            return Extracted()
        name, state = self._choice(wanted, chunks)
        plan = plan_of(self.settings, name)
        found = find_concepts(chunks, plan.extractor, None) if plan.extractor else NOTHING
        graph = build_graph(chunks, plan.content(found))
        return Extracted(_names(graph), graph.triples.num_rows, "pending" if found.problem else state)

    def _choice(self, wanted: str, chunks: pa.Table) -> tuple[str, State]:
        if wanted == _AT_ONCE:
            return wanted, "done"
        if wanted == _SPACY:
            self._warm()
            words = sum(len(text.split()) for text in chunks["text"].to_pylist())
            if self._is_warm.is_set() and words <= _SHORT:
                return wanted, "done"
        return _AT_ONCE, "pending"

    def _warm(self) -> None:
        """Load spaCy's model behind the answer; it takes seconds."""
        if self._warming is None:
            self._warming = threading.Thread(target=self._load, daemon=True)
            self._warming.start()

    def _load(self) -> None:
        extractor = plan_of(self.settings, _SPACY).extractor
        if extractor is not None and not find_concepts(_a_sentence(), extractor, None).problem:
            self._is_warm.set()


def plan_of(settings: Settings, concepts: str) -> GraphPlan:
    """What goes into the graph of a domain."""
    return GraphPlan(settings.graph.model_copy(update={"concepts": concepts}), settings.llm)


def with_fallback(settings: Settings) -> tuple[GraphPlan, str]:
    """The plan of the settings, or one by patterns and why, where spaCy is not there."""
    plan = plan_of(settings, settings.memory.concepts)
    if settings.memory.concepts == _SPACY and plan.extractor is not None:
        problem = find_concepts(_a_sentence(), plan.extractor, None).problem
        if problem:
            return plan_of(settings, _AT_ONCE), f"{problem}; concepts are found by patterns"
    return plan, ""


def with_follows(graph: Graph, messages: Sequence[Message]) -> Graph:
    """The graph with an edge from each message to the one before it in its session; both have chunks."""
    first = _first_chunks(graph)
    edges = triple_table(list(_follows(messages, first)))
    if not edges.num_rows:
        return graph
    triples = pa.concat_tables([graph.triples, edges]).sort_by("path").combine_chunks()
    return replace(graph, triples=triples)


def _first_chunks(graph: Graph) -> Mapping[str, tuple[str, str]]:
    """The source and the first chunk of each message, by path."""
    nodes = graph.nodes.filter(pc.equal(graph.nodes["type"], _FILE)).select(["path", "source", "chunk_id"])
    return {row["path"]: (row["source"], row["chunk_id"]) for row in nodes.to_pylist()}


def _follows(messages: Iterable[Message], first: Mapping[str, tuple[str, str]]) -> Iterable[Triple]:
    last: dict[str, str] = {}
    for message in messages:
        path = path_of(message)
        if path not in first:
            continue
        if before := last.get(message.session):
            source, chunk_id = first[path]
            yield Triple(path, _FILE, FOLLOWS, before, _FILE, source, path, chunk_id, 1, 1.0, _BY_SESSION)
        last[message.session] = path


def _names(graph: Graph) -> tuple[str, ...]:
    nodes = graph.nodes.filter(pc.equal(graph.nodes["type"], CONCEPT))
    return tuple(sorted(nodes["name"].to_pylist()))


def _a_sentence() -> pa.Table:
    """A chunk that an extractor is tried with."""
    return chunk_rows("memory/none", [compose("memory/none", "none", "The server uses a cache.")], chunk_messages)
