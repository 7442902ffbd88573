"""`docindex ask`: answers from a scripted local model, and without a model."""

import io
import json
import threading
import time
from pathlib import Path

import pytest

from docindex_dagster.llm.chat import Delta, ToolCall, Usage
from docindex_dagster.llm.http import HttpChat
from tests.llm.chats import ALL, MODEL, OPENAI, ChatServer, Protocol, Reply, serving
from tests.llm.server import KEY, unused_url
from tests.terminals import Terminal

ANSWER = (Delta("`prime_pump` fills the pump "), Delta("with water [1], or [9]."), Usage(120, 30))
SHOWN = "`prime_pump` fills the pump with water [1], or [9 missing]."


@pytest.fixture
def server():
    with serving() as found:
        found.replies = [OPENAI.reply(*ANSWER)]
        yield found


def set_model(monkeypatch, server: ChatServer | str, protocol: Protocol = OPENAI, **options: str) -> None:
    address = server if isinstance(server, str) else server.address + protocol.prefix
    values = {"PROVIDER": protocol.provider, "MODEL": MODEL, "BASE_URL": address, "API_KEY": KEY, "RETRIES": "0"}
    for name, value in {**values, **options}.items():
        monkeypatch.setenv(f"DOCINDEX_LLM__{name}", value)


@pytest.fixture
def ask(run_indexed, monkeypatch, server):
    """Run `docindex ask ARGUMENTS` with a model that answers `ANSWER`."""
    set_model(monkeypatch, server)
    return lambda *arguments: run_indexed("ask", *arguments)


@ALL
def test_every_provider_answers(run_indexed, monkeypatch, server, protocol):
    set_model(monkeypatch, server, protocol)
    server.replies = [protocol.reply(*ANSWER)]

    answer = run_indexed("ask", "how does prime_pump work?")

    assert answer.code == 0
    assert answer.out.startswith(f"{SHOWN}\n")
    assert "how does prime_pump work?" in json.dumps(server.asked)


def test_below_the_answer_are_its_sources_with_what_their_checks_say(ask):
    answer = ask("how does prime_pump work?", "--language", "python")

    text, sources = answer.out.split("\n\n")
    assert text == SHOWN
    assert sources.splitlines() == [
        "  1 ✓ manual/pump.py:1-3  prime_pump",
        "  9 ✗ passage 9 does not exist",
        "      “`prime_pump` fills the pump with water , or”",
    ]
    assert "120 + 30 tokens; search " in answer.err


def test_lines_that_changed_since_are_marked(ask):
    Path("manual/pump.py").write_text("def prime_pump(): ...\n")

    assert "manual/pump.py:1-3  prime_pump  changed since it was indexed" in ask("prime_pump", "-l", "python").out


def test_json_has_all_of_it(ask):
    found = json.loads(ask("how does prime_pump work?", "--json").out)

    assert found["answer"] == "`prime_pump` fills the pump with water [1], or [9]."
    assert [(one["number"], one["state"]) for one in found["citations"]] == [(1, "supported"), (9, "missing")]
    assert found["answer"][found["citations"][0]["start"] : found["citations"][0]["end"]] == "[1]"
    assert found["citations"][0]["chunk_ids"] == found["passages"][0]["chunk_ids"]
    assert found["citations"][1]["path"] is None
    assert {one["number"] for one in found["passages"]} == {1, 2}
    assert found["model"] == f"openai/{MODEL}"
    assert found["usage"]["prompt_tokens"] == 120


def test_passages_are_within_filters_and_tokens(ask, server):
    ask("how does prime_pump work?", "--type", "doc", "--tokens", "300")

    assert "guide.md" in json.dumps(server.asked)
    assert "pump.py" not in json.dumps(server.asked)


def test_a_folder_that_no_project_has_is_asked_about_too(ask, server, tmp_path):
    other = tmp_path.parent / f"{tmp_path.name}-other"
    other.mkdir()
    (other / "valves.md").write_text("# Valves\n\nA valve lets water pass in one direction.\n")

    assert ask("what does a valve do?", str(other)).code == 0
    assert "A valve lets water pass" in json.dumps(server.asked)


@pytest.mark.parametrize("options", [[], ["--no-llm"]], ids=["none is set", "none is wanted"])
def test_without_a_model_the_best_passages_are_shown(run_indexed, monkeypatch, server, options):
    if options:
        set_model(monkeypatch, server)

    answer = run_indexed("ask", "how does prime_pump work?", *options)

    assert answer.code == 0
    assert "def prime_pump(litres: int)" in answer.out
    assert "✓ manual/pump.py:1-3  prime_pump" in answer.out
    assert ('provider = "ollama"' in answer.out) is not bool(options)
    assert not server.asked


