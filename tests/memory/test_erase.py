"""Forgotten text is in no file of the domain's home: not as bytes, in a table, or in an old table version."""

import orjson
import pytest

from docindex_dagster.core.errors import ErasureError, FullDiskError
from docindex_dagster.core.hashing import digest
from docindex_dagster.core.settings import CONFIG_NAME, load_settings
from docindex_dagster.memory.fold import fold, why_due
from docindex_dagster.memory.message import compose
from docindex_dagster.stores import prune
from tests.memory.logs import DOMAIN
from tests.memory.talks import home_of, log_of, overlay_of, project, say, traces_of

SECRETS = ("the launch code is 4711-Quetzal", "Quetzal is a Heron of the Night")


@pytest.fixture
def talk(tmp_path):
    """A domain with a session to forget: part of it was folded twice, and part is still in the log."""
    settings = project(tmp_path / "project")
    log = log_of(settings)
    say(log, "a marmot whistles", 1, "stays")
    say(log, SECRETS[0], 2, "goes")
    log.close()
    fold(settings, DOMAIN)
    say(log, "an eagle circles", 3, "stays")
    fold(settings, DOMAIN)
    say(log, SECRETS[1], 4, "goes")
    return settings


def texts(settings) -> list[str]:
    return [each.message.text for each in overlay_of(settings).messages]


def test_it_is_hidden_at_once_and_its_bytes_go_with_the_fold(talk):
    assert traces_of(home_of(talk), SECRETS)

    log_of(talk).forget("session", "goes")

    assert texts(talk) == ["a marmot whistles", "an eagle circles"]
    folded = fold(talk, DOMAIN)
    assert traces_of(home_of(talk), [*SECRETS, "Quetzal", "quetzal"]) == []
    assert texts(talk) == ["a marmot whistles", "an eagle circles"]
    assert folded.receipt is not None
    assert len(folded.receipt.forgotten) == 2
    assert why_due(talk, DOMAIN, now=lambda: 0.0) is None


def test_the_receipt_names_messages_by_hashes_and_is_written_down(talk):
    forgotten = say(log_of(talk), "one more", 5, "goes")
    log_of(talk).forget("message", forgotten)

    receipt = fold(talk, DOMAIN).receipt

    assert receipt.forgotten == (digest(forgotten.encode()),)
    assert receipt.files > 0
    [line] = home_of(talk).receipts.read_bytes().splitlines()
    assert orjson.loads(line)["forgotten"] == [digest(forgotten.encode())]


def test_a_whole_domain_can_be_forgotten_and_written_again(talk):
    log_of(talk).forget("domain")

    fold(talk, DOMAIN)

    assert texts(talk) == []
    assert traces_of(home_of(talk), [*SECRETS, "marmot", "eagle"]) == []
    say(log_of(talk), "a new beginning", 9)
    assert texts(talk) == ["a new beginning"]


def test_what_is_said_after_it_was_forgotten_stays(talk):
    log = log_of(talk)
    log.forget("session", "goes")
    say(log, SECRETS[0], 9, "goes")

    fold(talk, DOMAIN)

    assert texts(talk) == ["a marmot whistles", "an eagle circles", SECRETS[0]]


@pytest.mark.parametrize(
    "step", ["docindex_dagster.stores.prune.erase_stores", "docindex_dagster.memory.log.Log.remove"]
)
def test_an_erasure_that_was_stopped_is_ended_by_the_next_fold(talk, monkeypatch, step):
    def stop(*_: object, **__: object) -> None:
        raise FullDiskError("it is full")

    log_of(talk).forget("session", "goes")
    with monkeypatch.context() as patch:
        patch.setattr(step, stop)
        with pytest.raises(FullDiskError):
            fold(talk, DOMAIN)
    assert texts(talk) == ["a marmot whistles", "an eagle circles"]
    assert why_due(talk, DOMAIN, now=lambda: 0.0) == "an erasure is pending"

    receipt = fold(talk, DOMAIN).receipt

    assert len(receipt.forgotten) == 2
    assert traces_of(home_of(talk), SECRETS) == []


def test_other_domains_are_not_touched(talk):
    other = log_of(talk, "project/acme")
    say(other, SECRETS[0], 1, "goes")
    log_of(talk).forget("session", "goes")

    fold(talk, DOMAIN)

    assert [each.message.text for each in overlay_of(talk, "project/acme").messages] == [SECRETS[0]]


