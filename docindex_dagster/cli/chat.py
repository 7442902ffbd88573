"""A conversation in the terminal: one question per command, or with `--chat` several, with slash commands."""

import asyncio
import sys
from collections.abc import Callable
from contextlib import aclosing, suppress
from threading import Thread

from docindex_dagster.answering.agent import Toolbox
from docindex_dagster.answering.answer import answer
from docindex_dagster.answering.conversation import Conversation
from docindex_dagster.answering.events import Answer, Event, Found, Step
from docindex_dagster.answering.question import Question
from docindex_dagster.core.errors import DocindexError, LLMBudgetError, LLMError, QueryError
from docindex_dagster.core.safe_text import on_one_line
from docindex_dagster.llm.chat import ChatModel, Delta, prepare
from docindex_dagster.llm.providers import chat_model
from docindex_dagster.render import console, console_answers
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.freshness import file_resolver
from docindex_dagster.search.live_index import Live
from docindex_dagster.sources import registry
from docindex_dagster.sources.paths import check_redirection, expand_user
from docindex_dagster.stores.reader import Reader

_PROMPT = "> "
_HELP = """\
/sources     list all passages of the conversation
/show N      show passage N in full
/save FILE   save the conversation and its sources as Markdown
/new         start a new conversation
/quit        quit (also Ctrl-D); Ctrl-C stops an answer or discards a line
Anything else is a question, which may refer to the previous one."""


class TerminalChat:
    """A conversation whose answers are printed to the terminal as they arrive."""

    def __init__(
        self,
        live: Live,
        filters: Callable[[Reader], Filters],
        tokens: int,
        *,
        is_for_agent: bool,
        has_model: bool,
    ) -> None:
        """Prepare a conversation; see `Question` for the arguments.

        Raises:
            LLMError: The configured model cannot be used.
        """
        self._live, self._filters, self._tokens, self._is_for_agent = live, filters, tokens, is_for_agent
        own = live.settings
        self.model: ChatModel | None = chat_model(own.llm) if has_model and own.llm.provider != "none" else None
        # Warm up the model's connection during the search.
        Thread(target=prepare, args=(self.model,), daemon=True).start()
        self.conversation = Conversation()
        self.last: Answer | None = None
        self._runner = asyncio.Runner()
        self.shown = console_answers.AnswerPrinter(
            own.home, file_resolver(registry.sources(own)), is_streaming=sys.stdout.isatty()
        )

    def close(self) -> None:
        """Close the model's connections."""
        if self.model:
            self._runner.run(self.model.aclose())
        self._runner.close()

    def ask(self, text: str, *, as_json: bool = False) -> None:
        """Ask a question and print the answer.

        Raises:
            DocindexError: As for `answering.answer.answer`.
            KeyboardInterrupt: The user stopped it.
        """
        question = Question(text, self._filters, self._tokens, self._is_for_agent)
        if self._is_for_agent and self.model and not self.model.has_tools:
            console.warning(f"{self.model.name} does not support tools, so it answers from the search results")
        try:
            events = self._runner.run(self._answered(question, is_shown=not as_json))
        except LLMBudgetError:
            raise
        except LLMError as error:
            error.add_note("use --no-llm for the best passages, --check to test whether the model is available")
            raise
        if as_json:
            console.as_json(console_answers.as_json(text, events))

    def reset_conversation(self) -> None:
        """Start a new conversation."""
        self.conversation, self.last = Conversation(), None

    async def _answered(self, question: Question, *, is_shown: bool) -> list[Event]:
        """Return all events except the deltas of the text, which the answer contains."""
        events: list[Event] = []
        toolbox = _toolbox(self._live, question) if self._is_for_agent else None
        async with aclosing(answer(self._live, question, self.conversation, self.model, toolbox)) as stream:
            async for event in stream:
                if is_shown:
                    self.shown.take(event)
                if isinstance(event, Answer):
                    self.conversation, self.last = event.conversation, event
                elif isinstance(event, Found | Step):
                    self.conversation = self.conversation.shown(event.passages)
                if not isinstance(event, Delta):
                    events.append(event)
        return events


def _toolbox(live: Live, question: Question) -> Toolbox:
    from docindex_dagster.serving.question_tools import QuestionTools  # imports modules that only an agent needs

    return QuestionTools(live, question)


def run_chat(asked: TerminalChat, first: str) -> None:
    """Ask questions until the user quits.

    Args:
        asked: the conversation.
        first: the first question; empty for none.
    """
    with suppress(ImportError):
        import readline  # noqa: F401 importing it enables line editing in `input`
    console.err.print("ask a question, or type /help for the commands")
    line, prompt = first, _PROMPT if sys.stdin.isatty() else ""
    while True:
        if not line.strip():
            try:
                line = input(prompt)
            except KeyboardInterrupt:  # it came just after an answer, so it must not end the chat
                console.err.print("\npress Ctrl-D or type /quit to end the chat")
            except EOFError:
                if prompt:
                    console.out.print()
                return
            continue
        if line.strip() in {"/quit", "/exit"}:
            return
        try:
            _run_line(asked, line.strip())
        except KeyboardInterrupt:
            console.err.print("\nstopped")
        except (DocindexError, OSError) as error:
            console.failure(str(error))
        line = ""


def _run_line(asked: TerminalChat, line: str) -> None:
    if not line.startswith("/"):
        asked.ask(line)
        return
    name, _, rest = line.partition(" ")
    commands: dict[str, Callable[[TerminalChat, str], None]] = {
        "/help": _help,
        "/sources": _sources,
        "/show": _show,
        "/save": _save,
        "/new": _new,
    }
    if name not in commands:
        raise QueryError(f"unknown command {name}; type /help for the commands")
    commands[name](asked, rest.strip())


def _help(_: TerminalChat, _rest: str) -> None:
    console.out.print(_HELP)


def _sources(asked: TerminalChat, _rest: str) -> None:
    asked.shown.passages(asked.conversation.passages.kept)


def _show(asked: TerminalChat, number: str) -> None:
    found = asked.conversation.passages.numbered([int(number)]) if number.isdecimal() else ()
    if not found:
        raise QueryError(f"passage {number} not found; /sources lists them" if number else "expected /show N")
    asked.shown.passages(found)
    console.plain(found[0].text)


def _save(asked: TerminalChat, name: str) -> None:
    if not name:
        raise QueryError("expected a file name: /save FILE")
    if not asked.conversation.turns:
        raise QueryError("nothing to save: the conversation is empty")
    path = expand_user(name)
    check_redirection(path, is_output=True)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(_as_markdown(asked))
    except FileExistsError:
        raise QueryError(f"{name} already exists; choose another name") from None
    except OSError as error:
        raise QueryError(f"cannot write {name}: {error.strerror}") from None
    console.out.print(f"saved as {name}")


def _as_markdown(asked: TerminalChat) -> str:
    turns = [f"## {on_one_line(turn.question)}\n\n{turn.answer.strip()}\n" for turn in asked.conversation.turns]
    cited = {number for turn in asked.conversation.turns for number in turn.cited}
    sources = [
        f"{one.number}. {on_one_line(one.source)} `{on_one_line(one.path)}:{one.start_line}-{one.end_line}`"
        for one in asked.conversation.passages.numbered(cited)
    ]
    return "\n".join([*turns, *(["## Sources\n", *sources, ""] if sources else [])])


def _new(asked: TerminalChat, _rest: str) -> None:
    asked.reset_conversation()
    console.out.print("started a new conversation")
