"""The memory API: writes and reads are limited to one domain and the domains chosen at startup."""

from datetime import UTC, datetime

import orjson
import pytest

from docindex_dagster.core.errors import (
    ChunkerError,
    DomainError,
    MessageError,
    MessageRateError,
    QueryError,
    QuotaError,
)
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import CONFIG_NAME, load_settings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.memory.fold import fold
from docindex_dagster.memory.memory import Memory
from docindex_dagster.runner.run import index
from docindex_dagster.sources import registry
from tests.memory.logs import DOMAIN
from tests.memory.talks import home_of, log_of, project, say

ACME = "project/acme"


@pytest.fixture
def talk(tmp_path):
    return project(tmp_path / "project")


@pytest.fixture
def memory(talk):
    return Memory(talk, DOMAIN)


def found(recalled) -> list[str]:
    return [each.text for each in recalled.messages]


def test_a_message_is_found_at_once_also_by_another_process(talk, memory):
    written = memory.ingest("The Circuit Breaker requires a Timeout.", session="s", role="USER")

    assert (written.chunks, written.concepts, written.is_repeat) == (1, 2, False)
    assert written.extracted == ("circuit breaker", "timeout")
    assert written.extraction == "done"
    assert written.edges >= 3
    [only] = Memory(talk, DOMAIN).recall("breaker").messages
    assert (only.text, only.role, only.session) == ("The Circuit Breaker requires a Timeout.", "user", "s")
    assert only.score == pytest.approx(sum(value for _, value in only.signals))


def test_a_blank_message_is_not_written(memory, talk):
    written = memory.ingest(" \n", session="s")

    assert (written.chunks, written.concepts, written.edges, written.message_id) == (0, 0, 0, "")
    assert not home_of(talk).home.exists()


def test_retries_count_once(memory):
    first = memory.ingest("120 passed", session="s", role="tool", tool="pytest")
    second = memory.ingest("120 passed", session="s", role="tool", tool="pytest")
    other = memory.ingest("120 passed", session="s", role="tool", tool="pytest", message_id="7")

    assert (first.message_id, first.is_repeat, second.is_repeat) == (second.message_id, False, True)
    assert other.message_id != first.message_id
    assert sorted(each.repeats for each in memory.recall("passed").messages) == [0, 1]


def test_a_recall_is_narrowed_by_session_role_and_time(memory):
    memory.ingest("the pump is blue", session="one", role="user")
    memory.ingest("the pump is green", session="two", role="assistant")
    between = datetime.now(UTC)
    memory.ingest("the pump is red", session="two", role="user")

    assert found(memory.recall("pump", sessions=["one"])) == ["the pump is blue"]
    assert found(memory.recall("pump", roles=["assistant"])) == ["the pump is green"]
    assert set(found(memory.recall("pump", as_of=between))) == {"the pump is blue", "the pump is green"}
    assert len(memory.recall("pump", top_k=2).messages) == 2


def test_a_long_message_is_found_by_each_of_its_parts(memory):
    sentences = [f"Sentence {number} says that valve {number} is part of line {number}." for number in range(200)]
    written = memory.ingest("\n".join([*sentences, "A marmot whistles."]), session="s")

    [best, *_] = memory.recall("marmot whistles").messages

    assert written.chunks > 5
    assert "marmot" in best.text
    assert best.end_line == 201


def test_a_domain_that_it_was_not_started_with_is_refused(talk, memory):
    Memory(talk, ACME).ingest("the pump of acme", session="s")

    assert found(memory.recall("pump")) == []
    with pytest.raises(DomainError, match="not readable here; the readable domains are memory/main"):
        memory.recall("pump", domains=[ACME])
    with pytest.raises(DomainError):
        memory.export(ACME)
    with pytest.raises(DomainError):
        Memory(talk, "memory/../acme")


def test_several_domains_are_read_and_one_is_written(talk):
    Memory(talk, ACME).ingest("the pump of acme", session="s")
    both = Memory(talk, DOMAIN, [ACME])
    both.ingest("the pump of ours", session="s")

    assert {each.domain for each in both.recall("pump").messages} == {DOMAIN, ACME}
    assert found(both.recall("pump", domains=[ACME])) == ["the pump of acme"]
    both.forget(everything=True)
    assert found(both.recall("pump")) == ["the pump of acme"]


