"""Search settings that a comparison file can change."""

from contextlib import suppress

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


def test_a_file_that_is_too_large_is_refused(read):
    with pytest.raises(SettingsError, match="too large"):
        read("#" * (2 << 20))


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
    ("text", "asked"),
    [
        ('[rerank]\nprovider = "remote"\nurl = "https://evil.example/rerank"', "rerank.provider"),
        ('[rerank]\nmodel = "m"', "rerank.model"),
        ('[embedding]\nbase_url = "https://evil.example/v1"', "embedding.base_url"),
        ('[embedding]\nprovider = "sentence-transformers"', "embedding.provider"),
    ],
)
def test_what_sends_texts_or_loads_a_model_needs_trust(read, tmp_path, monkeypatch, text, asked):
    monkeypatch.delenv("DOCINDEX_TRUST")

    with pytest.raises(SettingsError, match=f"{asked} requires trust.*docindex --trust evaluate --compare"):
        read(text)
    assert read('[rerank]\nprovider = "mmr"').settings.rerank.provider == "mmr"
    monkeypatch.setenv("DOCINDEX_TRUST", str(tmp_path))
    with suppress(SettingsError):  # the model may lack another setting
        read(text)


def test_a_home_that_docindex_did_not_make_for_the_user_is_not_opened(read, tmp_path, monkeypatch):
    monkeypatch.delenv("DOCINDEX_TRUST")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (planted := tmp_path / "planted/stores").mkdir(parents=True)
    (planted / "CURRENT").write_text("{}")
    monkeypatch.setenv("DOCINDEX_HOME", "own")
    own = load_settings(tmp_path).home
    (own / "stores").mkdir(parents=True)
    (own / "stores/CURRENT").write_text("{}")

    assert read('home = "own"').settings.home == own
    with pytest.raises(SettingsError, match="your index was not found in planted"):
        read('home = "planted"')
    (tmp_path / "planted").rename(elsewhere := tmp_path.with_name(f"{tmp_path.name}-planted"))
    with pytest.raises(SettingsError, match=r"your index was not found in .*"):
        read(f'home = "{elsewhere}"')


def test_a_key_goes_only_to_whom_it_was_given_for(tmp_path, monkeypatch):
    def key(project: str, other: str) -> object:
        (tmp_path / "docindex.toml").write_text(project)
        (tmp_path / "other.toml").write_text(other)
        settings = load_settings(tmp_path)
        return read_configuration(Configuration(settings), tmp_path / "other.toml").settings.rerank.api_key

    remote = '[rerank]\nprovider = "remote"\nurl = "https://{}.example/rerank"\n'
    monkeypatch.setenv("DOCINDEX_RERANK__API_KEY", "key-of-the-user")

    assert key(remote.format("own"), remote.format("other")) is None
    assert key(remote.format("own"), remote.format("own") + "candidates = 9\n") is not None
    assert key("", remote.format("other")) is not None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("mode = 'literal'", "invalid mode 'literal': must be one of hybrid, vector, bm25, graph"),
        ("mode = 3", "invalid mode 3"),
        ("[[source]]\nkind = 'git'", "unknown key source"),
        ("[search]\ntop_k = 5", "unknown key search.top_k"),
        ("[rerank]\nprovider = 'oracle'", "rerank.provider: 'oracle' not found"),
        ("[rerank]\nprovider = 'remote'", "rerank.url is required"),
        ("[rerank]\napi_key = 'a'", "rerank.api_key is a secret; set DOCINDEX_RERANK__API_KEY"),
        ("[weights]\ncharm = 1", "unknown key weights.charm"),
        ("[weights]\npath = -1", "weights.path must be a non-negative number"),
        ("[weights]\npath = nan", "weights.path must be a non-negative number"),
        ("[weights]\npath = true", "weights.path must be a non-negative number"),
        ("rerank = 'mmr'", "rerank must be a table"),
        ("home = 'nowhere'", "home: your index was not found in nowhere"),
        ("home = 3", "home: your index was not found in 3"),
        ("mode = ", "invalid TOML"),
    ],
)
def test_a_mistake_names_the_file_and_what_is_allowed(read, tmp_path, text, reason):
    with pytest.raises(SettingsError) as error:
        read(text)

    assert str(error.value).startswith(f"{tmp_path}/other.toml")
    assert reason in str(error.value)
