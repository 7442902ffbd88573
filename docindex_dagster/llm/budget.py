"""Spending limit for a question, across all requests that its answer takes."""

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass

from docindex_dagster.core.errors import LLMBudgetError
from docindex_dagster.core.settings import LLMSettings
from docindex_dagster.core.tokenizer import count_tokens
from docindex_dagster.llm.chat import ChatModel, Delta, Item, Message, Stream, Tool, ToolCall, Usage

_MILLION = 1e6
_MIN_ANSWER_TOKENS = 16  # tokens; a shorter answer is not worth a request


@dataclass(slots=True, eq=False)
class BudgetedChat:
    """A chat model with a budget for one question. Each answer may be only as long as the rest of the budget allows.

    Token counts that a model does not report are estimated. A request that yielded nothing counts as free.

    Attributes:
        model: the model that answers.
        settings: the settings with the budget and the prices.
        prompt_tokens: tokens spent on prompts so far.
        completion_tokens: tokens spent on answers so far.
    """

    model: ChatModel
    settings: LLMSettings
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def context_tokens(self) -> int | None:
        """The context window of the model, in tokens."""
        return self.model.context_tokens

    @property
    def tokens(self) -> int:
        """Tokens spent so far."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def dollars(self) -> float | None:
        """Dollars spent so far; None if the settings name no prices."""
        own = self.settings
        if own.price_in is None or own.price_out is None:
            return None
        return _dollars(self.prompt_tokens, own.price_in) + _dollars(self.completion_tokens, own.price_out)

    async def stream(self, messages: Sequence[Message], tools: Sequence[Tool] = (), *, max_tokens: int) -> Stream:
        """Answer a conversation, within the rest of the budget.

        Raises:
            LLMBudgetError: the budget does not cover the messages.
            LLMError: the model failed.
        """
        prompt = _prompt_tokens(messages, tools)
        limit = min(max_tokens, self._answer_tokens_left(prompt))
        items: list[Item] = []
        try:
            async with aclosing(self.model.stream(messages, tools, max_tokens=limit)) as stream:
                async for item in stream:
                    items.append(item)
                    yield item
        finally:
            self._spend(prompt, items)

    def pays(
        self, messages: Sequence[Message], tools: Sequence[Tool] = (), *, max_tokens: int, requests: int = 1
    ) -> bool:
        """Return whether the budget covers this many requests like this one, each with an answer of full length.

        Args:
            messages: the messages of a request.
            tools: the tools of a request.
            max_tokens: the limit of an answer.
            requests: the number of requests.
        """
        own = self.settings
        prompt = _prompt_tokens(messages, tools)
        if self.tokens + requests * (prompt + max_tokens) > own.question_tokens:
            return False
        if own.question_dollars is None or self.dollars is None:
            return True
        cost = _dollars(prompt, own.price_in) + _dollars(max_tokens, own.price_out)
        return self.dollars + requests * cost <= own.question_dollars

    def _answer_tokens_left(self, prompt: int) -> int:
        """Return how many answer tokens the budget covers in addition to the prompt."""
        own = self.settings
        left = own.question_tokens - self.tokens - prompt
        if left < _MIN_ANSWER_TOKENS:
            raise LLMBudgetError(
                f"the question has used {self.tokens:,} tokens, and a request of {prompt:,} more would exceed its "
                f"budget of {own.question_tokens:,} (llm.question_tokens)"
            )
        if own.question_dollars is None or self.dollars is None:
            return left
        dollars_left = own.question_dollars - self.dollars - _dollars(prompt, own.price_in)
        if dollars_left < _dollars(_MIN_ANSWER_TOKENS, own.price_out):
            raise LLMBudgetError(
                f"the question has cost ${self.dollars:.4f}, and another request would exceed its budget of "
                f"${own.question_dollars:.4f} (llm.question_dollars)"
            )
        return min(left, int(dollars_left * _MILLION / own.price_out)) if own.price_out else left

    def _spend(self, prompt: int, items: Sequence[Item]) -> None:
        usage = next((item for item in items if isinstance(item, Usage)), Usage())
        answered = "".join(_text(item) for item in items if not isinstance(item, Usage))
        if items:
            self.prompt_tokens += usage.prompt_tokens or prompt
            self.completion_tokens += usage.completion_tokens or _tokens([answered])


def _text(part: Message | Delta | ToolCall) -> str:
    match part:
        case Delta(text):
            return text
        case ToolCall(_, name, arguments):
            return f"{name} {arguments}"
        case Message(_, content, calls):
            return " ".join([content, *(_text(call) for call in calls)])


def _prompt_tokens(messages: Sequence[Message], tools: Sequence[Tool]) -> int:
    return _tokens([*(_text(message) for message in messages), *(str(tool) for tool in tools)])


def _tokens(texts: Sequence[str]) -> int:
    return sum(count_tokens(texts))


def _dollars(tokens: int, price: float | None) -> float:
    return tokens * (price or 0.0) / _MILLION
