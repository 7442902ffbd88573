"""Chatting by OpenAI's chat completions, of OpenAI or of any endpoint that speaks them."""

from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, NonNegativeInt

from docindex_dagster.core.errors import LLMError
from docindex_dagster.core.settings import LLMSettings
from docindex_dagster.llm.chat import Availability, Delta, Message, Stream, Tool, ToolCall, Usage
from docindex_dagster.llm.checking import checked, unset
from docindex_dagster.llm.endpoint import Endpoint
from docindex_dagster.llm.openai import Parameters
from docindex_dagster.llm.streaming import streamed
from docindex_dagster.llm.vendors import OPENAI

if TYPE_CHECKING:
    from openai import AsyncOpenAI, AsyncStream
    from openai.types.chat import ChatCompletionChunk

# The answer stopped, and the model was not done.
_CUT = {"length", "content_filter"}
_WITH_USAGE = {"stream_options": {"include_usage": True}}


class _Part(BaseModel):
    """A part of what the client read, which it does not check itself."""

    model_config = ConfigDict(from_attributes=True)


class _Function(_Part):
    name: str | None = None
    arguments: str | None = None


class _Fragment(_Part):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Delta(_Part):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_Fragment] | None = None


class _Choice(_Part):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Usage(_Part):
    prompt_tokens: NonNegativeInt | None = None
    completion_tokens: NonNegativeInt | None = None


class _Chunk(_Part):
    choices: list[_Choice]
    usage: _Usage | None = None


class _Model(_Part):
    id: str


class _Models(_Part):
    data: list[_Model]


@dataclass(slots=True)
class _Call:
    """A call of a tool, as far as its fragments have come."""

    index: int | None
    id: str
    name: str = ""
    arguments: str = ""


@dataclass(slots=True)
class _Answer:
    """An answer, as far as its chunks have come."""

    calls: list[_Call] = field(default_factory=list)
    usage: _Usage = field(default_factory=_Usage)
    finish: str | None = None

    def texts(self, chunk: _Chunk) -> Iterator[Delta]:
        """What a chunk adds to the text; what it adds to calls and usage is kept."""
        self.usage = chunk.usage or self.usage
        for choice in chunk.choices[:1]:
            self.finish = choice.finish_reason or self.finish
            delta = choice.delta or _Delta()
            for fragment in delta.tool_calls or []:
                self._add(fragment)
            yield from (Delta(text) for text in (delta.content, delta.refusal) if text)

    def rest(self, calls_so_far: int) -> Iterator[ToolCall | Usage]:
        """What is known when the last chunk has come."""
        for number, call in enumerate(self.calls, calls_so_far):
            yield ToolCall(call.id or f"call_{number}", call.name, call.arguments or "{}")
        yield Usage(self.usage.prompt_tokens or 0, self.usage.completion_tokens or 0, is_answer_cut=self.finish in _CUT)

    def _add(self, fragment: _Fragment) -> None:
        call = self._call(fragment)
        function = fragment.function or _Function()
        call.name = call.name or function.name or ""
        call.arguments += function.arguments or ""

    def _call(self, fragment: _Fragment) -> _Call:
        """The call of a fragment. Some servers leave out the index, others count every call as the first."""
        of_index = [call for call in self.calls if fragment.index is None or call.index == fragment.index]
        if of_index and (not fragment.id or fragment.id == of_index[-1].id):
            return of_index[-1]
        self.calls.append(_Call(fragment.index, fragment.id or ""))
        return self.calls[-1]