def test_what_is_forgotten_is_counted_and_not_found(talk, memory):
    first = memory.ingest("the pump is blue", session="one")
    memory.ingest("the pump is green", session="one")
    memory.ingest("the pump is red", session="two")

    assert memory.forget(message=first.message_id).messages == 1
    assert memory.forget(session="one").messages == 1
    assert memory.forget(session="nobody's").messages == 0
    assert found(memory.recall("pump")) == ["the pump is red"]
    with pytest.raises(QueryError):
        memory.forget()
    with pytest.raises(QueryError):
        memory.forget(session="one", everything=True)


def test_limits_are_those_of_the_settings(tmp_path):
    memory = Memory(project(tmp_path / "project", per_second=1, message_bytes=1024), DOMAIN)
    with pytest.raises(MessageError):
        memory.ingest("x" * 1025, session="s")
    memory.ingest("first", session="s")
    with pytest.raises(MessageRateError) as refused:
        memory.ingest("second", session="s")
    assert 0 < refused.value.retry_after_s <= 1


def test_a_full_domain_takes_nothing_more(tmp_path):
    memory = Memory(project(tmp_path / "project", quota_bytes=1 << 20), DOMAIN)
    for number in range(8):
        memory.ingest(f"{number} " * 60_000, session="s")
    with pytest.raises(QuotaError):
        memory.ingest("9 " * 60_000, session="s")


def test_the_status_counts_what_is_there(talk, memory):
    memory.ingest("the pump is blue", session="one")
    fold(talk, DOMAIN)
    memory.ingest("the pump is green", session="two")

    [status] = memory.status()

    assert (status.domain, status.messages, status.sessions, status.chunks, status.tail) == (DOMAIN, 2, 2, 2, 1)
    assert (status.generation, status.is_bound, status.flaws) == (1, True, ())
    assert status.oldest_at < status.newest_at
    assert status.bytes > 0


def test_an_export_has_folded_and_new_messages_by_time(talk, memory):
    memory.ingest("first", session="s")
    fold(talk, DOMAIN)
    memory.ingest("second", session="s")

    lines = [orjson.loads(line) for line in memory.export()]

    assert [line["message"]["text"] for line in lines] == ["first", "second"]


def test_an_export_has_each_message_in_a_line_once_and_none_that_is_forgotten(memory):
    for text in ("a", "b", "a"):
        memory.ingest(text, session="s")
    memory.forget(message=memory.ingest("b", session="s").message_id)

    [line] = memory.export()

    assert line.count(b"\n") == 1
    exported = orjson.loads(line)
    assert (exported["message"]["text"], exported["repeats"]) == ("a", 1)
    assert exported["message"].keys() == {"id", "session", "role", "tool", "text", "at", "anchors"}


def test_code_is_found_when_it_is_asked_for_and_memory_never_in_code(tmp_path):
    root = tmp_path / "project"
    (root / "code").mkdir(parents=True)
    (root / "code/pump.py").write_text("def prime_pump():\n    return 1\n")
    (root / CONFIG_NAME).write_text('[[source]]\nkind = "library"\npath = "code"\n')
    settings = load_settings(root)
    [source] = registry.sources(settings).values()
    index(settings, source, StaticEmbedder())
    memory = Memory(settings, DOMAIN)
    memory.ingest("we should prime the pump", session="s")

    recalled = memory.recall("prime pump", with_code=True)

    assert found(recalled) == ["we should prime the pump"]
    assert [hit.path for hit in recalled.code] == ["pump.py"]
    assert memory.recall("prime pump").code == ()


def test_code_that_is_not_indexed_is_a_warning(memory):
    memory.ingest("the pump", session="s")

    recalled = memory.recall("pump", with_code=True)

    assert found(recalled) == ["the pump"]
    assert "nothing is indexed" in recalled.warnings[0]


def test_an_empty_query_is_refused(memory):
    with pytest.raises(QueryError):
        memory.recall("  ")


def test_who_cuts_and_who_finds_concepts_can_be_changed_while_it_runs(talk, memory):
    text = "The Circuit Breaker requires a Timeout.\n" * 100
    before = memory.ingest(text, session="s")
    config = talk.root / CONFIG_NAME
    config.write_text(f'{config.read_text()}chunker = "lines"\nconcepts = "none"\n')

    after = memory.ingest(f"{text}\nAnd so on.", session="s")

    assert before.chunks != after.chunks
    assert (before.concepts, after.concepts, after.extraction) == (2, 0, "none")
    assert len({each.chunk_id for each in memory.recall("breaker", top_k=100).messages}) == 2 * after.chunks
    fold(load_settings(talk.root), DOMAIN)
    assert memory.status()[0].chunks == 2 * after.chunks


