"""Status of sources: the most important condition of each source, with the most urgent sources first."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings, load_settings
from docindex_dagster.sources import removed_sources
from docindex_dagster.status import source_status
from docindex_dagster.status.catalog import CatalogEntry
from docindex_dagster.status.source_status import Runs, SourceState, State

NOW = 1_800_000_000.0
HOUR = 3600.0
GOOD = Runs("succeeded", "run", NOW - HOUR)
FAILED = Runs("failed", "run", NOW - HOUR, "run", "no space left")


def entry(key: str, **values: Any) -> CatalogEntry:
    return replace(CatalogEntry(key, 100, 1, 1, 0, 0, {}, "v", None, "2026-11-21T03:04:05+00:00", 0), **values)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Declare the sources `a` and `b`, whose folders exist, and `gone`, whose folder does not."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    tables = [f'[[source]]\nkind = "library"\npath = "{name}"\n' for name in ("a", "b", "gone")]
    (tmp_path / "docindex.toml").write_text("".join(tables) + "[schedule]\nmax_age_hours = 26\n")
    return load_settings(tmp_path)


def one(settings: Settings, key: str, *, indexed: bool = True, runs: Runs | None = GOOD) -> SourceState:
    entries, known = [entry(key)] if indexed else [], {key: runs} if runs else {}
    return {found.source: found for found in source_status.states_of_all(settings, entries, known, NOW)}[key]


def test_a_source_that_was_checked_is_well(settings):
    found = one(settings, "library/a")

    assert (found.state, found.problem, found.needs_attention) == ("ok", None, False)


def test_a_failure_counts_until_a_run_ends_well_and_brings_its_reason(settings):
    again = Runs("running", "next", NOW - HOUR, "run", "no space left")

    assert one(settings, "library/a", runs=FAILED).state == "failed"
    assert one(settings, "library/a", runs=again).problem == "no space left"


def test_a_missing_folder_is_more_telling_than_the_failure_that_it_causes(settings):
    found = one(settings, "library/gone", runs=FAILED)

    assert found.state == "missing"
    assert str(settings.root / "gone") in found.problem
    assert "its index is kept" in found.problem


@pytest.mark.parametrize(("hours", "state"), [(25.9, "ok"), (26.1, "not checked lately")])
def test_a_check_grows_old(settings, hours, state):
    assert one(settings, "library/a", runs=Runs("succeeded", "run", NOW - hours * HOUR)).state == state


def test_a_failed_source_whose_last_check_is_old_is_overdue_as_well(settings):
    old = Runs("failed", "run", NOW - 30 * HOUR, "run", "no space left")

    assert (one(settings, "library/a", runs=old).state, one(settings, "library/a", runs=old).is_overdue) == (
        "failed",
        True,
    )
    assert not one(settings, "library/a", runs=FAILED).is_overdue
    assert not one(settings, "library/old", runs=old).is_overdue  # the source is not declared


def test_a_source_without_any_known_check_is_reported_unless_its_run_is_coming(settings):
    assert one(settings, "library/a", runs=None).state == "not checked lately"
    assert one(settings, "library/a", runs=Runs("queued", "run")).state == "ok"


@pytest.mark.parametrize(
    ("runs", "state", "urgent"),
    [(None, "not indexed", True), (Runs("queued", "run"), "waiting for its first run", False)],
)
def test_a_source_that_is_not_indexed_yet_needs_attention_if_nothing_is_about_to_happen(settings, runs, state, urgent):
    found = one(settings, "library/a", indexed=False, runs=runs)

    assert (found.state, found.needs_attention) == (state, urgent)


def test_what_is_indexed_but_no_longer_declared_says_how_to_remove_it(settings):
    found = one(settings, "library/old")

    assert found.state == "no longer declared"
    assert "docindex source remove library/old" in found.problem


@pytest.mark.parametrize(
    ("worse", "state", "problem"),
    [
        ({"fallbacks": 2}, "ok", None),
        ({"fallbacks": 3}, "degraded", "3 of 100 files are cut as text"),
        ({"lacks_of_graph": True}, "degraded", "its graph is incomplete"),
    ],
)
def test_an_index_that_is_worse_than_it_could_be_is_degraded(settings, worse, state, problem):
    (found,) = (
        one
        for one in source_status.states_of_all(settings, [entry("library/a", **worse)], {"library/a": GOOD}, NOW)
        if one.entry
    )

    assert (found.state, found.needs_attention) == (state, state == "degraded")
    assert found.problem is problem or problem in found.problem


def test_a_failure_is_more_telling_than_a_degraded_index(settings):
    found = source_status.states_of_all(settings, [entry("library/a", fallbacks=50)], {"library/a": FAILED}, NOW)

    assert next(one.state for one in found if one.source == "library/a") == "failed"


def test_without_a_record_of_runs_nothing_is_reported_of_them(settings):
    found = source_status.states_of_all(settings, [entry("library/a")], None, NOW)

    assert {one.source: one.state for one in found} == {
        "library/a": "ok",
        "library/b": "not indexed",
        "library/gone": "missing",
    }


def test_the_documentation_lists_every_state_and_whether_it_needs_attention():
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "fix-failures.md").read_text()
    listed = re.findall(r"^\| `([^`]+)` \| .+ \| (yes|no) \|$", page, re.MULTILINE)

    assert {state: attention == "yes" for state, attention in listed} == {
        state: SourceState("library/a", None, Runs(), state).needs_attention for state in State
    }


def test_a_source_that_was_taken_out_on_purpose_is_left_in_peace(settings):
    removed_sources.record_removal(Layout(settings.home), "library/a")

    found = one(settings, "library/a", indexed=False, runs=None)

    assert (found.state, found.needs_attention) == ("taken out", False)


def test_the_most_urgent_comes_first(settings):
    entries = [entry(key) for key in ("library/a", "library/b", "library/gone", "library/old")]
    runs = {"library/a": GOOD, "library/b": FAILED, "library/gone": GOOD, "library/old": GOOD}

    found = source_status.states_of_all(settings, entries, runs, NOW)

    assert [one.source for one in found] == ["library/b", "library/gone", "library/old", "library/a"]


def test_the_oldest_check_is_that_of_a_source_that_can_be_checked(settings):
    entries = [entry(key) for key in ("library/a", "library/b", "library/old")]
    runs = {
        "library/a": GOOD,
        "library/b": Runs("succeeded", "run", NOW - 5 * HOUR),
        "library/old": Runs("succeeded", "run", NOW - 900 * HOUR),
    }

    assert source_status.oldest_check_hours(source_status.states_of_all(settings, entries, runs, NOW), NOW) == 5
    assert source_status.oldest_check_hours([], NOW) == 0
