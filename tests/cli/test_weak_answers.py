"""A search without close matches says so in one line and still lists its results."""

import json
from pathlib import Path

import pytest

from docindex_dagster import DocindexWarning, open_index

NOTE = "nothing here is close to the query"
BY_RANK = ["hybrid", "vector", "bm25", "graph"]


@pytest.mark.parametrize("mode", BY_RANK)
def test_a_question_about_what_is_not_there_is_answered_with_a_warning(run_indexed, mode):
    shown = run_indexed("search", "how do I configure the kafka connector", "--mode", mode, "--json")
    listed = run_indexed("search", "kafka connector", "--mode", mode)

    assert shown.err.count(NOTE) == 1
    assert '"kafka"' in shown.err
    assert all(hit["is_weak"] for hit in json.loads(shown.out))
    assert mode == "bm25" or "guide.md" in listed.out


@pytest.mark.parametrize("mode", BY_RANK)
@pytest.mark.parametrize(
    "query", ["how is the pump primed", "prime_pump", "prime_pupm", "mvoes water to the tank", "litres", "guide.md"]
)
def test_what_is_there_is_answered_without_one_though_it_is_spelt_wrong(run_indexed, query, mode):
    shown = run_indexed("search", query, "--mode", mode, "--json")

    assert NOTE not in shown.err
    assert not any(hit["is_weak"] for hit in json.loads(shown.out))


@pytest.mark.parametrize("mode", ["literal", "regex"])
def test_exact_modes_say_that_nothing_matches(run_indexed, mode):
    shown = run_indexed("search", "kafka", "--mode", mode)

    assert "no matches" in shown.err
    assert NOTE not in shown.err


def test_words_count_where_the_search_looks(run):
    Path("other").mkdir()
    Path("other/bridge.md").write_text("# Bridge\n\nThe kafka connector moves records to the broker.\n")
    for name in ("manual", "other"):
        run("source", "add", name)
    run("index")

    assert NOTE not in run("search", "kafka connector records").err
    assert NOTE in run("search", "kafka connector records", "--source", "manual").err


def test_a_context_and_a_program_are_warned_as_well(run_indexed):
    assert NOTE in run_indexed("search", "zorblax quindle frobnitz", "--context", "500").err
    with pytest.warns(DocindexWarning, match=NOTE):
        hits = open_index().search("zorblax quindle frobnitz")
    assert hits
    assert all(hit.is_weak for hit in hits)