def test_the_model_is_loaded_while_the_search_is_under_way(ask, monkeypatch):
    threads, load = [], HttpChat.prepare

    def noted(model: HttpChat) -> None:
        threads.append(threading.current_thread())
        load(model)

    monkeypatch.setattr(HttpChat, "prepare", noted)
    ask("how does prime_pump work?")

    assert threads[0] is not threading.main_thread()


def test_the_question_may_come_from_standard_input(ask, monkeypatch, server, tmp_path):
    file = tmp_path / "question.txt"
    file.write_text("how does prime_pump work?\n")
    with file.open() as standard_input:
        monkeypatch.setattr("sys.stdin", standard_input)
        assert ask("-").code == 0
    assert "Question: how does prime_pump work?" in server.asked[0]["messages"][-1]["content"]


def test_no_question_is_a_mistake(ask, server):
    answer = ask()

    assert answer.code == 2
    assert "enter a question, or pass --chat" in answer.err
    assert not server.asked


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (Reply(status=401), "rejected the key in DOCINDEX_LLM__API_KEY"),
        (Reply(status=429), "rate limit reached, or quota used up"),
        (Reply(status=500), "answered 500: the server failed"),
        (Reply((b"data: x\n\n",), headers={"Content-Type": "text/event-stream"}), "invalid completion"),
        (OPENAI.reply(Usage(1, 0)), "the model returned an empty answer"),
    ],
    ids=["key", "limit", "failure", "nonsense", "nothing"],
)
def test_a_model_that_fails_is_an_error_that_says_what_to_do(ask, server, reply, message):
    server.replies = [reply]

    answer = ask("how does prime_pump work?")

    assert answer.code == 1
    assert message in answer.err
    assert "use --no-llm for the best passages" in answer.err
    assert KEY not in answer.out + answer.err


def test_of_an_answer_that_broke_off_what_came_is_shown(ask, server):
    server.replies = [Reply(tuple(OPENAI.events(ANSWER[:2])), ends=False)]

    answer = ask("how does prime_pump work?")

    assert answer.code == 1
    assert answer.out.startswith(SHOWN)
    assert "broke off" in answer.err


def test_an_answer_that_a_limit_ended_says_so(ask, server):
    server.replies = [OPENAI.reply(Delta("It fills"), Usage(1, 1, is_answer_cut=True))]

    assert "reached its token limit (llm.max_answer_tokens)" in ask("how does it work?").err


def test_what_would_steer_a_terminal_is_shown_as_what_it_is(ask, server):
    server.replies = [OPENAI.reply(Delta("\x1b]0;owned\x07 [1]"), Usage(1, 1))]

    assert "\x1b" not in ask("how does it work?").out


@ALL
def test_check_says_whether_the_model_can_be_asked(run_indexed, monkeypatch, server, protocol):
    set_model(monkeypatch, server, protocol)

    answer = run_indexed("ask", "--check")

    assert answer.code == 0
    assert "reachable   yes\n" in answer.out
    assert "logged in   yes\n" in answer.out
    assert protocol.path not in server.paths


def test_check_of_one_that_cannot_be_asked_fails(run_indexed, monkeypatch):
    set_model(monkeypatch, unused_url())

    answer = run_indexed("ask", "--check", "--json")

    assert answer.code == 1
    assert json.loads(answer.out)["is_reachable"] is False
    assert "cannot be reached" in json.loads(answer.out)["problem"]


def test_without_a_model_a_check_names_none(run_indexed):
    answer = run_indexed("ask", "--check")

    assert answer.code == 1
    assert "model       none\n" in answer.out
    assert "set llm.provider and llm.model" in answer.err


def test_where_there_is_no_project_it_says_how_to_ask_about_a_folder(run):
    assert "`docindex ask QUESTION PATH`" in run("ask", "how does prime_pump work?").err


# On a terminal


def test_on_a_terminal_no_line_is_empty_between_steps_and_two_are_not_before_sources(terminal, server):
    calls = [ToolCall(f"c{at}", "search", '{"query": "pump"}') for at in range(2)]
    ended = (*ANSWER[:-1], Delta("\n"), ANSWER[-1])
    server.replies = [OPENAI.reply(Delta("Let me look."), *calls, Usage(1, 1)), OPENAI.reply(*ended)]

    command = terminal("how does prime_pump work?", "--agent")
    assert command.end() == 0

    lines = command.plain.splitlines()
    steps = [at for at, line in enumerate(lines) if line.startswith("search {")]
    assert lines[steps[0] - 1] == "Let me look."
    assert steps[1] == steps[0] + 1
    sources = next(at for at, line in enumerate(lines) if line.startswith("  1 "))
    assert lines[steps[1] + 1] == "`prime_pump` fills the pump with water [1], or [9]."
    assert lines[steps[1] + 2 : sources] == [""]


