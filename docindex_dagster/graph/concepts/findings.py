"""What was found in the chunks of a source: a table by the hash of their texts, so that no text is read twice.

Extractors may be of other packages: what they return is checked; what they fail in is reported and left out. Edges lead
from the section of a chunk to what it speaks of, and between concepts.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.core.errors import ConceptError, first_line
from docindex_dagster.core.events import ignore, reporter
from docindex_dagster.graph.concepts.extractor import RELATIONS, Concept, Extractor, Found, Passage, Relation, normal
from docindex_dagster.graph.document_text import ReadChunk, goes_on, read_prose
from docindex_dagster.graph.documents import DOCUMENT
from docindex_dagster.graph.source_graph import CONCEPT, Triple

_CONCEPT = pa.struct([("name", pa.string()), ("confidence", pa.float32()), ("line", pa.int32())])
_RELATION = pa.struct(
    [
        ("subject", pa.string()),
        ("predicate", pa.string()),
        ("object", pa.string()),
        ("confidence", pa.float32()),
        ("line", pa.int32()),
    ]
)
FINDINGS = pa.schema(
    [
        pa.field("text", pa.string(), nullable=False),  # the embed_text_hash of the chunks
        pa.field("concepts", pa.list_(_CONCEPT), nullable=False),
        pa.field("relations", pa.list_(_RELATION), nullable=False),
    ]
)
_NEEDED = ("embed_text_hash", "text", "heading_path", "has_code", "part_number")
_LEGAL = r"(?i)(^|/)(licen[cs]e|copying|notice|patents)[^/]*$"  # their terms are those of lawyers
_BATCH = 256  # passages that are given to an extractor at once
_LONGEST_NAME = 300


@dataclass(frozen=True, slots=True)
class Findings:
    """A table of the schema FINDINGS, and why it is not complete, if it is not."""

    table: pa.Table
    problem: str = ""

    def of(self, texts: pa.Array | pa.ChunkedArray) -> dict[str, Found]:
        """What is in chunks, by the hashes of their texts."""
        rows = self.table.filter(pc.is_in(self.table["text"], pc.unique(texts)))
        return {row["text"]: _as_found(row) for row in rows.to_pylist()}


NOTHING = Findings(FINDINGS.empty_table())


def find_concepts(chunks: pa.Table, extractor: Extractor, previous: pa.Table | None) -> Findings:
    """What is in the documents among some chunks, but for licences.

    Args:
        chunks: of a source.
        extractor: asked for the texts that are not in `previous`, in batches. What it cannot find in a text costs that
            text; after an error that it raises it is not asked again.
        previous: a table of the same extractor's findings.
    """
    is_legal = pc.match_substring_regex(chunks["path"], _LEGAL)
    is_read = pc.and_(pc.equal(chunks["source_type"], DOCUMENT), pc.invert(is_legal))
    documents = chunks.filter(is_read).select(list(_NEEDED))
    known = FINDINGS.empty_table()
    if previous is not None and previous.schema.equals(FINDINGS):
        known = previous.replace_schema_metadata(None)
    kept = known.filter(pc.is_in(known["text"], pc.unique(documents["embed_text_hash"])))
    new = documents.filter(pc.invert(pc.is_in(documents["embed_text_hash"], kept["text"])))
    found: dict[str, Found] = {}
    problems: list[str] = []
    passages, asked, count = _passages(new), 0, len(pc.unique(new["embed_text_hash"]))
    announce = reporter(chunks["source"][0].as_py(), "concepts", "texts") if count else ignore
    announce(0, count)
    while (batch := dict(islice(passages, _BATCH))) and _extract(extractor, batch, found, problems):
        announce(asked := asked + len(batch), count)
    problem = f"the concepts are not complete: {extractor.name}: {problems[0]}" if problems else ""
    added = pa.Table.from_pylist([_as_row(text, each) for text, each in found.items()], FINDINGS)
    return Findings(pa.concat_tables([kept, added]).sort_by("text").combine_chunks(), problem)


def _passages(documents: pa.Table) -> Iterator[tuple[str, Passage]]:
    """The passages of chunks by the hashes of their texts, each once."""
    seen: set[str] = set()
    for batch in documents.to_batches(max_chunksize=_BATCH):
        for row in batch.to_pylist():
            if row["embed_text_hash"] not in seen:
                seen.add(row["embed_text_hash"])
                paragraphs = read_prose(row["text"], goes_on=goes_on(row)).paragraphs
                yield row["embed_text_hash"], Passage(tuple(row["heading_path"] or ()), paragraphs)


def _extract(extractor: Extractor, batch: Mapping[str, Passage], found: dict[str, Found], problems: list[str]) -> bool:
    """Add what an extractor finds in a batch, and what it fails in; whether it can be asked for more."""
    try:
        answers = iter(extractor.extract([*batch.values()]))
        for text in batch:
            answer = next(answers, None)
            if isinstance(answer, ConceptError):
                problems.append(str(answer))
            else:
                found[text] = _checked(answer)
        next(answers, None)  # it may end early, with what it has found
    except Exception as error:  # noqa: BLE001 it may be of another package
        problems.append(
            str(error) if isinstance(error, ConceptError) else f"{type(error).__name__}: {first_line(error)}"
        )
        return False
    return True


def _checked(found: Found | None) -> Found:
    """Findings with names under which there can be nodes.

    Raises:
        ConceptError: they are no findings.
    """
    if not isinstance(found, Found):
        raise ConceptError(f"it gave a {type(found).__name__} where a Found was wanted")
    stated: tuple[Concept | Relation, ...] = (*found.concepts, *found.relations)
    for each in stated:
        if not 0 < each.confidence <= 1 or each.line < 0:
            raise ConceptError(f"{each} has a confidence beyond 0 to 1, or a line before the first")
    for relation in found.relations:
        if relation.predicate not in RELATIONS:
            raise ConceptError(f"{relation.predicate!r} is none of the relations {', '.join(RELATIONS)}")
    concepts = (each for each in found.concepts if _is_name(each.name))
    relations = (each for each in found.relations if _is_name(each.subject) and _is_name(each.object))
    return Found(tuple(concepts), tuple(each for each in relations if normal(each.subject) != normal(each.object)))


def _is_name(name: str) -> bool:
    return len(name) <= _LONGEST_NAME and bool(normal(name))


def _as_row(text: str, found: Found) -> dict[str, Any]:
    return {
        "text": text,
        "concepts": _fields(found.concepts, _CONCEPT),
        "relations": _fields(found.relations, _RELATION),
    }


def _fields(each: Iterable[Concept | Relation], kind: pa.StructType) -> list[dict[str, Any]]:
    return [{field.name: getattr(one, field.name) for field in kind} for one in each]


def _as_found(row: Mapping[str, Any]) -> Found:
    return Found(
        tuple(Concept(**each) for each in row["concepts"]), tuple(Relation(**each) for each in row["relations"])
    )


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
