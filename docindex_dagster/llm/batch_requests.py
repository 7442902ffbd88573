"""Concurrent questions to a language model, within a token budget, until the model fails repeatedly.

Failures are counted and reported but never raised, because an index works without the text that an LLM adds.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from queue import Queue
from threading import Thread

from docindex_dagster.core.errors import LLMError
from docindex_dagster.core.tokenizer import count_tokens
from docindex_dagster.llm.protocol import LLM, Completion

# Stop asking after this many consecutive failures.
_MAX_FAILURES = 4


@dataclass(frozen=True, slots=True)
class Question:
    """A text to ask about, and the key under which the caller finds its answer."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class QuestionOutcome:
    """The outcome of a question. `text` is None if the model gave no usable answer."""

    key: str
    text: str | None


@dataclass(slots=True)
class QuestionBatch:
    """A series of questions to a model, with its token counts and failures.

    `accept` returns the part of an answer to keep, or None if the answer is unusable.
    """

    llm: LLM
    system: str
    accept: Callable[[str], str | None]
    max_tokens: int  # per answer
    budget: int  # tokens, for questions and answers together
    concurrency: int
    input_tokens: int = 0
    output_tokens: int = 0
    max_cost_ratio: float = 1.0  # the highest ratio of actual to estimated cost of a question
    failures_in_a_row: int = 0
    problem: str = ""  # the message of the last failure
    is_budget_used_up: bool = False

    @property
    def has_given_up(self) -> bool:
        """Whether the model failed so often that no more questions are sent."""
        return self.failures_in_a_row >= _MAX_FAILURES

    def ask(self, questions: Iterable[Question]) -> Iterator[QuestionOutcome]:
        """Yield answers as they arrive, for as many questions as the budget allows.

        The budget is checked against the estimated tokens of the questions in flight, scaled by how much earlier
        answers exceeded their estimates.
        """
        outcomes: Queue[tuple[Question, Completion | LLMError]] = Queue()
        in_flight: dict[str, int] = {}  # the estimated tokens of each
        waiting = iter(questions)
        question = next(waiting, None)
        while True:
            # After a failure, send one question at a time.
            limit = 1 if self.failures_in_a_row else self.concurrency
            if question is not None and not self.has_given_up and len(in_flight) < limit:
                cost = self._cost(question)
                if self._spent + self.max_cost_ratio * (sum(in_flight.values()) + cost) <= self.budget:
                    in_flight[question.key] = cost
                    # No pool: the process cannot exit before a pool's threads have ended.
                    Thread(target=self._ask_model, args=(question, outcomes), daemon=True).start()
                    question = next(waiting, None)
                    continue
                if not in_flight:
                    self.is_budget_used_up = True
                    return
            if not in_flight:
                return
            answered, outcome = outcomes.get()
            yield self._record(answered, outcome, in_flight.pop(answered.key))

    @property
    def _spent(self) -> int:
        return self.input_tokens + self.output_tokens

    def _cost(self, question: Question) -> int:
        return sum(count_tokens([self.system, question.text])) + self.max_tokens

    def _ask_model(self, question: Question, outcomes: "Queue[tuple[Question, Completion | LLMError]]") -> None:
        try:
            outcomes.put((question, self.llm.complete(self.system, question.text, self.max_tokens)))
        except LLMError as error:
            outcomes.put((question, error))
        except Exception as error:  # noqa: BLE001 raised by any package; its message may contain anything
            outcomes.put((question, LLMError(f"{self.llm.name} failed ({type(error).__name__})")))

    def _record(self, question: Question, outcome: Completion | LLMError, cost: int) -> QuestionOutcome:
        if isinstance(outcome, LLMError):
            return self._record_failure(question, str(outcome))
        if outcome.input_tokens or outcome.output_tokens:
            self.input_tokens += outcome.input_tokens
            self.output_tokens += outcome.output_tokens
            self.max_cost_ratio = max(self.max_cost_ratio, (outcome.input_tokens + outcome.output_tokens) / cost)
        else:
            self.input_tokens += cost - self.max_tokens
            self.output_tokens += sum(count_tokens([outcome.text]))
        text = self.accept(outcome.text)
        if text is None:
            return self._record_failure(question, f"{self.llm.name} returned an unusable answer")
        self.failures_in_a_row = 0
        return QuestionOutcome(question.key, text)

    def _record_failure(self, question: Question, problem: str) -> QuestionOutcome:
        self.failures_in_a_row += 1
        self.problem = problem
        return QuestionOutcome(question.key, None)