@pytest.mark.parametrize("change", ['[memory]\nconcepts = "none"\n', "[graph]\nenabled = false\n"])
def test_concepts_go_also_where_none_are_looked_for_any_more(talk, change):
    (talk.root / CONFIG_NAME).write_text(change)
    settings = load_settings(talk.root)
    log_of(settings).forget("session", "goes")

    fold(settings, DOMAIN)

    assert traces_of(home_of(settings), ["quetzal", "Quetzal", "heron"]) == []


def test_what_is_written_again_while_it_is_erased_stays_and_ends_no_erasure(talk, monkeypatch):
    log_of(talk).forget("session", "goes")
    erased = prune.erase_stores

    def write_and_erase(home) -> None:
        say(log_of(talk), SECRETS[0], 9, "goes")
        erased(home)

    monkeypatch.setattr("docindex_dagster.stores.prune.erase_stores", write_and_erase)
    first = fold(talk, DOMAIN)
    monkeypatch.undo()
    second = fold(talk, DOMAIN)

    assert len(first.receipt.forgotten) == 1
    assert second.receipt is None
    assert texts(talk) == ["a marmot whistles", "an eagle circles", SECRETS[0]]


def test_an_older_version_that_still_writes_keeps_an_erasure_unfinished(talk, monkeypatch):
    log = log_of(talk)
    log.forget("session", "goes")
    erased = prune.erase_stores

    def write_and_erase(home) -> None:
        say(log, "whatever the cut sealed", 9)
        erased(home)

    with monkeypatch.context() as patch:
        patch.setattr("docindex_dagster.memory.log.Segment.is_open", lambda _: True)
        patch.setattr("docindex_dagster.stores.prune.erase_stores", write_and_erase)
        with pytest.raises(ErasureError, match="older docindex process still writes"):
            fold(talk, DOMAIN)

    assert len(fold(talk, DOMAIN).receipt.forgotten) == 2
    assert traces_of(home_of(talk), SECRETS) == []
    assert texts(talk) == ["a marmot whistles", "an eagle circles", "whatever the cut sealed"]


def test_an_erasure_that_was_stopped_leaves_what_was_written_again(talk, monkeypatch):
    def stop(*_: object) -> None:
        raise FullDiskError("it is full")

    log_of(talk).forget("session", "goes")
    with monkeypatch.context() as patch:
        patch.setattr("docindex_dagster.stores.prune.erase_stores", stop)
        with pytest.raises(FullDiskError):
            fold(talk, DOMAIN)
    say(log_of(talk), SECRETS[0], 9, "goes")

    receipt = fold(talk, DOMAIN).receipt

    assert len(receipt.forgotten) == 1
    assert why_due(talk, DOMAIN, now=lambda: 0.0) is None


def test_of_an_id_that_came_back_the_old_text_is_erased(talk):
    log = log_of(talk)
    first = compose(DOMAIN, "named", "the old Kestrel text", message_id="1")
    log.append([first])
    fold(talk, DOMAIN)
    log.forget("message", first.id)
    log.append([compose(DOMAIN, "named", "the new text", message_id="1")])

    fold(talk, DOMAIN)

    assert traces_of(home_of(talk), ["Kestrel", "kestrel"]) == []
    assert "the new text" in texts(talk)


def test_what_is_too_old_is_erased_by_the_next_fold_which_is_due_for_it(tmp_path):
    settings = project(tmp_path / "project")
    say(log_of(settings), SECRETS[0], 1)
    fold(settings, DOMAIN)
    (settings.root / CONFIG_NAME).write_text("[memory]\nretention_days = 1\n")
    settings = load_settings(settings.root)
    assert why_due(settings, DOMAIN) == "messages are older than memory.retention_days"

    receipt = fold(settings, DOMAIN).receipt

    assert len(receipt.forgotten) == 1
    assert traces_of(home_of(settings), [*SECRETS, "Quetzal"]) == []
    assert why_due(settings, DOMAIN) is None


def id_of_secret(settings) -> str:
    [found] = [each.message.id for each in overlay_of(settings).messages if each.message.text == SECRETS[0]]
    return found


@pytest.mark.parametrize("of_secret", [id_of_secret, lambda _: SECRETS[0], lambda _: SECRETS[1][:16]])
def test_where_something_is_left_there_is_no_receipt(talk, of_secret):
    stray = home_of(talk).home / "copy.txt"
    stray.write_text(f"by hand: {of_secret(talk)}")
    log_of(talk).forget("session", "goes")

    for _ in range(2):  # a second fold still looks for the text
        with pytest.raises(ErasureError, match=r"copy\.txt still contains"):
            fold(talk, DOMAIN)
    assert not home_of(talk).receipts.exists()
    stray.unlink()
    assert len(fold(talk, DOMAIN).receipt.forgotten) == 2