@dataclass(slots=True, eq=False)
class OpenAIChat:
    """Chats with one model of one endpoint."""

    settings: LLMSettings
    _parameters: Parameters = field(default_factory=Parameters, init=False, repr=False)
    _client: "AsyncOpenAI | None" = field(default=None, init=False, repr=False)

    @property
    def name(self) -> str:
        """Of the provider and the model."""
        return f"openai/{self.settings.model}"

    @property
    def context_tokens(self) -> int | None:
        """As the settings say."""
        return self.settings.context_tokens

    @property
    def has_tools(self) -> bool:
        """Most models do."""
        return True

    async def stream(self, messages: Sequence[Message], tools: Sequence[Tool] = (), *, max_tokens: int) -> Stream:
        """Answer a conversation.

        Raises:
            LLMError: by what happened.
        """
        client = self._connected()
        endpoint = OPENAI.endpoint(self.settings, client.base_url.host)
        asked = [_message(message) for message in messages]
        offered = [_tool(tool) for tool in tools]
        calls_so_far = sum(len(message.tool_calls) for message in messages)

        async def attempt() -> Stream:
            chunks = await self._chunks(client, endpoint, max_tokens, {"messages": asked} | _given("tools", offered))
            async with aclosing(_read(chunks, endpoint, calls_so_far)) as items:
                async for item in items:
                    yield item

        async with aclosing(streamed(attempt, endpoint)) as items:
            async for item in items:
                yield item

    async def check(self) -> Availability:
        """Ask for the list of models."""
        try:
            client = self._connected()
        except LLMError as error:
            return unset(str(error), self.settings.model)
        endpoint = OPENAI.endpoint(self.settings, client.base_url.host)
        return await checked(lambda: self._probe(client, endpoint), self.settings.model)

    async def aclose(self) -> None:
        """Close its connections."""
        if self._client is not None:
            await self._client.close()

    async def _probe(self, client: "AsyncOpenAI", endpoint: Endpoint) -> tuple[str, str]:
        import openai

        try:
            models = _Models.model_validate(await client.models.list())
        except Exception as error:  # noqa: BLE001 the client's own errors, and those of what it stands on
            raise endpoint.explained(error, openai) from None
        names = {model.id.removesuffix(":latest") for model in models.data}
        is_known = not names or str(self.settings.model).removesuffix(":latest") in names
        problem = "" if is_known else f"{endpoint.host} lists no model {self.settings.model!r}; see llm.model"
        return f"openai-python {openai.__version__}", problem

    async def _chunks(
        self, client: "AsyncOpenAI", endpoint: Endpoint, max_tokens: int, asked: dict[str, Any]
    ) -> "AsyncStream[ChatCompletionChunk]":
        """Send a request, without the parameters that the model turns out not to take."""
        import openai

        create: Any = client.chat.completions.create
        while True:
            options = self._parameters.of(max_tokens) | self._parameters.but_refused(_WITH_USAGE)
            try:
                chunks: AsyncStream[ChatCompletionChunk] = await create(
                    model=self.settings.model, stream=True, **asked, **options
                )
            except openai.BadRequestError as error:
                if not self._parameters.learn(error, options):
                    raise endpoint.explained(error, openai) from None
            except Exception as error:  # noqa: BLE001 the client's own errors, and those of what it stands on
                raise endpoint.explained(error, openai) from None
            else:
                return chunks

    def _connected(self) -> "AsyncOpenAI":
        """The client, whose connections its streams share; redirects could lead the key elsewhere."""
        if self._client is None:
            from openai import AsyncOpenAI, DefaultAsyncHttpxClient

            own = self.settings
            self._client = AsyncOpenAI(
                api_key=OPENAI.key(own).get_secret_value(),
                base_url=own.base_url,
                timeout=own.timeout_s,
                max_retries=0,
                http_client=DefaultAsyncHttpxClient(follow_redirects=False),
            )
        return self._client


async def _read(chunks: "AsyncStream[ChatCompletionChunk]", endpoint: Endpoint, calls_so_far: int) -> Stream:
    """The items of an answer; it is closed with them."""
    answer = _Answer()
    is_begun = False
    try:
        async with chunks:
            async for chunk in chunks:
                is_begun = True
                for text in answer.texts(_Chunk.model_validate(chunk)):
                    yield text
    except Exception as error:  # noqa: BLE001 the client's own errors, and those of what it stands on
        raise endpoint.unreadable(error) from None
    if not is_begun:
        raise endpoint.nonsense()
    if answer.finish is None:
        raise endpoint.broken("it has no end")
    for item in answer.rest(calls_so_far):
        yield item


def _message(message: Message) -> dict[str, Any]:
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in message.tool_calls
    ]
    answers = {"tool_call_id": message.tool_call_id} if message.role == "tool" else {}
    return {"role": message.role, "content": message.content} | _given("tool_calls", calls) | answers


def _tool(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}


def _given(name: str, values: list[Any]) -> dict[str, Any]:
    """A parameter that is left out where it would be empty, as the API wants it."""
    return {name: values} if values else {}
