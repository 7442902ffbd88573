"""What a question may cost, however many requests its answer takes."""

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass

from docindex_dagster.core.errors import LLMBudgetError
from docindex_dagster.core.settings import LLMSettings
from docindex_dagster.core.tokenizer import count_tokens
from docindex_dagster.llm.chat import ChatModel, Delta, Item, Message, Stream, Tool, ToolCall, Usage

_MILLION = 1e6
_SHORTEST = 16  # tokens of an answer that is worth asking for


@dataclass(slots=True, eq=False)
class BudgetedChat:
    """A model for one question: asked while there is something left to spend, and for no longer answers than that pays.

    What a model does not count is estimated. A request that brought nothing is held to cost nothing.

    Attributes:
        model: who answers.
        settings: with the budget, and the prices.
        prompt_tokens: spent so far.
        completion_tokens: spent so far.
    """

    model: ChatModel
    settings: LLMSettings
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def context_tokens(self) -> int | None:
        """Of the model."""
        return self.model.context_tokens

    @property
    def tokens(self) -> int:
        """Spent so far."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def dollars(self) -> float | None:
        """Spent so far; None where the settings name no prices."""
        own = self.settings
        if own.price_in is None or own.price_out is None:
            return None
        return _dollars(self.prompt_tokens, own.price_in) + _dollars(self.completion_tokens, own.price_out)

    async def stream(self, messages: Sequence[Message], tools: Sequence[Tool] = (), *, max_tokens: int) -> Stream:
        """Answer a conversation, as far as the budget goes.

        Raises:
            LLMBudgetError: it does not go as far as the messages.
            LLMError: of the model.
        """
        prompt = _prompt_tokens(messages, tools)
        most = min(max_tokens, self._left(prompt))
        items: list[Item] = []
        try:
            async with aclosing(self.model.stream(messages, tools, max_tokens=most)) as stream:
                async for item in stream:
                    items.append(item)
                    yield item
        finally:
            self._spend(prompt, items)

    def pays(
        self, messages: Sequence[Message], tools: Sequence[Tool] = (), *, max_tokens: int, requests: int = 1
    ) -> bool:
        """Whether the budget goes as far as so many requests like this one, each with as long an answer as it may have.

        Args:
            messages: of a request.
            tools: of a request.
            max_tokens: of an answer.
            requests: how many.
        """
        own = self.settings
        prompt = _prompt_tokens(messages, tools)
        if self.tokens + requests * (prompt + max_tokens) > own.question_tokens:
            return False
        if own.question_dollars is None or self.dollars is None:
            return True
        cost = _dollars(prompt, own.price_in) + _dollars(max_tokens, own.price_out)
        return self.dollars + requests * cost <= own.question_dollars

    def _left(self, prompt: int) -> int:
        """The tokens of an answer that the budget pays beside those of a prompt."""
        own = self.settings
        left = own.question_tokens - self.tokens - prompt
        if left < _SHORTEST:
            raise LLMBudgetError(
                f"the question has had {self.tokens:,} tokens, and {prompt:,} more are beyond its budget of "
                f"{own.question_tokens:,} (llm.question_tokens)"
            )
        if own.question_dollars is None or self.dollars is None:
            return left
        of_money = own.question_dollars - self.dollars - _dollars(prompt, own.price_in)
        if of_money < _dollars(_SHORTEST, own.price_out):
            raise LLMBudgetError(
                f"the question has cost ${self.dollars:.4f}, and another request is beyond its budget of "
                f"${own.question_dollars:.4f} (llm.question_dollars)"
            )
        return min(left, int(of_money * _MILLION / own.price_out)) if own.price_out else left

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
