"""The `embeddings` table: one vector per chunk, with each text embedded once."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from docindex_dagster.core.errors import VerificationError
from docindex_dagster.embedding.build import EmbeddingResult, build_embeddings, verify_embeddings
from docindex_dagster.embedding.protocol import Embedder, Vectors
from docindex_dagster.embedding.static import StaticEmbedder
from tests.conftest import chunks_of

CHUNKS = chunks_of({"a.py": ["alpha reads a file", "beta writes a file"], "b.py": ["gamma sorts numbers"]})


class CountingEmbedder(StaticEmbedder):
    """The real model, which records the texts it embeds."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.texts += texts
        return super().embed_documents(texts)


def build(chunks: pa.Table, previous: pa.Table | None = None) -> tuple[EmbeddingResult, list[str]]:
    embedder = CountingEmbedder()
    return build_embeddings(chunks, previous, embedder, "library/sample"), embedder.texts


def test_the_static_model_is_an_embedder_with_unit_vectors_and_no_network():
    embedder = StaticEmbedder()
    assert isinstance(embedder, Embedder)

    vectors = embedder.embed_documents(["a text", "", "\u200b", "another text"])

    assert vectors.shape == (4, embedder.dimension)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    assert np.allclose(embedder.embed_query("a text"), vectors[0])


def test_near_meanings_are_nearer_than_far_ones():
    embedder = StaticEmbedder()
    delete, remove, parse = embedder.embed_documents(["delete a file", "remove a document", "parse the arguments"])

    assert delete @ remove > delete @ parse


def test_vectors_stand_in_the_order_of_their_chunks():
    result, _ = build(CHUNKS)

    assert result.table["chunk_id"].equals(CHUNKS["chunk_id"])
    assert result.embedded == CHUNKS.num_rows


def test_a_text_that_was_embedded_before_keeps_its_vector_wherever_it_moves():
    before, _ = build(CHUNKS)
    moved = CHUNKS.take([2, 0, 1])

    after, asked = build(moved, before.table)

    assert asked == []
    assert after.reused == 3
    assert after.table["vector"].to_pylist() == before.table.take([2, 0, 1])["vector"].to_pylist()


def test_only_a_changed_text_is_embedded():
    before, _ = build(CHUNKS)
    edited = chunks_of({"a.py": ["alpha reads a file", "beta writes a page"], "b.py": ["gamma sorts numbers"]})

    after, asked = build(edited, before.table)

    assert [text.splitlines()[1] for text in asked] == ["beta writes a page"]
    assert after.table.equals(build(edited)[0].table)


def test_equal_texts_are_embedded_once():
    twice = pa.concat_tables([CHUNKS, CHUNKS])

    result, asked = build(twice)

    assert len(asked) == CHUNKS.num_rows
    assert result.table.num_rows == twice.num_rows


def test_no_chunks_give_an_empty_table():
    result, _ = build(CHUNKS.slice(0, 0))

    assert result.table.num_rows == 0


def planted(vector: list[float], dimension: int) -> pa.Table:
    table = build(CHUNKS)[0].table
    values = pa.array(np.tile(np.array(vector, np.float16), 3), pa.float16())
    column = pa.FixedSizeListArray.from_arrays(values, dimension)
    return table.set_column(3, "vector", column)


@pytest.mark.parametrize(
    ("table", "rule"),
    [
        (build(CHUNKS)[0].table.slice(1), "one_vector_a_chunk"),
        (build(CHUNKS)[0].table.take([1, 0, 2]), "one_vector_a_chunk"),
        (planted([float("inf")] * 256, 256), "vectors_are_finite"),
        (planted([1.0] * 256, 256), "vectors_are_unit_length"),
        (planted([1.0, 0.0], 2), "dimension_is_right"),
    ],
)
def test_vectors_that_break_a_rule_are_refused_by_its_name(table, rule):
    with pytest.raises(VerificationError) as caught:
        verify_embeddings(table, CHUNKS, 256)

    assert set(caught.value.failures) == {rule}
