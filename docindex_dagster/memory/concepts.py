"""Graph of a domain's messages, and the extraction of their concepts.

Messages have edges to the concepts they mention, and to the previous message of the session. Some concepts are
extracted before a write returns: by patterns, which take a millisecond, and for short texts by spaCy, once it is
loaded.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.chunking.chunker import Draft
from docindex_dagster.chunking.documents import chunk_messages
from docindex_dagster.core.settings import Settings
from docindex_dagster.graph.concepts.extractor import Extractor, Found, Passage
from docindex_dagster.graph.concepts.findings import concept_edges, find_concepts
from docindex_dagster.graph.document_text import ReadChunk, read_prose
from docindex_dagster.graph.documents import document_edges
from docindex_dagster.graph.extraction import GraphPlan
from docindex_dagster.graph.source_graph import CONCEPT, Graph, Triple, triple_table
from docindex_dagster.memory.chunks import chunk_rows, path_of
from docindex_dagster.memory.message import Message, compose
from docindex_dagster.memory.results import ExtractionState

FOLLOWS = "follows"
_BY_SESSION = "session"
_FILE = "file"
PATTERNS, SPACY = "patterns", "spacy"


def plan_of(settings: Settings, concepts: str) -> GraphPlan:
    """Return the plan for the graph of a domain."""
    return GraphPlan(settings.graph.model_copy(update={"concepts": concepts}), settings.llm)


def with_fallback(settings: Settings) -> tuple[GraphPlan, str]:
    """Return the configured plan, or one with patterns and a warning if spaCy is not available."""
    wanted = settings.memory.concepts
    problem = problem_of(settings, wanted) if wanted == SPACY and settings.graph.enabled else ""
    if problem:
        return plan_of(settings, PATTERNS), f"{problem}; falling back to patterns to find concepts"
    return plan_of(settings, wanted), ""


def problem_of(settings: Settings, concepts: str) -> str:
    """Return why an extractor does not work, or "". This loads it, which takes seconds for spaCy."""
    extractor = plan_of(settings, concepts).extractor
    sentence = compose("memory/none", "none", "The server uses a cache.")
    return (
        find_concepts(chunk_rows("memory/none", [sentence], chunk_messages), extractor, None).problem
        if extractor
        else ""
    )


def with_follows(graph: Graph, messages: Sequence[Message]) -> Graph:
    """Add an edge from each message to the previous one in its session, if both have chunks."""
    first = _first_chunks(graph)
    edges = triple_table(list(_follows(messages, first)))
    if not edges.num_rows:
        return graph
    triples = pa.concat_tables([graph.triples, edges]).sort_by("path").combine_chunks()
    return replace(graph, triples=triples)


def _first_chunks(graph: Graph) -> Mapping[str, tuple[str, str]]:
    """Return the source and the first chunk of each message, by path."""
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


_SHORT = 100  # words, which spaCy processes in about 25 ms
_MOST_CHUNKS = 16  # which patterns process in about 5 ms; the fold processes the rest of longer messages


@dataclass(frozen=True, slots=True)
class Extracted:
    """Findings in a message that were available immediately."""

    concepts: tuple[str, ...] = ()
    edges: int = 0
    state: ExtractionState = "none"


@dataclass(eq=False)
class FirstStage:
    """Extraction while a program waits: by patterns, and for short texts by spaCy, once it is loaded.

    The next fold finds the rest.
    """

    settings_now: Callable[[], Settings]
    _is_warm: threading.Event = field(default_factory=threading.Event)
    _warming: threading.Thread | None = None
    _extractors: dict[str, Extractor | None] = field(default_factory=dict)

    def extract(self, message: Message, drafts: Sequence[Draft]) -> Extracted:
        """Return the findings in the chunks of one message; if the extractor fails, the fold handles it."""
        settings = self.settings_now()
        wanted = settings.memory.concepts
        if wanted == "none" or not drafts or not settings.graph.enabled:
            return Extracted()
        name, state = self._choose_extractor(wanted, message.text)
        chunks = [_read(message, index, draft) for index, draft in enumerate(drafts[:_MOST_CHUNKS])]
        found = self._found(name, chunks)
        if len(found) < len(drafts):
            state = "pending"
        edges = [
            *document_edges(chunks),
            *concept_edges(chunks, found, settings.graph.max_triples_per_chunk, name),
        ]
        ends = {end for edge in edges for end in ((edge.subject, edge.subject_type), (edge.object, edge.object_type))}
        concepts = sorted(node.removeprefix(f"{CONCEPT}:") for node, kind in ends if kind == CONCEPT)
        return Extracted(tuple(concepts), len(edges), state)

    def _found(self, name: str, chunks: Sequence[ReadChunk]) -> dict[str, Found]:
        """Return the findings by chunk id, without chunks on which the extractor fails; the fold reports why."""
        extractor = self._extractor(name)
        if extractor is None:
            return {}
        try:
            answers = list(extractor.extract([Passage((), chunk.prose.paragraphs) for chunk in chunks]))
        except Exception:  # noqa: BLE001 may come from another package
            return {}
        found = zip(chunks, answers, strict=False)
        return {chunk.row["chunk_id"]: answer for chunk, answer in found if isinstance(answer, Found)}

    def _extractor(self, name: str) -> Extractor | None:
        if name not in self._extractors:
            self._extractors[name] = plan_of(self.settings_now(), name).extractor
        return self._extractors[name]

    def _choose_extractor(self, wanted: str, text: str) -> tuple[str, ExtractionState]:
        if wanted == PATTERNS:
            return wanted, "done"
        if wanted == SPACY:
            self._warm()
            if self._is_warm.is_set() and len(text.split()) <= _SHORT:
                return wanted, "done"
        return PATTERNS, "pending"

    def _warm(self) -> None:
        """Load spaCy's model in the background, because it takes seconds."""
        if self._warming is None:
            self._warming = threading.Thread(target=self._load, daemon=True)
            self._warming.start()

    def _load(self) -> None:
        if not problem_of(self.settings_now(), SPACY):
            self._is_warm.set()


def _read(message: Message, index: int, draft: Draft) -> ReadChunk:
    """Return a chunk of a message in the form that the graph reads, without its full row."""
    path = path_of(message)
    row = {
        "source": "",
        "path": path,
        "chunk_id": str(index),
        "embed_text_hash": str(index),
        "start_line": draft.start_line,
        "end_line": draft.end_line,
        "pointers": draft.pointers,
    }
    return ReadChunk(row, read_prose(draft.text), [(0, ())])
