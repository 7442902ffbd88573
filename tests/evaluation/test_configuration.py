"""What a file can change of how an index is searched."""

import pytest

from docindex_dagster.core.errors import SettingsError
from docindex_dagster.core.settings import load_settings
from docindex_dagster.evaluation.configuration import Configuration, read_configuration
from docindex_dagster.search.model import Mode
from docindex_dagster.search.weights import WEIGHTS


@pytest.fixture
def base(tmp_path) -> Configuration:
    (tmp_path / "docindex.toml").write_text("[rerank]\ncandidates = 30\n")
    return Configuration(load_settings(tmp_path))


@pytest.fixture
def read(base, tmp_path):
    def reading(text: str) -> Configuration:
        (tmp_path / "other.toml").write_text(text)
        return read_configuration(base, tmp_path / "other.toml")

    return reading


def test_an_empty_file_changes_nothing(read, base):
    assert read("") == base


def test_what_it_names_is_changed_and_the_rest_stays(read):
    found = read(
        'mode = "bm25"\n[search]\ncandidates = 50\n[rerank]\nprovider = "mmr"\n'
        "[weights]\ndefinition = 0\nrepeat = 1.0\n"
    )

    assert found.mode is Mode.BM25
    assert found.settings.search.candidates == 50
    assert (found.settings.rerank.provider, found.settings.rerank.candidates) == ("mmr", 30)
    assert (found.weights.definition, found.weights.repeat, found.weights.path) == (0.0, 1.0, WEIGHTS.path)


def test_another_provider_of_embeddings_has_none_of_the_settings_of_this_one(read, tmp_path):
    found = read('[embedding]\nprovider = "sentence-transformers"\nmodel = "./model"\n')

    assert found.settings.embedding.model == str(tmp_path / "model")
    assert found.names_model


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("mode = 'literal'", "mode: there is no 'literal'; must be one of hybrid, vector, bm25, graph"),
        ("mode = 3", "mode: there is no 3"),
        ("[[source]]\nkind = 'git'", "source is no part of how an index is searched"),
        ("[search]\ntop_k = 5", "search.top_k is no part"),
        ("[rerank]\nprovider = 'oracle'", "rerank.provider: there is no 'oracle'"),
        ("[rerank]\nprovider = 'remote'", "rerank.url must say where to post"),
        ("[rerank]\napi_key = 'a'", "rerank.api_key is a secret; set DOCINDEX_RERANK__API_KEY"),
        ("[weights]\ncharm = 1", "weights.charm is no part"),
        ("[weights]\npath = -1", "weights.path must be a number that is not negative"),
        ("[weights]\npath = nan", "weights.path must be a number"),
        ("[weights]\npath = true", "weights.path must be a number"),
        ("rerank = 'mmr'", "rerank must be a table"),
        ("home = 'nowhere'", "home: nothing is indexed in nowhere"),
        ("home = 3", "home: nothing is indexed in 3"),
        ("mode = ", "cannot be read"),
    ],
)
def test_a_mistake_names_the_file_and_what_is_allowed(read, tmp_path, text, reason):
    with pytest.raises(SettingsError) as error:
        read(text)

    assert str(error.value).startswith(f"{tmp_path}/other.toml")
    assert reason in str(error.value)
