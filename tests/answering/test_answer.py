"""Answers to questions: the order of events, and the handling of model failures."""

import asyncio
import shutil
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from docindex_dagster.answering.answer import answer
from docindex_dagster.answering.citations import State
from docindex_dagster.answering.conversation import Conversation
from docindex_dagster.answering.events import Answer, Event, Found, Spent
from docindex_dagster.answering.passages import Passages
from docindex_dagster.answering.question import Question
from docindex_dagster.core.errors import LLMBudgetError, LLMInvalidResponseError, LLMTruncatedError, QueryError
from docindex_dagster.core.settings import load_settings
from docindex_dagster.llm.chat import ChatModel, Delta, ToolCall, Usage
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.live_index import Live
from tests.answering import projects
from tests.cli.conftest import index_in
from tests.llm.chats import MODEL, OPENAI, Reply, serving

QUESTION = "How does `prime_pump` fill the pump with water?"
PIECES = ("`prime_pump` fills ", "the pump with water [1]", ", and the moon rises [7].")


@pytest.fixture(scope="module")
def indexed_once(tmp_path_factory) -> Path:
    return index_in(tmp_path_factory.mktemp("project"))


@pytest.fixture
def live(indexed_once, tmp_path) -> Live:
    """Return a copy of the project, whose files and settings a test may change."""
    shutil.copytree(indexed_once, tmp_path / "project")
    return Live(load_settings(tmp_path / "project"))


@pytest.fixture
def server():
    with serving() as found:
        yield found


def happening(live: Live, question: Question, model: ChatModel | None, conversation=None, take=None) -> list[Event]:
    """Return all events. `take` is called with each event as it arrives."""
    events: list[Event] = []

    async def collect() -> None:
        try:
            async with aclosing(answer(live, question, conversation or Conversation(), model)) as stream:
                async for event in stream:
                    (take or events.append)(event)
        finally:
            if model:
                await model.aclose()

    asyncio.run(collect())
    return events


def text_of(asked: dict[str, Any]) -> str:
    return "\n".join(message["content"] for message in asked["messages"])


def replies(*pieces: str, usage: Usage | None = None) -> Reply:
    return OPENAI.reply(*map(Delta, pieces), usage or Usage(120, 30))


def test_sources_come_first_then_the_pieces_then_the_checked_answer_and_what_it_took(live, server):
    server.replies = [replies(*PIECES)]

    found, *pieces, answered, spent = happening(live, Question(QUESTION), OPENAI.model(server))

    assert isinstance(found, Found)
    assert (found.query, found.generation, found.warnings) == (QUESTION, 1, ())
    assert {one.path for one in found.passages} == {"pump.py", "guide.md"}
    assert pieces == [Delta(piece) for piece in PIECES]
    assert isinstance(answered, Answer)
    assert (answered.text, answered.model) == ("".join(PIECES), f"openai/{MODEL}")
    assert [citation.state for citation in answered.citations] == [State.SUPPORTED, State.MISSING]
    assert answered.citations[1].passage is None
    assert not answered.is_broken | answered.is_cut | answered.is_prompt_cut
    assert isinstance(spent, Spent)
    assert (spent.prompt_tokens, spent.completion_tokens, spent.dollars) == (120, 30, None)
    assert 0 < spent.search_s <= spent.total_s
    assert 0 < spent.first_word_s <= spent.total_s


def test_the_model_reads_the_passages_and_the_question(live, server):
    server.replies = [replies(*PIECES)]
    happening(live, Question(QUESTION), OPENAI.model(server))

    asked = server.asked[0]
    assert [message["role"] for message in asked["messages"]] == ["system", "user"]
    assert "Fill the pump with water." in text_of(asked)
    assert text_of(asked).rstrip().endswith(f"Question: {QUESTION}")
    assert asked["max_tokens"] == live.settings.llm.max_answer_tokens


def test_what_is_read_meets_the_filters(live, server):
    server.replies = [replies(*PIECES)]
    question = Question(QUESTION, lambda _: Filters(languages=("markdown",)))

    found = happening(live, question, OPENAI.model(server))[0]

    assert {one.path for one in found.passages} == {"guide.md"}
    assert "def prime_pump" not in text_of(server.asked[0])


def test_a_further_question_goes_on_from_the_one_before(live, server):
    server.replies = [replies(*PIECES)]
    first = happening(live, Question(QUESTION), OPENAI.model(server))
    so_far = next(event for event in first if isinstance(event, Answer)).conversation
    going_on = happening(live, Question("And when?"), OPENAI.model(server), so_far)

    assert going_on[0].query == "And when? prime_pump"
    assert [message["role"] for message in server.asked[1]["messages"]] == ["system", "user", "assistant", "user"]
    numbers = {(one.path, one.start_line): one.number for one in first[0].passages}
    assert all(numbers.get((one.path, one.start_line), one.number) == one.number for one in going_on[0].passages)


