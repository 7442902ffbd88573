"""Folding at any moment equals never folding, a rollback loses nothing, and a second fold does nothing."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docindex_dagster.core.errors import DamagedStoreError
from docindex_dagster.memory.fold import fold, why_due
from docindex_dagster.memory.message_index import Overlay
from docindex_dagster.stores import maintenance
from docindex_dagster.stores.doctor import check, roll_back
from docindex_dagster.stores.generation import read_generation
from tests.memory.logs import DOMAIN, message
from tests.memory.talks import edges_of, home_of, log_of, overlay_of, project, published_edges, say, view_of

TEXTS = (
    "The Circuit Breaker requires a Timeout.",
    "The pump is a machine that moves water. Prime it before the first use.",
    "Marmots whistle when an eagle circles above the ridge.",
    "`prime_pump` is a function in pump.py. The Scheduler uses the Cache.",
    "   ",
)
QUERIES = ("circuit breaker timeout", "who moves water", "eagle whistle")
SESSIONS = ("one", "two")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.sampled_from(TEXTS), st.sampled_from(SESSIONS)),
        st.tuples(st.just("forget"), st.sampled_from(("message", "session")), st.integers(0, 3)),
        st.just(("fold",)),
        st.just(("roll back",)),
        st.just(("restart",)),
    ),
    min_size=4,
    max_size=12,
)


@settings(max_examples=8)
@given(steps=STEPS)
def test_folding_at_any_moment_equals_never_folding(tmp_path_factory, steps):
    root = tmp_path_factory.mktemp("domains")
    folding, never = project(root / "folding"), project(root / "never")
    logs = [log_of(folding), log_of(never)]
    views = [view_of(folding), view_of(never)]
    ids: list[str] = []
    for at, (step, *arguments) in enumerate([("say", TEXTS[0], "one"), *steps, ("fold",)], start=1):
        if step == "say":
            text, session = arguments
            for log in logs:
                written = say(log, text, at, session)
            ids.append(written)
        elif step == "forget":
            what, number = arguments
            value = ids[number % len(ids)] if what == "message" else SESSIONS[number % 2]
            for log in logs:
                log.forget(what, value)
        elif step == "fold":
            fold(folding, DOMAIN)
        elif step == "restart":
            views[0] = view_of(folding)
        elif _has_previous(folding):
            roll_back(home_of(folding))
        assert views[0].seen(QUERIES) == views[1].seen(QUERIES)
    assert published_edges(folding) == edges_of(never)
    assert view_of(folding).seen(QUERIES) == views[1].seen(QUERIES)


def _has_previous(settings) -> bool:
    return bool(home_of(settings).all_previous)


@pytest.fixture
def talk(tmp_path):
    return project(tmp_path / "project")


def test_a_message_is_in_the_generation_or_in_the_tail(talk):
    log = log_of(talk)
    say(log, TEXTS[0], 1)
    fold(talk, DOMAIN)
    say(log, TEXTS[1], 2)

    overlay = overlay_of(talk)

    assert [each.message.text for each in overlay.folded.messages] == [TEXTS[0]]
    assert [entry.record.text for entry in overlay.tail] == [TEXTS[1]]


def test_what_came_again_after_a_fold_counts_once(talk):
    log = log_of(talk)
    say(log, TEXTS[0], 1)
    fold(talk, DOMAIN)
    say(log, TEXTS[0], 2)
    say(log, TEXTS[0], 3)

    before = overlay_of(talk).messages
    fold(talk, DOMAIN)

    assert [(each.message.at, each.repeats) for each in before] == [(1, 2)]
    assert [(each.message.at, each.repeats) for each in overlay_of(talk).messages] == [(1, 2)]


def test_a_fold_with_nothing_new_publishes_nothing(talk):
    say(log_of(talk), TEXTS[0], 1)
    first = fold(talk, DOMAIN)

    second = fold(talk, DOMAIN)

    assert (first.added, second.added) == (1, 0)
    assert second.generation == first.generation == 1
    assert (second.chunks, second.concepts, second.edges) == (first.chunks, first.concepts, first.edges)


def test_the_stores_of_a_domain_are_maintained_by_its_folds(talk, monkeypatch):
    monkeypatch.setattr(maintenance, "_MAX_VERSIONS", 1)
    say(log_of(talk), TEXTS[0], 1)
    assert fold(talk, DOMAIN).generation == 1

    generation = read_generation(home_of(talk))
    assert generation is not None
    assert generation.optimized_version == generation.table_version
    check(home_of(talk), generation)


def test_segments_stay_as_long_as_one_can_go_back_to_before_them(talk):
    log = log_of(talk)
    for at, text in enumerate(TEXTS[:3], start=1):
        say(log, text, at)
        log.close()
        fold(talk, DOMAIN)

    assert [entry.record.text for entry in log_of(talk).read().entries] == [TEXTS[2]]
    roll_back(home_of(talk))
    assert [each.message.text for each in overlay_of(talk).messages] == [*TEXTS[:3]]


def test_an_overlay_that_is_open_sees_what_another_process_folded_and_wrote(talk):
    mine: Overlay = overlay_of(talk)
    log = log_of(talk)
    for at in range(1, 6):
        say(log, f"turn {at} of the pump", at)
        log.close()
        fold(talk, DOMAIN)
        mine.refresh()
        assert len(mine.messages) == at
    say(log, "before an erasure", 7)
    mine.refresh()
    fold(talk, DOMAIN, erase=True)
    say(log, "after an erasure", 9)

    mine.refresh()

    assert [(each.message.at, each.repeats) for each in mine.messages] == [(at, 0) for at in (1, 2, 3, 4, 5, 7, 9)]


def test_a_domain_is_due_by_number_by_age_and_when_something_is_to_be_erased(tmp_path):
    talk = project(tmp_path / "project", fold_messages=3)
    log = log_of(talk)
    minute = 60_000_000
    assert why_due(talk, DOMAIN) is None
    say(log, TEXTS[0], minute)
    assert why_due(talk, DOMAIN, now=lambda: 60.0 + 9 * 60) is None
    assert why_due(talk, DOMAIN, now=lambda: 60.0 + 11 * 60) == "the oldest of 1 unfolded messages is 11 minutes old"
    say(log, TEXTS[1], minute)
    say(log, TEXTS[2], minute)
    assert why_due(talk, DOMAIN, now=lambda: 60.0) == "3 unfolded messages"
    fold(talk, DOMAIN)
    assert why_due(talk, DOMAIN, now=lambda: 1e9) is None
    log.forget("session", "s")
    assert why_due(talk, DOMAIN, now=lambda: 60.0) == "an erasure is pending"


def test_messages_that_are_too_old_are_not_found_and_go_with_a_fold(tmp_path):
    talk = project(tmp_path / "project", retention_days=1)
    log = log_of(talk)
    say(log, "very old", 1)
    log.append([message("new")])

    before = [each.message.text for each in overlay_of(talk).messages]
    folded = fold(talk, DOMAIN)

    assert before == ["new"]
    assert folded.messages == 1
    assert len(list(home_of(talk).messages.iterdir())) == 1


def test_messages_whose_file_is_gone_are_reported_as_damage(talk):
    say(log_of(talk), TEXTS[0], 1)
    fold(talk, DOMAIN)
    for file in home_of(talk).messages.iterdir():
        file.unlink()

    with pytest.raises(DamagedStoreError, match="the messages of memory/main: "):
        overlay_of(talk)


def test_spacy_that_is_not_there_is_replaced_by_patterns_and_named(tmp_path):
    talk = project(tmp_path / "project", concepts="spacy")
    say(log_of(talk), TEXTS[0], 1)

    folded = fold(talk, DOMAIN)

    if folded.warnings:  # without the extra
        assert "falling back to patterns" in folded.warnings[0]
    assert folded.concepts == 2


def test_damage_of_the_messages_that_one_could_go_back_to_stops_no_fold(talk):
    log = log_of(talk)
    say(log, TEXTS[0], 1)
    fold(talk, DOMAIN)
    [before] = home_of(talk).messages.iterdir()
    say(log, TEXTS[1], 2)
    fold(talk, DOMAIN)
    before.write_bytes(b"nonsense")
    say(log, TEXTS[2], 3)

    assert fold(talk, DOMAIN).added == 1
