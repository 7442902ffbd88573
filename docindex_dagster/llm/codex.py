"""Chatting by the Codex program, for who has no key but an account.

It is an agent that reads and writes files: it runs here in an empty folder, in its sandbox without leave to write, with
its tools off and none of the user's configuration. It tells its message when it is whole, and does not count on its
own time: we do.
"""

import asyncio
import json
import os
import re
import shutil
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import BaseModel, NonNegativeInt

from docindex_dagster.core.errors import LLMError, LLMFailedError, LLMKeyError, LLMLimitError
from docindex_dagster.core.settings import LLMSettings
from docindex_dagster.llm.chat import Availability, Delta, Message, Stream, Tool, Usage
from docindex_dagster.llm.endpoint import LONGEST_S, OUR_KEY, Endpoint, streamed, unset

_PROGRAM = "codex"
_ITS_KEY = "CODEX_API_KEY"
_OUR_VARIABLES = "DOCINDEX_"
_MOST_BYTES = 4 << 20  # of a line
_LONGEST_END_S = 2.0  # for the end of a program that was killed
_WRONG_KEY = re.compile(r"\b40[13]\b|not logged in|unauthorized", re.IGNORECASE)
_LIMIT = re.compile(r"\b429\b|usage limit|rate limit|quota", re.IGNORECASE)
_ARGUMENTS = (
    *("exec", "--json", "--ephemeral", "--ignore-user-config", "--ignore-rules", "--skip-git-repo-check"),
    *("--sandbox", "read-only", "--disable", "shell_tool", "--disable", "multi_agent", "--disable", "goals"),
    *("-c", 'web_search="disabled"'),
)
_MISSING = "there is no program codex on the PATH: install it (npm install -g @openai/codex), and run `codex login`"
_LOGIN = f"codex is not logged in, or its login is not accepted: run `codex login`, or set {OUR_KEY}"


class _Counts(BaseModel):
    input_tokens: NonNegativeInt = 0
    output_tokens: NonNegativeInt = 0


class _Part(BaseModel):
    type: str
    text: str = ""


class _Error(BaseModel):
    message: str = ""


class _Event(BaseModel):
    type: str
    item: _Part | None = None
    usage: _Counts | None = None
    error: _Error | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class CodexChat:
    """Starts the program for each answer."""

    settings: LLMSettings

    @property
    def name(self) -> str:
        """Of the provider and the model; the program chooses one where the settings do not."""
        return f"codex/{self.settings.model or 'default'}"

    @property
    def context_tokens(self) -> int | None:
        """As the settings say."""
        return self.settings.context_tokens

    @property
    def has_tools(self) -> bool:
        """Its own are off, and ours it cannot be given."""
        return False

    async def stream(self, messages: Sequence[Message], tools: Sequence[Tool] = (), *, max_tokens: int) -> Stream:  # noqa: ARG002 it takes no limit
        """Answer a conversation, by one Delta. The program takes no `max_tokens`.

        Raises:
            LLMError: by what happened.
        """
        if tools:
            raise LLMError("codex takes no tools")
        own = self.settings
        endpoint = Endpoint(_PROGRAM, OUR_KEY, own.timeout_s, retries=0)  # it tries again by itself
        async with aclosing(streamed(lambda: _attempt(own, messages, endpoint), endpoint)) as items:
            async for item in items:
                yield item

    async def check(self) -> Availability:
        """Ask the program for its version and login. Whether the login is accepted, only a question shows."""
        if shutil.which(_PROGRAM) is None:
            return unset(_MISSING, self.settings.model)
        try:
            async with asyncio.timeout(LONGEST_S):
                version, _ = await self._output_of("--version")
                has_login = None if self.settings.api_key else (await self._output_of("login", "status"))[1] == 0
        except (OSError, TimeoutError) as error:
            return unset(f"codex cannot be run ({type(error).__name__})", self.settings.model)
        return Availability(
            is_configured=True,
            is_logged_in=has_login,
            version=version,
            model=self.settings.model,
            problem=_LOGIN if has_login is False else "",
        )

    async def aclose(self) -> None:
        """Nothing: each program ends with its answer."""

    async def _output_of(self, *arguments: str) -> tuple[str, int]:
        """What the program says to some arguments, and its exit code."""
        with _empty_folder("") as (folder, _):
            async with _running(self.settings, arguments, folder) as process:
                output, _ = await process.communicate()
            return output.decode(errors="replace").strip()[:200], process.returncode or 0


