"""The command line while the index switches to another model."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from docindex_dagster.embedding.providers import shared_embedder
from docindex_dagster.embedding.static import StaticEmbedder
from tests.cli.conftest import enter, exit_code, index_in
from tests.models import TinyEmbedder, offer

HALF_WAY = f"the index is migrating from {StaticEmbedder.name} to tiny: 1 of 2 sources are done"
KEY = "library/manual"


def write(folder: Path) -> None:
    (folder / "notes").mkdir()
    (folder / "notes" / "valve.md").write_text("# Valves\n\nOpen the valve slowly.\n")


@pytest.fixture(scope="module")
def indexed_once(tmp_path_factory) -> Path:
    return index_in(tmp_path_factory.mktemp("indexed"), "notes", write=write)


@pytest.fixture
def tiny(monkeypatch):
    """Switch the settings to the tiny model."""
    shared_embedder.cache_clear()
    offer(monkeypatch, TinyEmbedder())
    yield
    shared_embedder.cache_clear()


@pytest.fixture(scope="module")
def half_once(indexed_once, tmp_path_factory) -> Path:
    folder: Path = tmp_path_factory.mktemp("half")
    shutil.copytree(indexed_once, folder, dirs_exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        enter(folder, patch)
        offer(patch, TinyEmbedder())
        patch.setattr(sys, "argv", ["docindex", "index", "notes"])
        assert exit_code() == 0
    return folder


@pytest.fixture
def half(run, half_once, tiny, tmp_path):
    """Two libraries, one of them indexed with the new model."""
    shutil.copytree(half_once, tmp_path, dirs_exist_ok=True)
    return run


def test_indexing_the_first_source_says_how_far_it_is(run_indexed, tiny):
    assert f"warning: library/notes: {HALF_WAY}" in _in_a_line(run_indexed("index", "notes").err)


def _in_a_line(text: str) -> str:
    return " ".join(text.split())


def test_a_search_answers_by_words_and_warns(half):
    found = half("search", "prime the pump")

    assert found.code == 0
    assert "pump.py" in found.out
    assert _in_a_line(found.err).count(HALF_WAY) == 1


def test_json_stays_json_and_the_warning_goes_to_standard_error(half):
    found = half("search", "prime the pump", "--json")

    assert json.loads(found.out)[0]["source"] == KEY
    assert HALF_WAY in _in_a_line(found.err)


def test_vectors_alone_are_refused_with_what_to_do(half):
    found = half("search", "prime the pump", "--mode", "vector")

    assert found.code != 0
    assert "Run `docindex index`, or search by words with mode bm25" in _in_a_line(found.err)


def test_status_says_how_far_it_is(half):
    assert f"{HALF_WAY}; waiting for {KEY}." in _in_a_line(half("status").out)

    rows = {row["source"]: (row["goes_over_to"], row["is_done"]) for row in json.loads(half("status", "--json").out)}
    assert rows == {KEY: ("tiny", False), "library/notes": ("tiny", True)}


def test_indexing_the_rest_takes_over_and_a_rollback_says_what_it_means(half):
    assert "searches now use them" in _in_a_line(half("index").err)
    found = half("search", "prime the pump", "--mode", "vector")
    assert (found.code, found.err) == (0, "")
    assert half("doctor").out.startswith("the index is consistent")

    back = half("rollback")

    assert back.code == 0
    assert f"its vectors come from {StaticEmbedder.name}, but tiny is configured" in _in_a_line(back.err)


def test_removing_the_source_that_is_missing_takes_over(half):
    assert half("source", "remove", KEY).code == 0

    assert {row["goes_over_to"] for row in json.loads(half("status", "--json").out)} == {None}
    assert half("search", "valve", "--mode", "vector").code == 0


def test_a_repair_of_what_the_old_model_made_takes_over(half, tmp_path):
    (folder,) = (path for path in (tmp_path / ".docindex" / "stores" / "lance").iterdir() if "tiny" not in path.name)
    for file in (folder / "data").iterdir():
        file.write_bytes(b"damaged")

    repaired = half("doctor", "--repair")

    assert repaired.code == 0
    assert "the index is consistent" in repaired.out
    assert half("search", "valve", "--mode", "vector").err == ""


def test_prune_keeps_both_indexes(half):
    assert half("prune", "--previous").code == 0

    assert half("doctor").out.startswith("the index is consistent")
    assert half("index").code == 0
    assert half("search", "valve", "--mode", "vector").code == 0