def test_an_id_that_comes_back_with_another_text_has_that_text(talk, memory):
    memory.ingest("the pump is blue", session="s", message_id="1")
    fold(talk, DOMAIN)
    assert found(memory.recall("pump")) == ["the pump is blue"]
    memory.forget(session="s")
    memory.ingest("the valve is red", session="s", message_id="1")

    assert found(memory.recall("valve")) == ["the valve is red"]
    assert found(memory.recall("blue")) == []
    fold(talk, DOMAIN)
    assert found(Memory(talk, DOMAIN).recall("valve")) == ["the valve is red"]


def test_the_end_of_a_long_message_is_read_for_concepts_by_the_fold(talk, memory):
    text = "The valve closes at noon, and opens again in the evening.\n" * 400

    written = memory.ingest(f"{text}The Circuit Breaker requires a Timeout.", session="s")

    assert (written.concepts, written.extraction) == (0, "pending")
    assert fold(talk, DOMAIN).concepts == 2


def test_of_two_equal_messages_the_older_one_scores_less_only_where_the_settings_say_so(tmp_path):
    def scores(**memory: object) -> list[float]:
        settings = project(tmp_path / f"project{len(memory)}", **memory)
        for at, session in ((1, "old"), (400 * 86_400_000_000, "new")):
            say(log_of(settings), "the pump is blue", at, session)
        return [each.score for each in Memory(settings, DOMAIN).recall("pump").messages]

    assert len(set(scores())) == 1
    new, old = scores(decay=0.1)
    assert 0.9 * new <= old < new


def test_with_a_chunker_that_is_not_there_nothing_is_written(talk, memory):
    config = talk.root / CONFIG_NAME
    config.write_text(f'{config.read_text()}chunker = "nonesuch"\n')

    with pytest.raises(ChunkerError):
        memory.ingest("the pump is blue", session="s")

    assert log_of(talk).read().entries == ()


def test_of_code_that_cannot_be_looked_up_a_write_says_why(tmp_path):
    root = tmp_path / "project"
    (root / "code").mkdir(parents=True)
    (root / "code/pump.py").write_text("def prime_pump():\n    return 1\n")
    (root / CONFIG_NAME).write_text('[[source]]\nkind = "library"\npath = "code"\n')
    settings = load_settings(root)
    [source] = registry.sources(settings).values()
    index(settings, source, StaticEmbedder())
    for file in Layout(settings.home).tantivy.rglob("*.store"):
        file.write_bytes(b"")

    damaged = Memory(settings, DOMAIN).ingest("call `prime_pump` first", session="s")
    without = Memory(settings, DOMAIN).ingest("call it first", session="s")

    assert damaged.chunks == 1
    assert "damaged" in damaged.problem
    assert without.problem == ""


def test_another_text_under_an_id_that_is_there_is_refused(talk, memory):
    memory.ingest("first text", session="s", message_id="k1")

    with pytest.raises(MessageError, match="already used by another text"):
        memory.ingest("second text", session="s", message_id="k1")

    assert memory.ingest("first text", session="s", message_id="k1").is_repeat
    assert memory.ingest("second text", session="t", message_id="k1").chunks == 1


def test_what_fits_best_comes_first_from_whatever_domain(talk):
    other = Memory(talk, ACME)
    for number in range(3):
        other.ingest(f"lorem ipsum dolor sit amet {number}", session="s")
    both = Memory(talk, DOMAIN, [ACME])
    both.ingest("two tests failed in the payment module", session="s")
    both.ingest("payment tests", session="t")

    messages = both.recall("which tests failed in payment").messages

    assert [each.domain for each in messages[:2]] == [DOMAIN, DOMAIN]
    assert [each.score for each in messages] == sorted((each.score for each in messages), reverse=True)


def test_messages_without_a_word_of_the_query_come_with_a_warning(memory):
    memory.ingest("the pump is blue", session="s")

    assert "no message contains a word of the query" in memory.recall("xyzzy").warnings[0]
    assert memory.recall("pump").warnings == ()
