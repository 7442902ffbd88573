"""Questions of one command, each answered and shown; and with `--chat`, what can be typed beside them."""

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
from docindex_dagster.core.safe_text import in_line
from docindex_dagster.llm.chat import ChatModel, Delta, prepare
from docindex_dagster.llm.providers import chat_model
from docindex_dagster.render import console, console_answers
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.freshness import files_of
from docindex_dagster.search.live_index import Live
from docindex_dagster.sources import registry
from docindex_dagster.sources.paths import check_way, expanded
from docindex_dagster.stores.reader import Reader

_PROMPT = "> "
_HELP = """\
/sources     all passages of the conversation
/show N      passage N, whole
/save FILE   the conversation as Markdown, with its sources
/new         another conversation
/quit        the end, as Ctrl-D; Ctrl-C stops an answer, or drops a line
Anything else is a question, which may refer to the one before."""


class Asked:
    """A conversation of which a terminal shows each answer as it comes."""

    def __init__(
        self,
        live: Live,
        filters: Callable[[Reader], Filters],
        tokens: int,
        *,
        is_for_agent: bool,
        has_model: bool,
    ) -> None:
        """Nothing is asked yet; see `Question` for the arguments.

        Raises:
            LLMError: the model that the settings name cannot be used.
        """
        self._live, self._filters, self._tokens, self._is_for_agent = live, filters, tokens, is_for_agent
        own = live.settings
        self.model: ChatModel | None = chat_model(own.llm) if has_model and own.llm.provider != "none" else None
        # While the search is under way.
        Thread(target=prepare, args=(self.model,), daemon=True).start()
        self.conversation = Conversation()
        self.last: Answer | None = None
        self._runner = asyncio.Runner()
        self.shown = console_answers.Shown(own.home, files_of(registry.sources(own)), is_streaming=sys.stdout.isatty())

    def close(self) -> None:
        """Close the model's connections."""
        if self.model:
            self._runner.run(self.model.aclose())
        self._runner.close()

    def ask(self, text: str, *, as_json: bool = False) -> None:
        """Ask, and show the answer.

        Raises:
            DocindexError: as `answering.answer.answer`.
            KeyboardInterrupt: the user stopped it.
        """
        question = Question(text, self._filters, self._tokens, self._is_for_agent)
        if self._is_for_agent and self.model and not self.model.has_tools:
            console.warning(f"{self.model.name} takes no tools, so it answers from what the search finds")
        try:
            events = self._runner.run(self._answered(question, is_shown=not as_json))
        except LLMBudgetError:
            raise
        except LLMError as error:
            error.add_note("--no-llm shows the best passages, --check whether the model can be asked")
            raise
        if as_json:
            console.as_json(console_answers.as_json(text, events))

    def begin_anew(self) -> None:
        """Forget what was asked."""
        self.conversation, self.last = Conversation(), None

    async def _answered(self, question: Question, *, is_shown: bool) -> list[Event]:
        """All that happened but the pieces of the text, which the answer has."""
        events: list[Event] = []
        toolbox = _toolbox(self._live, question) if self._is_for_agent else None
        async with aclosing(answer(self._live, question, self.conversation, self.model, toolbox)) as happening:
            async for event in happening:
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
    from docindex_dagster.serving.question_tools import QuestionTools  # loads what only an agent needs

    return QuestionTools(live, question)


def converse(asked: Asked, first: str) -> None:
    """Ask until the user has had enough.

    Args:
        asked: the conversation.
        first: a question to begin with; empty for none.
    """
    with suppress(ImportError):
        import readline  # noqa: F401 its import is what lets `input` edit lines
    console.err.print("/help lists what can be typed beside questions")
    line, prompt = first, _PROMPT if sys.stdin.isatty() else ""
    while True:
        if not line.strip():
            try:
                line = input(prompt)
            except KeyboardInterrupt:  # one that came a moment too late to stop an answer ends nothing
                console.err.print("\n/quit or Ctrl-D ends the chat")
            except EOFError:
                if prompt:
                    console.out.print()
                return
            continue
        if line.strip() in {"/quit", "/exit"}:
            return
        try:
            _done(asked, line.strip())
        except KeyboardInterrupt:
            console.err.print("\nstopped")
        except (DocindexError, OSError) as error:
            console.failure(str(error))
        line = ""


def _done(asked: Asked, line: str) -> None:
    if not line.startswith("/"):
        asked.ask(line)
        return
    name, _, rest = line.partition(" ")
    commands: dict[str, Callable[[Asked, str], None]] = {
        "/help": _help,
        "/sources": _sources,
        "/show": _show,
        "/save": _save,
        "/new": _new,
    }
    if name not in commands:
        raise QueryError(f"there is no {name}; /help lists what there is")
    commands[name](asked, rest.strip())


def _help(_: Asked, _rest: str) -> None:
    console.out.print(_HELP)


def _sources(asked: Asked, _rest: str) -> None:
    asked.shown.passages(asked.conversation.passages.kept)


def _show(asked: Asked, number: str) -> None:
    found = asked.conversation.passages.numbered([int(number)]) if number.isdecimal() else ()
    if not found:
        raise QueryError(f"there is no passage {number or 'without a number'}; /sources lists them")
    asked.shown.passages(found)
    console.plain(found[0].text)


def _save(asked: Asked, name: str) -> None:
    if not name:
        raise QueryError("say where: /save FILE")
    if not asked.conversation.turns:
        raise QueryError("nothing was asked yet")
    place = expanded(name)
    check_way(place, is_output=True)
    try:
        with place.open("x", encoding="utf-8") as file:
            file.write(_as_markdown(asked))
    except FileExistsError:
        raise QueryError(f"{name} is there already: choose another name") from None
    except OSError as error:
        raise QueryError(f"{name} cannot be written: {error.strerror}") from None
    console.out.print(f"saved as {name}")


def _as_markdown(asked: Asked) -> str:
    turns = [f"## {in_line(turn.question)}\n\n{turn.answer.strip()}\n" for turn in asked.conversation.turns]
    cited = {number for turn in asked.conversation.turns for number in turn.cited}
    sources = [
        f"{one.number}. {in_line(one.source)} `{in_line(one.path)}:{one.start_line}-{one.end_line}`"
        for one in asked.conversation.passages.numbered(cited)
    ]
    return "\n".join([*turns, *(["## Sources\n", *sources, ""] if sources else [])])


def _new(asked: Asked, _rest: str) -> None:
    asked.begin_anew()
    console.out.print("a new conversation")
