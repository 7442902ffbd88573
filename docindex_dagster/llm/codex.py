"""Chat client that runs the Codex CLI, for users with an account but no API key.

Codex is an agent that reads and writes files. It runs in an empty folder, in a read-only sandbox, with its tools off
and without the user's configuration. It reports its message only when complete, and it enforces no timeout, so this
module does.
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
from docindex_dagster.llm.endpoint import LONGEST_S, OUR_KEY, Endpoint, streamed, unavailable

_PROGRAM = "codex"
_CODEX_KEY = "CODEX_API_KEY"
_OUR_VARIABLES = "DOCINDEX_"
_MAX_LINE_BYTES = 4 << 20  # per line
_EXIT_TIMEOUT_S = 2.0  # how long to wait for a killed program to exit
_WRONG_KEY = re.compile(r"\b40[13]\b|not logged in|unauthorized", re.IGNORECASE)
_LIMIT = re.compile(r"\b429\b|usage limit|rate limit|quota", re.IGNORECASE)
_ARGUMENTS = (
    *("exec", "--json", "--ephemeral", "--ignore-user-config", "--ignore-rules", "--skip-git-repo-check"),
    *("--sandbox", "read-only", "--disable", "shell_tool", "--disable", "multi_agent", "--disable", "goals"),
    *("-c", 'web_search="disabled"'),
)
_MISSING = "codex not found on the PATH: install it (npm install -g @openai/codex) and run `codex login`"
_LOGIN = f"codex is not logged in, or its login is not accepted: run `codex login` or set {OUR_KEY}"


class _Usage(BaseModel):
    input_tokens: NonNegativeInt = 0
    output_tokens: NonNegativeInt = 0


class _Item(BaseModel):
    type: str
    text: str = ""


class _Error(BaseModel):
    message: str = ""


class _Event(BaseModel):
    type: str
    item: _Item | None = None
    usage: _Usage | None = None
    error: _Error | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class CodexChat:
    """Chat client that starts the Codex CLI for each answer."""

    settings: LLMSettings

    @property
    def name(self) -> str:
        """The provider and the model; `default` if the settings leave the choice to the program."""
        return f"codex/{self.settings.model or 'default'}"

    @property
    def context_tokens(self) -> int | None:
        """The window size from the settings."""
        return self.settings.context_tokens

    @property
    def has_tools(self) -> bool:
        """False: its own tools are off, and it accepts no others."""
        return False

    async def stream(self, messages: Sequence[Message], tools: Sequence[Tool] = (), *, max_tokens: int) -> Stream:  # noqa: ARG002 it has no limit
        """Answer a conversation with one Delta. The program has no option for `max_tokens`.

        Raises:
            LLMError: the program failed; the subclass names the kind of failure.
        """
        if tools:
            raise LLMError("codex does not support tools")
        own = self.settings
        endpoint = Endpoint(_PROGRAM, OUR_KEY, own.timeout_s, retries=0)  # codex retries by itself
        async with aclosing(streamed(lambda: _attempt(own, messages, endpoint), endpoint)) as items:
            async for item in items:
                yield item

    async def check(self) -> Availability:
        """Ask the program for its version and login. Only a question shows whether the login is accepted."""
        if shutil.which(_PROGRAM) is None:
            return unavailable(_MISSING, self.settings.model)
        try:
            async with asyncio.timeout(LONGEST_S):
                version, _ = await self._output_of("--version")
                has_login = None if self.settings.api_key else (await self._output_of("login", "status"))[1] == 0
        except (OSError, TimeoutError) as error:
            return unavailable(f"cannot run codex ({type(error).__name__})", self.settings.model)
        return Availability(
            is_configured=True,
            is_logged_in=has_login,
            version=version,
            model=self.settings.model,
            problem=_LOGIN if has_login is False else "",
        )

    async def aclose(self) -> None:
        """Do nothing, since each program ends with its answer."""

    async def _output_of(self, *arguments: str) -> tuple[str, int]:
        """Run the program with some arguments and return its output and exit code."""
        with _empty_folder("") as (folder, _):
            async with _run_program(self.settings, arguments, folder) as process:
                output, _ = await process.communicate()
            return output.decode(errors="replace").strip()[:200], process.returncode or 0


async def _attempt(settings: LLMSettings, messages: Sequence[Message], endpoint: Endpoint) -> Stream:
    answer = _PartialAnswer(endpoint)
    with _empty_folder(_system(messages)) as (folder, arguments):
        model_option = (f"--model={settings.model}",) if settings.model else ()
        try:
            async with _run_program(settings, (*_ARGUMENTS, *arguments, *model_option, "-"), folder) as process:
                await _send(process, _conversation(messages))
                async for line in _lines(process):
                    for item in answer.items(_Event.model_validate_json(line)):
                        yield item
                answer.end(await process.wait())
        except FileNotFoundError:
            raise LLMError(_MISSING) from None
        except Exception as error:  # noqa: BLE001 raised by the operating system or by invalid output
            raise endpoint.unreadable(error) from None


@contextmanager
def _empty_folder(instructions: str) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Create an empty folder, and yield it with the arguments that name it and the instructions file next to it."""
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
class _PartialAnswer:
    """An answer, assembled from the events received so far."""

    endpoint: Endpoint
    has_started: bool = False
    is_done: bool = False

    def items(self, event: _Event) -> Iterator[Delta | Usage]:
        """Yield the items that an event adds to the answer."""
        self.has_started = True
        if event.type == "item.completed" and event.item and event.item.type == "agent_message":
            yield Delta(event.item.text)
        elif event.type == "turn.completed":
            self.is_done = True
            counts = event.usage or _Usage()
            yield Usage(counts.input_tokens, counts.output_tokens)
        elif event.type == "turn.failed":
            raise _failure(event.error.message if event.error else "")
        elif event.type == "error" and _WRONG_KEY.search(event.message):
            raise LLMKeyError(_LOGIN)  # codex would keep retrying

    def end(self, exit_code: int) -> None:
        """Raise an error unless the answer is complete."""
        if self.is_done:
            return
        if not self.has_started:
            raise LLMFailedError(f"codex returned no answer (exit code {exit_code}); expected codex 0.169 or later")
        raise self.endpoint.broke_off(f"exit code {exit_code}")


