"""Conversations: the turns and passages so far, and the query for a follow-up question."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from docindex_dagster.answering.citations import Citation, evidence_of
from docindex_dagster.answering.passages import Passage, Passages
from docindex_dagster.core.safe_text import make_visible
from docindex_dagster.search.context import Context, ContextPassage
from docindex_dagster.search.query import FUNCTION_WORDS
from docindex_dagster.stores.analysis import terms

_MAX_TURNS = 20
_MAX_HISTORY_CHARS = 16_000  # characters of earlier turns in the prompt
_MAX_PASSAGES = 200
_MAX_CITED = 8  # passages cited by the last answer that are repeated in the prompt
_MAX_REFERRED_WORDS = 12  # words from the previous question


@dataclass(frozen=True, slots=True)
class Turn:
    """A question, its answer, and the passage numbers that the answer cites."""

    question: str
    answer: str
    cited: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Conversation:
    """The latest turns and the passages read in them."""

    turns: tuple[Turn, ...] = ()
    passages: Passages = field(default_factory=Passages)

    def query(self, question: str) -> str:
        """Return the query for a question: its text, and names from the previous question that it may refer to.

        If the previous question contains no names, its words are used.
        """
        if not self.turns:
            return question
        previous = self.turns[-1].question
        known = set(terms(question))
        names = sorted(evidence_of(previous).identifiers, key=previous.find)
        words = [term for term in terms(previous) if term not in FUNCTION_WORDS]
        referred = [word for word in dict.fromkeys(names or words) if word.lower() not in known]
        return " ".join([question, *referred[:_MAX_REFERRED_WORDS]])

    def found(self, context: Context) -> "tuple[Conversation, tuple[Passage, ...]]":
        """Return the conversation with the search results added, and the passages that the model reads.

        These include the passages that the last answer cites, because the question may refer to them.
        """
        conversation, new = self.looked_up(context)
        cited = self.turns[-1].cited[:_MAX_CITED] if self.turns else ()
        again = [one for one in self.passages.numbered(cited) if one.number not in {passage.number for passage in new}]
        return conversation, (*again, *new)

    def looked_up(self, context: Context) -> "tuple[Conversation, tuple[Passage, ...]]":
        """Return the conversation with more passages added, and these passages with their numbers."""
        passages, new = self.passages.found(context)
        return replace(self, passages=passages.newest(_MAX_PASSAGES)), new

    def shown(self, passages: Iterable[Passage]) -> "Conversation":
        """Return the conversation with these passages' numbers reserved, even if no answer follows."""
        last = max((passage.number for passage in passages), default=0)
        return replace(self, passages=replace(self.passages, last=max(self.passages.last, last)))

    def answered(self, question: str, answer: str, citations: tuple[Citation, ...]) -> "Conversation":
        """Return the conversation with a turn added."""
        cited = tuple(dict.fromkeys(citation.number for citation in citations if citation.passage))
        return replace(self, turns=(*self.turns, Turn(question, answer, cited))[-_MAX_TURNS:])

    @property
    def recent(self) -> tuple[Turn, ...]:
        """The latest turns that fit into the prompt."""
        size, count = 0, 0
        for turn in reversed(self.turns):
            size += len(turn.question) + len(turn.answer)
            if size > _MAX_HISTORY_CHARS:
                break
            count += 1
        return self.turns[len(self.turns) - count :]


@dataclass(frozen=True, slots=True)
class Read:
    """The outcome of adding passages that a tool found.

    Attributes:
        new: the passages to show.
        again: the numbers of passages shown earlier that contain the others.
        left_out: the number of passages that did not fit.
    """

    new: tuple[Passage, ...]
    again: tuple[int, ...]
    left_out: int = 0


@dataclass(slots=True, eq=False)
class Reading:
    """The passages read while an agent works on a question.

    Attributes:
        conversation: the conversation of the answer, with all passages so far.
        shown: the passages that the model has read.
    """

    conversation: Conversation
    shown: list[Passage] = field(default_factory=list)

    def begin(self, context: Context) -> tuple[Passage, ...]:
        """Add the search results and return what the model reads, including what the last answer cites."""
        self.conversation, read = self.conversation.found(context)
        self.shown += read
        return read

    def add(self, context: Context, fits: Callable[[Read], bool] = lambda _: True) -> Read:
        """Add as many of the passages that a tool found as fit.

        Args:
            context: the passages, in the order in which they are shown.
            fits: tells whether a result may be shown.
        """
        numbers = [self._containing(passage) for passage in context.passages]
        fresh = [passage for passage, number in zip(context.passages, numbers, strict=True) if number is None]
        again = tuple(sorted({number for number in numbers if number is not None}))
        for count in range(len(fresh), -1, -1):
            conversation, new = self.conversation.looked_up(replace(context, passages=tuple(fresh[:count])))
            read = Read(new, again, len(fresh) - count)
            if fits(read):
                break
        self.conversation = conversation
        self.shown += read.new
        return read

    def _containing(self, found: ContextPassage) -> int | None:
        """Return the number of a shown passage that contains this one."""
        text = make_visible(found.text)
        return next(
            (
                one.number
                for one in self.shown
                if (one.source, one.path) == (found.source, found.path)
                and one.start_line <= found.start_line
                and found.end_line <= one.end_line
                and text in one.text
            ),
            None,
        )
