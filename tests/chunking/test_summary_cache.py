"""Cached summaries: a kill loses nothing, and old summaries are evicted when the cache grows large."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from docindex_dagster.chunking import summaries
from docindex_dagster.chunking.summaries import SummaryCache

KEY = "git/repo"
keys = st.text(alphabet="abc", min_size=1, max_size=2)


def add(cache: SummaryCache, *rows: tuple[str, str | None]) -> None:
    with cache.adding() as write:
        for row in rows:
            write(*row)


def test_what_was_kept_is_found_and_what_was_asked_failed_keys_is_reported(layout):
    cache = SummaryCache(layout, KEY)
    add(cache, ("a", "One."), ("b", None))
    add(cache, ("c", None), ("c", "Three."), ("a", "Another one."))

    found = cache.find({"a", "b", "c", "d"})

    assert found.summaries == {"a": "Another one.", "c": "Three."}
    assert "b" in found.failed_keys
    assert "d" not in found.failed_keys


def test_other_branches_are_looked_at_and_other_repositories_are_not(layout):
    add(SummaryCache(layout, "git/repo@dev"), ("a", "Of a branch."))
    add(SummaryCache(layout, "git/repository"), ("b", "Of another."))

    assert SummaryCache(layout, KEY).find({"a", "b"}).summaries == {"a": "Of a branch."}
    assert SummaryCache(layout, "git/repo@x").find({"a", "b"}).summaries == {"a": "Of a branch."}


def test_its_own_come_before_those_of_branches(layout):
    add(SummaryCache(layout, "git/repo@dev"), ("a", "Of a branch."))
    add(SummaryCache(layout, KEY), ("a", "Its own."))

    assert SummaryCache(layout, KEY).find({"a"}).summaries == {"a": "Its own."}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(cut=st.integers(0, 60), noise=st.binary(max_size=30))
def test_a_line_that_was_torn_or_damaged_costs_itself_alone(layout, cut, noise):
    cache = SummaryCache(layout, KEY)
    file = layout.summaries(KEY)
    file.unlink(missing_ok=True)
    add(cache, ("first", "One."), ("second", "Two."))
    whole = file.read_bytes()
    file.write_bytes(whole[: max(len(whole) - cut, whole.index(b"\n") + 1)] + b"\n" + noise)
    add(cache, ("third", "Three."))

    found = cache.find({"first", "second", "third"}).summaries

    assert found["first"] == "One."
    assert found["third"] == "Three."
    assert found.get("second", "Two.") == "Two."


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(rows=st.lists(st.tuples(keys, st.none() | st.sampled_from(["One.", "Two."])), max_size=40), needed=st.sets(keys))
def test_tidying_loses_nothing_that_is_needed_and_stays_small(layout, rows, needed):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(summaries, "_MAX_LINES", 3)
        cache = SummaryCache(layout, KEY)
        layout.summaries(KEY).unlink(missing_ok=True)
        add(cache, *rows)
        before = cache.find(needed)
        cache.tidy(needed)
        after = cache.find(needed)

    assert after.summaries == before.summaries
    lines = [line for line in layout.summaries(KEY).read_bytes().splitlines() if line]
    assert len(lines) <= 2 * max(3, 3 * len(needed))


def test_the_newest_stay(layout, monkeypatch):
    monkeypatch.setattr(summaries, "_MAX_LINES", 3)
    cache = SummaryCache(layout, KEY)
    add(cache, *((str(at), "A summary.") for at in range(10)))
    cache.tidy({"0"})

    assert cache.find({str(at) for at in range(10)}).summaries.keys() == {"0", "7", "8", "9"}