def test_without_a_model_it_is_made_of_the_passages_and_costs_nothing(live):
    *_, answered, spent = happening(live, Question(QUESTION), None)

    assert answered.model is None
    assert answered.text.startswith("No language model is configured")
    assert {citation.state for citation in answered.citations} == {State.SUPPORTED}
    assert (spent.prompt_tokens, spent.completion_tokens) == (0, 0)


def test_an_answer_that_breaks_off_is_there_as_far_as_it_came(live, server):
    server.replies = [Reply(tuple(OPENAI.events([Delta("`prime_pump` fills it [1].")])), ends=False)]
    seen: list[Event] = []

    with pytest.raises(LLMTruncatedError):
        happening(live, Question(QUESTION), OPENAI.model(server), take=seen.append)
    assert isinstance(seen[-1], Answer)
    assert seen[-1].is_broken
    assert [citation.number for citation in seen[-1].citations] == [1]


@pytest.mark.parametrize("pieces", [(), ("", " \n")], ids=["nothing", "white space"])
def test_an_answer_of_nothing_is_an_error(live, server, pieces):
    server.replies = [replies(*pieces)]

    with pytest.raises(LLMInvalidResponseError, match="empty answer"):
        happening(live, Question(QUESTION), OPENAI.model(server))


def test_calls_of_tools_that_were_not_offered_are_no_part_of_it(live, server):
    server.replies = [OPENAI.reply(Delta("It fills."), ToolCall("1", "fetch", '{"url": "http://x"}'), Usage(1, 1))]

    answered = happening(live, Question(QUESTION), OPENAI.model(server))[-2]

    assert answered.text == "It fills."
    assert "tools" not in server.asked[0]


def test_an_answer_that_a_limit_ended_says_so(live, server):
    server.replies = [replies("It fills", usage=Usage(1, 1, is_answer_cut=True))]

    assert happening(live, Question(QUESTION), OPENAI.model(server))[-2].is_cut


def test_an_answer_without_end_is_cut(live, server):
    server.replies = [replies(*(["word " * 5000] * 10))]

    written = happening(live, Question(QUESTION), OPENAI.model(server))[-2]
    assert written.is_cut
    assert 100_000 < len(written.text) < 200_000


def test_passages_leave_room_in_a_small_window(live, server):
    (Path(live.settings.root) / "manual" / "long.md").write_text("# Pumps\n\n" + "The pump has a valve. " * 4000)
    server.replies = [replies(*PIECES)]
    model = OPENAI.model(server, context_tokens=4096)

    happening(live, Question(QUESTION), model)

    assert len(text_of(server.asked[0])) < 4096 * 4


def test_a_question_beyond_its_budget_is_not_asked(live, server):
    with (Path(live.settings.root) / "docindex.toml").open("a") as file:
        file.write("\n[llm]\nquestion_tokens = 20\n")

    with pytest.raises(LLMBudgetError):
        happening(live, Question(QUESTION), OPENAI.model(server))
    assert not server.asked


def test_the_cited_lines_of_a_file_that_changed_are_stale(live, server):
    (Path(live.settings.root) / "manual" / "pump.py").write_text("def prime_pump() -> None:\n    pass\n")
    server.replies = [replies("`prime_pump` prints `litres` [1].", "")]
    found, *_, answered, _ = happening(live, Question("`prime_pump`", lambda _: Filters(languages=("python",))), None)

    assert [one.stale for one in found.passages] == [True]
    assert [citation.stale for citation in answered.citations] == [True]


def test_a_conversation_ends_before_its_numbers_are_longer_than_marks(live, server):
    long = Conversation(passages=Passages(last=801))

    with pytest.raises(QueryError, match="start a new one"):
        happening(live, Question(QUESTION), OPENAI.model(server), long)
    assert not server.asked


def test_lines_that_only_moved_in_their_file_are_not_stale(live):
    file = Path(live.settings.root) / "manual" / "pump.py"
    file.write_text(f"import os\n\n{file.read_text()}")
    found, *_, answered, _ = happening(live, Question("`prime_pump`", lambda _: Filters(languages=("python",))), None)

    assert [one.stale for one in found.passages] == [True]
    assert [citation.stale for citation in answered.citations] == [False]


def test_commits_meet_the_filters_as_well(tmp_path):
    asked = projects.live_of(projects.make(tmp_path))

    def commits(source: str) -> tuple[str, ...]:
        return happening(asked, Question("What changed last?", lambda _: Filters(sources=(source,))), None)[0].commits

    assert len(commits("git/shop")) == 2
    assert commits("library/manual") == ()
