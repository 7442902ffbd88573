"""Answer questions in a process that records its own actions: `python -m tests.answering.audited`.

Reads the questions from standard input and writes the results to standard output, as JSON. The record uses Python's
audit events: connections, programs, and files opened or changed. It begins once all code that answers is loaded.
"""

import asyncio
import json
import os
import sys
from contextlib import aclosing
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from docindex_dagster.answering.answer import answer
from docindex_dagster.answering.conversation import Conversation
from docindex_dagster.answering.events import Answer, Step
from docindex_dagster.answering.question import Question
from docindex_dagster.answering.rendering import as_html, as_text
from docindex_dagster.core.settings import LLMSettings
from docindex_dagster.llm.providers import chat_model
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.live_index import Live
from docindex_dagster.serving.question_tools import QuestionTools
from tests.answering.projects import live_of

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = {"os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod"}
_PROGRAMS = {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork"}
_ADDRESSES = {"socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "socket.bind"}


class Record:
    """Recorded actions by kind."""

    def __init__(self) -> None:
        self.is_on = False
        self.done: dict[str, list[Any]] = {"connected": [], "read": [], "written": [], "started": []}

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.is_on:
            return
        if event == "socket.connect":
            self.done["connected"].append(list(arguments[1]))
        elif event in _ADDRESSES:
            self.done["connected"].append([event, *map(str, arguments[1:])])
        elif event in _PROGRAMS:
            self.done["started"].append(str(arguments))
        elif event in _CHANGES:
            self.done["written"].append(f"{event} {arguments[0]!s}")
        elif event == "open" and not isinstance(arguments[0], int):
            path, _, flags = arguments
            if flags & os.O_PATH:  # an O_PATH descriptor reads nothing
                return
            self.done["written" if flags & _WRITING else "read"].append(
                os.path.normpath(Path(os.fsdecode(path)).absolute())
            )


def about(text: str, filters: Filters) -> Question:
    """Return a question with these filters for any generation."""
    return Question(text, filters=lambda _: filters)


async def asked(live: Live, settings: LLMSettings, question: Question, *, is_for_agent: bool) -> dict[str, Any]:
    """Return the answer to a question as the terminal and the page show it."""
    model = chat_model(settings)
    steps = []
    toolbox = QuestionTools(live, question) if is_for_agent else None
    try:
        async with aclosing(answer(live, question, Conversation(), model, toolbox)) as events:
            async for event in events:
                if isinstance(event, Step):
                    steps.append([event.tool, event.is_error, [passage.path for passage in event.passages]])
                elif isinstance(event, Answer):
                    text, citations = event.text, event.citations
    finally:
        await model.aclose()
    return {
        "steps": steps,
        "text": as_text(text, citations),
        "html": as_html(text, citations, lambda citation: f"/passages/{citation.number}"),
    }


async def main() -> None:
    """Ask the first question twice before recording begins, then ask the rest."""
    given = json.load(sys.stdin)
    live = live_of(Path(given["root"]))
    settings = LLMSettings(**given["llm"], api_key=SecretStr("K3Y"), retries=0, timeout_s=10)
    record = Record()
    sys.addaudithook(record)
    answers = []
    for number, (text, path, is_for_agent) in enumerate(given["questions"]):
        record.is_on = number >= given["unrecorded"]
        filters = Filters(sources=("library/manual",), path_glob=path)
        answers.append(await asked(live, settings, about(text, filters), is_for_agent=is_for_agent))
    record.is_on = False
    json.dump({"answers": answers, **record.done}, sys.stdout)


if __name__ == "__main__":
    asyncio.run(main())