def _failure(message: str) -> LLMError:
    """Return the error for a failure. The program's own message is left out, because it may repeat the prompt."""
    if _WRONG_KEY.search(message):
        return LLMKeyError(_LOGIN)
    if _LIMIT.search(message):
        return LLMLimitError("codex hit a rate limit, or the account's quota is used up")
    return LLMFailedError("codex failed; run `codex exec hello` to see why")


@asynccontextmanager
async def _run_program(settings: LLMSettings, arguments: Sequence[str], folder: Path) -> AsyncIterator[Process]:
    """Run the program, and kill it with all of its child processes at the end of the block."""
    process = await asyncio.create_subprocess_exec(
        _PROGRAM,
        *arguments,
        cwd=folder,
        env=_environment(settings),
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        start_new_session=True,
        limit=_MAX_LINE_BYTES,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        # Read the remaining output, or the pipe would stay open.
        with suppress(TimeoutError):
            await asyncio.wait_for(process.communicate(), _EXIT_TIMEOUT_S)


def _environment(settings: LLMSettings) -> dict[str, str]:
    """Return the environment without docindex's own variables, which may hold secrets that codex must not see."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(_OUR_VARIABLES)}
    return own | ({_CODEX_KEY: settings.api_key.get_secret_value()} if settings.api_key else {})


async def _send(process: Process, text: str) -> None:
    """Write the prompt. If the program has already exited, its output tells why."""
    if process.stdin is not None:
        with suppress(ConnectionError):
            process.stdin.write(text.encode())
            await process.stdin.drain()
        process.stdin.close()


def _system(messages: Sequence[Message]) -> str:
    return "\n\n".join(message.content for message in messages if message.role == "system")


def _conversation(messages: Sequence[Message]) -> str:
    """Return the conversation as one text. Roles are shown only if there is more than one message."""
    turns = [message for message in messages if message.role != "system"]
    if len(turns) == 1:
        return turns[0].content
    return "\n\n".join(f"[{message.role}]\n{message.content}" for message in turns)
