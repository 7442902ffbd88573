"""The static model: its rows, how they are pooled, and its file."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest

from docindex_dagster.core.errors import EmbeddingError
from docindex_dagster.embedding import static
from docindex_dagster.embedding.static import StaticEmbedder, StaticModel, load_weights
from training.export import as_bytes

VOCABULARY = ["parse", "header", "s", "##s", "##er"]
ROWS = np.eye(5, dtype=np.float32)


@pytest.fixture
def model() -> StaticModel:
    return StaticModel(VOCABULARY, ROWS)


def test_a_vector_is_the_sum_of_rows_times_the_root_of_how_often_each_token_occurs(model):
    assert model.pooled(["parse_header parseParse parse"])[0].tolist() == [2, 1, 0, 0, 0]


def test_a_word_without_a_row_is_made_of_the_longest_pieces_it_begins_with(model):
    assert model.pooled(["headers", "parser", "parsexer", "sss"]).tolist() == [
        [0, 1, 0, 1, 0],
        [1, 0, 0, 0, 0],  # `r` has no row, so `parser` is `parse` and an unknown piece
        [1, 0, 0, 0, 1],
        [0, 0, 1, pytest.approx(np.sqrt(2)), 0],
    ]


@pytest.mark.parametrize("few", [0, 100])
def test_a_vector_is_the_same_however_many_texts_are_embedded_with_it(model, few, monkeypatch):
    monkeypatch.setattr(static, "_BULK_THRESHOLD", few)  # words looked up one by one

    assert model.pooled(["headers parse", "parse \ud800 x\udcff漢"]).tolist() == [[1, 1, 0, 1, 0], [1, 0, 0, 0, 0]]


def test_what_is_not_known_at_all_is_zero_until_it_is_embedded(model):
    assert not model.pooled(["", "漢字", "---"]).any()
    vectors = StaticEmbedder().embed_documents(["", "---"])
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)


def test_texts_are_embedded_alike_alone_and_among_others():
    texts = ["def parse_header(line): ...", "the pump moves water", "x" * 5000, "漢字 and words", ""] * 300
    together = StaticEmbedder().embed_documents(texts)

    assert together.shape == (1500, 256)
    assert together.dtype == np.float32
    assert np.allclose(together[:5], [StaticEmbedder().embed_query(text) for text in texts[:5]], atol=1e-6)
    assert np.array_equal(together[:5], together[5:10])


EMBED = """
import hashlib
from pathlib import Path
import numpy as np
from docindex_dagster.embedding import static
lines = Path(static.__file__).read_text().splitlines()
texts = [" ".join(lines[start : start + 12]) for start in range(len(lines) - 12)]
print(hashlib.sha256(static.StaticEmbedder().embed_documents(texts).astype(np.float16)).hexdigest())
"""


def test_machines_whose_processors_add_in_another_order_store_the_same_vectors():
    kernels = ("", "Nehalem", "Haswell", "SkylakeX")  # kernels of OpenBLAS; "" is this machine's
    environments = [{**os.environ, "OPENBLAS_CORETYPE": kernel} for kernel in kernels]
    command = [sys.executable, "-c", EMBED]
    found = {subprocess.run(command, env=one, check=True, capture_output=True).stdout for one in environments}

    assert len(found) == 1


def test_what_is_meant_alike_is_nearer_than_what_is_not():
    question, answer, other = StaticEmbedder().embed_documents(
        [
            "how are expired sessions removed",
            "def purge(self):\n    for key, session in self.sessions.items():\n        if session.expires < now():",
            "class Matrix:\n    def multiply(self, other):\n        return [[sum(a * b for a, b in zip(row, col))",
        ]
    )

    assert question @ answer > question @ other + 0.1


def test_rows_are_kept_to_within_half_a_step_of_their_scale(tmp_path, monkeypatch):
    rows = np.random.default_rng(0).normal(size=(5, 256)).astype(np.float32)
    install(as_bytes(VOCABULARY, rows), tmp_path, monkeypatch)

    tokens, kept = load_weights.__wrapped__()

    assert list(tokens) == VOCABULARY
    assert np.all(np.abs(kept - rows) <= np.abs(rows).max(axis=1, keepdims=True) / 127 * 0.51)


def test_weights_that_were_changed_are_refused(tmp_path, monkeypatch):
    data = bytearray(as_bytes(VOCABULARY, ROWS))
    install(bytes(data), tmp_path, monkeypatch)
    data[len(data) // 2] ^= 1
    (tmp_path / static.FILE).write_bytes(data)

    with pytest.raises(EmbeddingError, match=r"is damaged\. Reinstall docindex"):
        load_weights.__wrapped__()


def install(data: bytes, folder, monkeypatch) -> None:
    (folder / static.FILE).write_bytes(data)
    monkeypatch.setattr(static, "files", lambda _package: folder)
    monkeypatch.setattr(static, "SHA256", hashlib.sha256(data).hexdigest())


def test_the_model_is_loaded_without_a_library_for_models():
    code = (
        "import sys; from docindex_dagster.embedding.static import StaticEmbedder; StaticEmbedder().embed_query('a');"
        "print({'torch', 'tokenizers', 'transformers'} & set(sys.modules))"
    )
    output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout

    assert output.strip() == "set()"