async def _attempt(settings: LLMSettings, messages: Sequence[Message], endpoint: Endpoint) -> Stream:
    answer = _Answer(endpoint)
    with _empty_folder(_system(messages)) as (folder, arguments):
        chosen = (f"--model={settings.model}",) if settings.model else ()
        try:
            async with _running(settings, (*_ARGUMENTS, *arguments, *chosen, "-"), folder) as process:
                await _send(process, _conversation(messages))
                async for line in _lines(process):
                    for item in answer.items(_Event.model_validate_json(line)):
                        yield item
                answer.end(await process.wait())
        except FileNotFoundError:
            raise LLMError(_MISSING) from None
        except Exception as error:  # noqa: BLE001 of the operating system, or of what the program writes
            raise endpoint.unreadable(error) from None


@contextmanager
def _empty_folder(instructions: str) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """A folder with nothing in it, and the arguments that name it and a file with instructions beside it."""
    with TemporaryDirectory(prefix="docindex-codex-", ignore_cleanup_errors=True) as parent:
        folder, file = Path(parent, "empty"), Path(parent, "instructions.md")
        folder.mkdir()
        file.write_text(instructions, encoding="utf-8")
        yield folder, ("-c", f"model_instructions_file={json.dumps(str(file))}", "-C", str(folder))


async def _lines(process: Process) -> AsyncIterator[bytes]:
    if process.stdout is not None:
        async for line in process.stdout:
            yield line


@dataclass(slots=True)
class _Answer:
    """An answer, as far as its events have come."""

    endpoint: Endpoint
    is_begun: bool = False
    is_done: bool = False

    def items(self, event: _Event) -> Iterator[Delta | Usage]:
        """What an event adds."""
        self.is_begun = True
        if event.type == "item.completed" and event.item and event.item.type == "agent_message":
            yield Delta(event.item.text)
        elif event.type == "turn.completed":
            self.is_done = True
            counts = event.usage or _Counts()
            yield Usage(counts.input_tokens, counts.output_tokens)
        elif event.type == "turn.failed":
            raise _failure(event.error.message if event.error else "")
        elif event.type == "error" and _WRONG_KEY.search(event.message):
            raise LLMKeyError(_LOGIN)  # it would go on trying

    def end(self, exit_code: int) -> None:
        """Fail unless the answer is whole."""
        if self.is_done:
            return
        if not self.is_begun:
            raise LLMFailedError(
                f"codex gave no answer (exit code {exit_code}); it has to be of version 0.169 or later"
            )
        raise self.endpoint.broken(f"exit code {exit_code}")


def _failure(message: str) -> LLMError:
    """What the program says that it failed of. It may repeat what was sent, so it is not repeated."""
    if _WRONG_KEY.search(message):
        return LLMKeyError(_LOGIN)
    if _LIMIT.search(message):
        return LLMLimitError("codex is asked too often, or the account is used up")
    return LLMFailedError("codex failed; `codex exec hello` says why")


@asynccontextmanager
async def _running(settings: LLMSettings, arguments: Sequence[str], folder: Path) -> AsyncIterator[Process]:
    """The program, which ends with all that it started when it is not needed any more."""
    process = await asyncio.create_subprocess_exec(
        _PROGRAM,
        *arguments,
        cwd=folder,
        env=_environment(settings),
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        start_new_session=True,
        limit=_MOST_BYTES,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        # What it wrote last is read, or its pipe would stay open.
        with suppress(TimeoutError):
            await asyncio.wait_for(process.communicate(), _LONGEST_END_S)


def _environment(settings: LLMSettings) -> dict[str, str]:
    """The variables of this process, but for our own: they may hold secrets that are none of its business."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(_OUR_VARIABLES)}
    return own | ({_ITS_KEY: settings.api_key.get_secret_value()} if settings.api_key else {})


async def _send(process: Process, text: str) -> None:
    """Write the prompt. A program that ended before says why in what it wrote."""
    if process.stdin is not None:
        with suppress(ConnectionError):
            process.stdin.write(text.encode())
            await process.stdin.drain()
        process.stdin.close()


def _system(messages: Sequence[Message]) -> str:
    return "\n\n".join(message.content for message in messages if message.role == "system")


def _conversation(messages: Sequence[Message]) -> str:
    """What was said so far, as one text: by whom only where there is more than one message."""
    spoken = [message for message in messages if message.role != "system"]
    if len(spoken) == 1:
        return spoken[0].content
    return "\n\n".join(f"[{message.role}]\n{message.content}" for message in spoken)