@pytest.fixture
def terminal(ask, tmp_path):
    """Run a command in a terminal, with the model of `ask`."""
    return lambda *arguments: Terminal(["ask", *arguments], tmp_path, columns=200)


def test_on_a_terminal_the_text_is_there_as_it_comes(terminal, server):
    server.replies = [Reply(tuple(OPENAI.events([Delta("It fills the pump")])), stays=True)]

    command = terminal("how does prime_pump work?")
    command.wait_for("It fills the pump")
    command.press_ctrl_c()

    assert command.end() == 130
    assert "stopped" in command.plain
    assert server.leaving.wait(1), "the request to the model is still open"


def test_a_chat_goes_on_from_one_question_to_the_next(terminal, server, tmp_path):
    command = terminal("--chat")
    command.type_line("how does prime_pump work?")
    command.wait_for("9 ✗ passage 9 does not exist")
    command.type_line("and when?")
    command.wait_for_count("9 ✗ passage 9 does not exist", 2)
    command.type_line("/sources")
    command.wait_for("2 manual/guide.md:")
    command.type_line("/show 1")
    command.wait_for("print(litres)")
    command.type_line("/save talk.md")
    command.wait_for("saved as talk.md")
    command.type_line("/save talk.md")
    command.wait_for("talk.md already exists; choose another name")
    command.type_line("/save nowhere/talk.md")
    command.wait_for("cannot write nowhere/talk.md: No such file or directory")
    command.type_line("/nonsense")
    command.wait_for("unknown command /nonsense; type /help for the commands")
    command.type_line("/quit")

    assert command.end() == 0
    assert [message["role"] for message in server.asked[1]["messages"]] == ["system", "user", "assistant", "user"]
    saved = (tmp_path / "talk.md").read_text()
    assert saved.count("## ") == 3
    assert "1. library/manual `pump.py:1-3`" in saved


def test_ctrl_c_ends_an_answer_and_not_the_chat(terminal, server):
    server.replies = [Reply(tuple(OPENAI.events([Delta("It fills")])), stays=True), OPENAI.reply(*ANSWER)]

    command = terminal("--chat", "how does prime_pump work?")
    command.wait_for("It fills")
    command.press_ctrl_c()
    command.wait_for("stopped")
    command.type_line("how does prime_pump work?")
    command.wait_for("9 ✗ passage 9 does not exist")
    command.type_line("/new")
    command.wait_for("a new conversation")
    command.type_line("/quit")

    assert command.end() == 0


def test_a_stopped_answer_gives_its_numbers_to_no_other_passages(terminal, server):
    server.replies = [Reply(tuple(OPENAI.events([Delta("It fills")])), stays=True), OPENAI.reply(*ANSWER)]

    command = terminal("--chat", "how does prime_pump work?")
    command.wait_for("It fills")
    command.press_ctrl_c()
    command.wait_for("stopped")
    command.type_line("how does prime_pump work?")
    command.wait_for("passage 1 does not exist")
    command.type_line("/quit")

    assert command.end() == 0


def test_ctrl_c_at_the_prompt_drops_the_line_and_not_the_chat(terminal, server):
    command = terminal("--chat", "how does prime_pump work?")
    command.wait_for("tokens; search")
    command.wait_for("> ")
    command.type("half a ques")
    command.wait_for("half a ques")
    time.sleep(0.2)  # wait until readline blocks on a key, since it notices earlier signals only then
    command.press_ctrl_c()
    command.wait_for("press Ctrl-D or type /quit to end the chat")
    command.wait_for_count("> ", 2)
    command.type_line("/show 1")
    command.wait_for("print(litres)")
    command.type_line("/quit")

    assert command.end() == 0
    assert len(server.asked) == 1


def test_into_a_pipe_a_chat_writes_its_answers_alone(ask, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("how does prime_pump work?\n"))

    answer = ask("--chat")

    assert answer.code == 0
    assert answer.out.startswith(SHOWN)
    assert ">" not in answer.out


def test_the_help_says_how_a_passage_is_named(run):
    assert "[3] cites a passage" in run("ask", "--help").out


def test_ctrl_d_ends_the_chat(terminal):
    command = terminal("--chat")
    command.wait_for("> ")
    command.type("\x04")

    assert command.end() == 0
