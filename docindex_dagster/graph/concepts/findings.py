"""Findings in the chunks of a source, stored by the hash of the text, so that no text is analyzed twice.

Extractors may come from other packages, so their results are checked; failures are reported and left out. Edges connect
the section of a chunk to its concepts, and concepts to each other.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.core.errors import ConceptError, first_line
from docindex_dagster.core.events import ignore, reporter
from docindex_dagster.graph.concepts.extractor import (
    RELATIONS,
    Concept,
    Extractor,
    Found,
    Passage,
    Relation,
    normalize_name,
)
from docindex_dagster.graph.document_text import ReadChunk, may_start_in_code, read_prose
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
_REQUIRED_COLUMNS = ("embed_text_hash", "text", "heading_path", "has_code", "part_number")
_LEGAL = r"(?i)(^|/)(licen[cs]e|copying|notice|patents)[^/]*$"  # their terms are legal ones
_BATCH = 256  # passages per call of an extractor
_LONGEST_NAME = 300


@dataclass(frozen=True, slots=True)
class Findings:
    """Table with the schema FINDINGS, and why it is incomplete, if it is."""

    table: pa.Table
    problem: str = ""

    def of(self, texts: pa.Array | pa.ChunkedArray) -> dict[str, Found]:
        """Return the findings in chunks, by the hashes of their texts."""
        rows = self.table.filter(pc.is_in(self.table["text"], pc.unique(texts)))
        return {row["text"]: _as_found(row) for row in rows.to_pylist()}


NOTHING = Findings(FINDINGS.empty_table())


def find_concepts(chunks: pa.Table, extractor: Extractor, previous: pa.Table | None) -> Findings:
    """Find concepts in the documents among some chunks, except licenses.

    Args:
        chunks: The chunks of a source.
        extractor: Called in batches for texts that are not in `previous`. A text that it fails on has no findings;
            after it raises an error, it is not called again.
        previous: A table of the same extractor's findings.
    """
    is_legal = pc.match_substring_regex(chunks["path"], _LEGAL)
    is_read = pc.and_(pc.equal(chunks["source_type"], DOCUMENT), pc.invert(is_legal))
    documents = chunks.filter(is_read).select(list(_REQUIRED_COLUMNS))
    known = FINDINGS.empty_table()
    if previous is not None and previous.schema.equals(FINDINGS):
        known = previous.replace_schema_metadata(None)
    kept = known.filter(pc.is_in(known["text"], pc.unique(documents["embed_text_hash"])))
    new = documents.filter(pc.invert(pc.is_in(documents["embed_text_hash"], kept["text"])))
    found: dict[str, Found] = {}
    problems: list[str] = []
    passages, analyzed, count = _passages(new), 0, len(pc.unique(new["embed_text_hash"]))
    announce = reporter(chunks["source"][0].as_py(), "concepts", "texts") if count else ignore
    announce(0, count)
    while (batch := dict(islice(passages, _BATCH))) and _extract(extractor, batch, found, problems):
        announce(analyzed := analyzed + len(batch), count)
    problem = f"the concepts are incomplete: {extractor.name}: {problems[0]}" if problems else ""
    added = pa.Table.from_pylist([_as_row(text, each) for text, each in found.items()], FINDINGS)
    return Findings(pa.concat_tables([kept, added]).sort_by("text").combine_chunks(), problem)


def _passages(documents: pa.Table) -> Iterator[tuple[str, Passage]]:
    """Yield the passages of chunks with the hashes of their texts, without duplicates."""
    seen: set[str] = set()
    for batch in documents.to_batches(max_chunksize=_BATCH):
        for row in batch.to_pylist():
            if row["embed_text_hash"] not in seen:
                seen.add(row["embed_text_hash"])
                paragraphs = read_prose(row["text"], may_start_in_code=may_start_in_code(row)).paragraphs
                yield row["embed_text_hash"], Passage(tuple(row["heading_path"] or ()), paragraphs)


def _extract(extractor: Extractor, batch: Mapping[str, Passage], found: dict[str, Found], problems: list[str]) -> bool:
    """Add what an extractor finds in a batch, and its failures; return whether it can be called again."""
    try:
        answers = iter(extractor.extract([*batch.values()]))
        for text in batch:
            answer = next(answers, None)
            if isinstance(answer, ConceptError):
                problems.append(str(answer))
            else:
                found[text] = _checked(answer)
        next(answers, None)  # runs the rest of the generator, which may raise after its last answer
    except Exception as error:  # noqa: BLE001 may come from another package
        problems.append(
            str(error) if isinstance(error, ConceptError) else f"{type(error).__name__}: {first_line(error)}"
        )
        return False
    return True


def _checked(found: Found | None) -> Found:
    """Return the findings whose names can become nodes.

    Raises:
        ConceptError: The findings are invalid.
    """
    if not isinstance(found, Found):
        raise ConceptError(f"expected a Found from the extractor, got {type(found).__name__}")
    findings: tuple[Concept | Relation, ...] = (*found.concepts, *found.relations)
    for each in findings:
        if not 0 < each.confidence <= 1 or each.line < 0:
            raise ConceptError(f"invalid finding {each}: confidence must be between 0 and 1, and line at least 0")
    for relation in found.relations:
        if relation.predicate not in RELATIONS:
            raise ConceptError(f"unknown relation {relation.predicate!r}: expected one of {', '.join(RELATIONS)}")
    concepts = (each for each in found.concepts if _is_name(each.name))
    relations = (each for each in found.relations if _is_name(each.subject) and _is_name(each.object))
    return Found(
        tuple(concepts),
        tuple(each for each in relations if normalize_name(each.subject) != normalize_name(each.object)),
    )


def _is_name(name: str) -> bool:
    return len(name) <= _LONGEST_NAME and bool(normalize_name(name))


def _as_row(text: str, found: Found) -> dict[str, Any]:
    return {
        "text": text,
        "concepts": _fields(found.concepts, _CONCEPT),
        "relations": _fields(found.relations, _RELATION),
    }


def _fields(findings: Iterable[Concept | Relation], kind: pa.StructType) -> list[dict[str, Any]]:
    return [{field.name: getattr(finding, field.name) for field in kind} for finding in findings]


def _as_found(row: Mapping[str, Any]) -> Found:
    return Found(
        tuple(Concept(**each) for each in row["concepts"]), tuple(Relation(**each) for each in row["relations"])
    )


def concept_edges(
    chunks: Iterable[ReadChunk], found: Mapping[str, Found], most: int, found_by: str
) -> Iterator[Triple]:
    """Yield the edges of the chunks of a document.

    Args:
        chunks: The chunks of one document.
        found: The findings, by the hashes of texts.
        most: The maximum number of relations per chunk, and of concepts; those with the highest confidence are kept.
        found_by: The name of the extractor, for the edges.
    """
    known: set[tuple[str, str, str]] = set()
    for chunk in chunks:
        findings = found.get(chunk.row["embed_text_hash"])
        if findings is None:
            continue
        relations = _most_confident(findings.relations, most)
        for edge in (
            *_mentions(chunk, findings.concepts, relations, most, found_by),
            *_relations(chunk, relations, found_by),
        ):
            key = (edge.subject, edge.predicate, edge.object)
            if key not in known:
                known.add(key)
                yield edge


def node_of(name: str) -> str:
    """Return the node of a concept, which all sources share."""
    return f"{CONCEPT}:{normalize_name(name)}"


def _mentions(
    chunk: ReadChunk, concepts: Sequence[Concept], relations: Sequence[Relation], most: int, found_by: str
) -> Iterator[Triple]:
    """Yield mentions of concepts. Concepts with relations come first, so that sections have edges to them."""
    ends = {normalize_name(name) for each in relations for name in (each.subject, each.object)}
    order = sorted(concepts, key=lambda each: (normalize_name(each.name) not in ends, -each.confidence, each.line))
    best: dict[str, Concept] = {}
    for each in order:
        best.setdefault(node_of(each.name), each)
    for node, each in [*best.items()][:most]:
        yield _edge(chunk, chunk.place(each.line), "mentions", (node, each), found_by)


def _relations(chunk: ReadChunk, relations: Sequence[Relation], found_by: str) -> Iterator[Triple]:
    for each in relations:
        yield _edge(chunk, (node_of(each.subject), CONCEPT), each.predicate, (node_of(each.object), each), found_by)


def _most_confident(relations: Sequence[Relation], most: int) -> list[Relation]:
    return sorted(relations, key=lambda each: (-each.confidence, each.line))[:most]


def _edge(
    chunk: ReadChunk, subject: tuple[str, str], predicate: str, found: tuple[str, Concept | Relation], found_by: str
) -> Triple:
    node, finding = found
    row = chunk.row
    of_chunk = row["source"], row["path"], row["chunk_id"]
    return Triple(*subject, predicate, node, CONCEPT, *of_chunk, chunk.line(finding.line), finding.confidence, found_by)
