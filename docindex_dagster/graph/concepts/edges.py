"""The edges of concepts: from the section of a chunk to what it speaks of, and between concepts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from docindex_dagster.graph.concepts.extractor import Concept, Found, Relation, normal
from docindex_dagster.graph.sections import ReadChunk
from docindex_dagster.graph.triple import CONCEPT, Triple


def concept_edges(chunks: Iterable[ReadChunk], found: Mapping[str, Found], most: int, by: str) -> Iterator[Triple]:
    """The edges of the chunks of a document.

    Args:
        chunks: of one document.
        found: what is in them, by the hashes of their texts.
        most: relations a chunk, and as many concepts; those of the highest confidence.
        by: the extractor's name, for the edges.
    """
    known: set[tuple[str, str, str]] = set()
    for chunk in chunks:
        here = found.get(chunk.row["embed_text_hash"])
        if here is None:
            continue
        relations = _best(here.relations, most)
        for edge in (*_mentions(chunk, here.concepts, relations, most, by), *_relations(chunk, relations, by)):
            key = (edge.subject, edge.predicate, edge.object)
            if key not in known:
                known.add(key)
                yield edge


def node_of(name: str) -> str:
    """The node of a concept, which all sources share."""
    return f"{CONCEPT}:{normal(name)}"


def _mentions(
    chunk: ReadChunk, concepts: Sequence[Concept], relations: Sequence[Relation], most: int, by: str
) -> Iterator[Triple]:
    """The concepts at the ends of relations come first: what has relations is reached from its section."""
    ends = {normal(name) for each in relations for name in (each.subject, each.object)}
    order = sorted(concepts, key=lambda each: (normal(each.name) not in ends, -each.confidence, each.line))
    best: dict[str, Concept] = {}
    for each in order:
        best.setdefault(node_of(each.name), each)
    for node, each in [*best.items()][:most]:
        yield _edge(chunk, chunk.place(each.line), "mentions", (node, each), by)


def _relations(chunk: ReadChunk, relations: Sequence[Relation], by: str) -> Iterator[Triple]:
    for each in relations:
        yield _edge(chunk, (node_of(each.subject), CONCEPT), each.predicate, (node_of(each.object), each), by)


def _best(relations: Sequence[Relation], most: int) -> list[Relation]:
    return sorted(relations, key=lambda each: (-each.confidence, each.line))[:most]


def _edge(
    chunk: ReadChunk, place: tuple[str, str], predicate: str, found: tuple[str, Concept | Relation], by: str
) -> Triple:
    node, finding = found
    row = chunk.row
    of_chunk = row["source"], row["path"], row["chunk_id"]
    return Triple(*place, predicate, node, CONCEPT, *of_chunk, chunk.line(finding.line), finding.confidence, by)
