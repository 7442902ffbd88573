"""Asking a language model many questions: several at once, within a budget, and no more once it fails.

Failures are counted and reported, never raised: an index can do without what an LLM adds.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from queue import Queue
from threading import Thread

from docindex_dagster.core.errors import LLMError
from docindex_dagster.core.tokenizer import count_tokens
from docindex_dagster.llm.protocol import LLM, Completion

# After so many failures in a row nothing more is asked.
_MOST_FAILURES = 4


@dataclass(frozen=True, slots=True)
class Question:
    """A text to ask about, and the key by which its asker knows it."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a question; None where nothing did that can be used."""

    key: str
    text: str | None


@dataclass(slots=True)
class Inquiry:
    """One series of questions, and what it took.

    `accept` gives what to keep of an answer, None where it cannot be used.
    """

    llm: LLM
    system: str
    accept: Callable[[str], str | None]
    max_tokens: int  # of an answer
    budget: int  # tokens, of questions and answers
    concurrency: int
    input_tokens: int = 0
    output_tokens: int = 0
    dearest: float = 1.0  # the most that a question took, in what it had been held to take
    failures_in_a_row: int = 0
    problem: str = ""  # the last failure's
    is_budget_used_up: bool = False

    @property
    def has_given_up(self) -> bool:
        """Whether the model failed so often that it is not asked any more."""
        return self.failures_in_a_row >= _MOST_FAILURES

    def ask(self, questions: Iterable[Question]) -> Iterator[Answer]:
        """Answers as they come, of as many questions as may be asked.

        The budget holds as far as the tokens of what is under way can be estimated, by ours and by those of the
        answers so far.
        """
        outcomes: Queue[tuple[Question, Completion | LLMError]] = Queue()
        under_way: dict[str, int] = {}  # the tokens that each may cost
        waiting = iter(questions)
        question = next(waiting, None)
        while True:
            # Whoever just failed is asked one question at a time.
            room = 1 if self.failures_in_a_row else self.concurrency
            if question is not None and not self.has_given_up and len(under_way) < room:
                cost = self._cost(question)
                if self._spent + self.dearest * (sum(under_way.values()) + cost) <= self.budget:
                    under_way[question.key] = cost
                    # No pool: its threads would have to end before the process may.
                    Thread(target=self._put_to, args=(question, outcomes), daemon=True).start()
                    question = next(waiting, None)
                    continue
                if not under_way:
                    self.is_budget_used_up = True
                    return
            if not under_way:
                return
            asked, outcome = outcomes.get()
            yield self._noted(asked, outcome, under_way.pop(asked.key))

    @property
    def _spent(self) -> int:
        return self.input_tokens + self.output_tokens

    def _cost(self, question: Question) -> int:
        return sum(count_tokens([self.system, question.text])) + self.max_tokens

    def _put_to(self, question: Question, outcomes: "Queue[tuple[Question, Completion | LLMError]]") -> None:
        try:
            outcomes.put((question, self.llm.complete(self.system, question.text, self.max_tokens)))
        except LLMError as error:
            outcomes.put((question, error))
        except Exception as error:  # noqa: BLE001 it may be of another package; its message may hold anything
            outcomes.put((question, LLMError(f"{self.llm.name} failed ({type(error).__name__})")))

    def _noted(self, question: Question, outcome: Completion | LLMError, cost: int) -> Answer:
        if isinstance(outcome, LLMError):
            return self._failed(question, str(outcome))
        if outcome.input_tokens or outcome.output_tokens:
            self.input_tokens += outcome.input_tokens
            self.output_tokens += outcome.output_tokens
            self.dearest = max(self.dearest, (outcome.input_tokens + outcome.output_tokens) / cost)
        else:
            self.input_tokens += cost - self.max_tokens
            self.output_tokens += sum(count_tokens([outcome.text]))
        text = self.accept(outcome.text)
        if text is None:
            return self._failed(question, f"{self.llm.name} gave an answer that cannot be used")
        self.failures_in_a_row = 0
        return Answer(question.key, text)

    def _failed(self, question: Question, problem: str) -> Answer:
        self.failures_in_a_row += 1
        self.problem = problem
        return Answer(question.key, None)
