"""Baseline: BM25 over the terms of the same chunks.

It has one field, without stems, stop words or later ranking. Identifiers are split as in the index.
"""

from collections.abc import Callable
from dataclasses import dataclass

import tantivy

from docindex_dagster.stores.analysis import terms
from docindex_dagster.stores.reader import Reader


@dataclass(frozen=True, slots=True)
class Span:
    """The position of a chunk."""

    path: str
    start_line: int
    end_line: int


def plain_bm25(reader: Reader) -> Callable[[str, int], list[Span]]:
    """Return an in-memory search over the chunks of a generation, which returns the best positions."""
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text", tokenizer_name="whitespace", index_option="freq")
    builder.add_unsigned_field("position", stored=True)
    schema = builder.build()
    index = tantivy.Index(schema)
    columns = ["path", "start_line", "end_line", "text"]
    rows = reader.table.search().select(columns).limit(None).to_arrow().to_pylist()
    writer = index.writer(num_threads=1)
    for position, row in enumerate(rows):
        writer.add_document(tantivy.Document(text=" ".join(terms(row["text"])), position=position))
    writer.commit()
    index.reload()
    searcher = index.searcher()

    def search(question: str, top: int) -> list[Span]:
        words = [tantivy.Query.term_query(schema, "text", word) for word in dict.fromkeys(terms(question))]
        query = tantivy.Query.boolean_query([(tantivy.Occur.Should, word) for word in words])
        found = [rows[searcher.doc(address)["position"][0]] for _, address in searcher.search(query, limit=top).hits]
        return [Span(row["path"], row["start_line"], row["end_line"]) for row in found]

    return search
