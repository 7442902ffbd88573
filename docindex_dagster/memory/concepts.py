"""The graph that a fold makes of the messages of a domain, and who finds the concepts in it.

A message leads to the concepts that it speaks of, and to the message of its session that it follows. What is found
before a write is answered is in `extracting`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.chunking.messages import chunk_messages
from docindex_dagster.core.settings import Settings
from docindex_dagster.graph.concepts.findings import find_concepts
from docindex_dagster.graph.plan import GraphPlan
from docindex_dagster.graph.source_graph import Graph
from docindex_dagster.graph.triple import Triple, triple_table
from docindex_dagster.memory.chunks import chunk_rows, path_of
from docindex_dagster.memory.message import Message, compose

FOLLOWS = "follows"
_BY_SESSION = "session"
_FILE = "file"
PATTERNS, SPACY = "patterns", "spacy"


def plan_of(settings: Settings, concepts: str) -> GraphPlan:
    """What goes into the graph of a domain."""
    return GraphPlan(settings.graph.model_copy(update={"concepts": concepts}), settings.llm)


def with_fallback(settings: Settings) -> tuple[GraphPlan, str]:
    """The plan of the settings, or one by patterns and why, where spaCy is not there."""
    wanted = settings.memory.concepts
    problem = problem_of(settings, wanted) if wanted == SPACY and settings.graph.enabled else ""
    if problem:
        return plan_of(settings, PATTERNS), f"{problem}; concepts are found by patterns"
    return plan_of(settings, wanted), ""


def problem_of(settings: Settings, concepts: str) -> str:
    """Why an extractor does not work; empty where it does. It is loaded, which takes spaCy seconds."""
    extractor = plan_of(settings, concepts).extractor
    sentence = compose("memory/none", "none", "The server uses a cache.")
    return (
        find_concepts(chunk_rows("memory/none", [sentence], chunk_messages), extractor, None).problem
        if extractor
        else ""
    )


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
