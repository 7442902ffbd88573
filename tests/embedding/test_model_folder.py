"""Properties read from a model folder without loading the model."""

import json
import os
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.core.errors import EmbeddingError
from docindex_dagster.embedding.model_folder import ModelFolder, read_folder
from tests.embedding.model_folders import POOLING, write_model

INDEX = "model.safetensors.index.json"
FILES = ("modules.json", "config.json", "1_Pooling/config.json", "tokenizer_config.json", INDEX)
WHOLE = ("Transformer", "Pooling", "Normalize")


# Vector dimension and maximum length of a text.


@pytest.mark.parametrize(
    ("kinds", "configs", "dimension"),
    [
        (WHOLE, {}, 24),
        (WHOLE, {"Pooling": {"embedding_dimension": 32, "pooling_mode": "mean"}}, 32),
        (WHOLE, {"Pooling": {"embedding_dimension": 32, "pooling_mode": ["mean", "max"]}}, 64),
        (WHOLE, {"Pooling": {**POOLING, "pooling_mode_cls_token": True}}, 48),
        ((*WHOLE[:2], "Dense", "Normalize"), {"Dense": {"in_features": 24, "out_features": 16}}, 16),
        (WHOLE, {"Pooling": {"word_embedding_dimension": "many"}}, None),
        (("StaticEmbedding", "Normalize"), {}, None),
    ],
)
def test_the_dimension_is_what_the_last_module_says_that_changes_it(kinds, configs, dimension, tmp_path):
    assert read_folder(write_model(tmp_path, *kinds, **configs)).dimension == dimension


def test_a_text_is_as_long_as_the_narrowest_file_allows(tmp_path):
    folder = write_model(tmp_path, Transformer={"max_position_embeddings": 514})
    assert read_folder(folder).max_tokens == 514

    (folder / "tokenizer_config.json").write_text('{"model_max_length": 1000000000000000019884624838656}')
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 128}')
    assert read_folder(folder).max_tokens == 128


# Fingerprint.


def test_a_copy_elsewhere_is_the_same_model(tmp_path):
    first = write_model(tmp_path / "first")
    second = Path(shutil.copytree(first, tmp_path / "second"))
    (second / "README.md").write_text("About it.")
    os.utime(second / "model.safetensors", (0, 0))

    assert read_folder(first).fingerprint == read_folder(second).fingerprint


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("model.safetensors", "WEIGHTS"),
        ("config_sentence_transformers.json", '{"prompts": {"query": "query: "}}'),
        ("1_Pooling/config.json", '{"word_embedding_dimension": 24, "pooling_mode_cls_token": true}'),
        ("tokenizer.json", "{}"),
        ("vocab.txt", "pump"),
    ],
)
def test_whatever_decides_what_the_vectors_are_changes_it(name, content, tmp_path):
    folder = write_model(tmp_path)
    before = read_folder(folder).fingerprint
    (folder / name).write_text(content)

    assert read_folder(folder).fingerprint != before


# Rejected folders.


def spoilt(folder: Path, name: str, content: str | None) -> Path:
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_text(content)
    return folder


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("modules.json", None, "no sentence-transformers model in .*cannot read .*modules.json"),
        ("modules.json", "[", "invalid configuration"),
        ("modules.json", "[]", "docindex does not run a model's own code"),
        ("modules.json", '[{"path": "", "type": "custom.Module"}]', "docindex does not run a model's own code"),
        (
            "modules.json",
            '[{"path": "../../x", "type": "sentence_transformers.models.Pooling"}]',
            "does not run a model's own code",
        ),
        (
            "modules.json",
            '[{"path": "/x", "type": "sentence_transformers.models.Pooling"}]',
            "does not run a model's own code",
        ),
        ("model.safetensors", None, "docindex loads only safetensors weights"),
        ("1_Pooling/pytorch_model.bin", "pickle", "pickled: docindex loads only safetensors weights"),
        ("1_Pooling/config.json", "[" * 10_000, "invalid configuration"),
    ],
)
def test_what_cannot_be_used_or_trusted_is_refused(name, content, problem, tmp_path):
    folder = spoilt(write_model(tmp_path), name, content)

    with pytest.raises(EmbeddingError, match=problem):
        read_folder(folder)


def test_weights_in_parts_are_all_there_or_refused(tmp_path):
    folder = spoilt(write_model(tmp_path), "model.safetensors", None)
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    (folder / INDEX).write_text(json.dumps(index))
    (folder / "model-1.safetensors").write_bytes(b"1")
    with pytest.raises(EmbeddingError, match=r"model\.safetensors not found"):
        read_folder(folder)

    (folder / "model-2.safetensors").write_bytes(b"2")
    assert read_folder(folder).dimension == 24


KEYS = (
    "path",
    "type",
    "weight_map",
    "word_embedding_dimension",
    "pooling_mode",
    "pooling_mode_cls_token",
    "model_max_length",
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=8,
)


@given(st.sampled_from(FILES), st.binary(max_size=40) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_content_of_a_file_gives_a_model_or_an_error_that_says_so(tmp_path_factory, name, content):
    folder = write_model(tmp_path_factory.mktemp("model"))
    if name == INDEX:
        (folder / "model.safetensors").unlink()
    (folder / name).write_bytes(content)

    with suppress(EmbeddingError):
        found = read_folder(folder)
        assert isinstance(found, ModelFolder)
        assert found.max_tokens > 0
