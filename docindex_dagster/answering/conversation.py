"""Questions that go on from each other: what was said, the passages so far, and what a further question refers to."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from docindex_dagster.answering.citations import Citation, evidence_of
from docindex_dagster.answering.passages import Passage, Passages
from docindex_dagster.core.safe_text import visible
from docindex_dagster.search.context import Context, ContextPassage
from docindex_dagster.search.query import FUNCTION_WORDS
from docindex_dagster.stores.analysis import terms

_MOST_TURNS = 20
_MOST_HISTORY = 16_000  # characters of earlier turns that a model reads again
_MOST_PASSAGES = 200
_MOST_CITED = 8  # passages that the last answer cites, and that a model reads again
_MOST_REFERRED = 12  # words


@dataclass(frozen=True, slots=True)
class Turn:
    """A question, its answer, and the numbers that the answer cites."""

    question: str
    answer: str
    cited: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Conversation:
    """The last turns, and the passages that were read in them."""

    turns: tuple[Turn, ...] = ()
    passages: Passages = field(default_factory=Passages)

    def query(self, question: str) -> str:
        """What to search for: the question, and the names in the previous one, to which it may refer.

        Where that one has no names, its words.
        """
        if not self.turns:
            return question
        previous = self.turns[-1].question
        known = set(terms(question))
        named = sorted(evidence_of(previous).identifiers, key=previous.find)
        spoken = [term for term in terms(previous) if term not in FUNCTION_WORDS]
        referred = [word for word in dict.fromkeys(named or spoken) if word.lower() not in known]
        return " ".join([question, *referred[:_MOST_REFERRED]])

    def found(self, context: Context) -> "tuple[Conversation, tuple[Passage, ...]]":
        """This one with what was found for the next question, and what a model reads for it.

        It reads what the last answer cites as well, of which the question may go on.
        """
        going_on, new = self.looked_up(context)
        cited = self.turns[-1].cited[:_MOST_CITED] if self.turns else ()
        again = [one for one in self.passages.numbered(cited) if one.number not in {passage.number for passage in new}]
        return going_on, (*again, *new)

    def looked_up(self, context: Context) -> "tuple[Conversation, tuple[Passage, ...]]":
        """This one with further passages, and these by themselves."""
        passages, new = self.passages.found(context)
        return replace(self, passages=passages.newest(_MOST_PASSAGES)), new

    def shown(self, passages: Iterable[Passage]) -> "Conversation":
        """This one after passages were shown: their numbers are not given again, even where no answer comes."""
        last = max((passage.number for passage in passages), default=0)
        return replace(self, passages=replace(self.passages, last=max(self.passages.last, last)))

    def answered(self, question: str, answer: str, citations: tuple[Citation, ...]) -> "Conversation":
        """This one with a further turn."""
        cited = tuple(dict.fromkeys(citation.number for citation in citations if citation.passage))
        return replace(self, turns=(*self.turns, Turn(question, answer, cited))[-_MOST_TURNS:])

    @property
    def recent(self) -> tuple[Turn, ...]:
        """The turns that a model reads again: the last ones that fit."""
        size, count = 0, 0
        for turn in reversed(self.turns):
            size += len(turn.question) + len(turn.answer)
            if size > _MOST_HISTORY:
                break
            count += 1
        return self.turns[len(self.turns) - count :]


@dataclass(frozen=True, slots=True)
class Read:
    """What became of passages that were found.

    Attributes:
        new: those that are to be shown.
        again: the numbers of passages that were shown before, and hold others of them.
        left_out: how many did not fit.
    """

    new: tuple[Passage, ...]
    again: tuple[int, ...]
    left_out: int = 0


@dataclass(slots=True, eq=False)
class Reading:
    """Grows while an agent looks further.

    Attributes:
        conversation: that the answer belongs to, with all passages so far.
        shown: the passages that the model reads.
    """

    conversation: Conversation
    shown: list[Passage] = field(default_factory=list)

    def begin(self, context: Context) -> tuple[Passage, ...]:
        """Take what was found for the question; gives what the model reads, what the last answer cites included."""
        self.conversation, read = self.conversation.found(context)
        self.shown += read
        return read

    def add(self, context: Context, fits: Callable[[Read], bool] = lambda _: True) -> Read:
        """Take what was found further, as many of the passages as fit.

        Args:
            context: passages, in the order in which they are shown.
            fits: whether some may be shown together.
        """
        holding = [self._holding(passage) for passage in context.passages]
        fresh = [passage for passage, number in zip(context.passages, holding, strict=True) if number is None]
        again = tuple(sorted({number for number in holding if number is not None}))
        for count in range(len(fresh), -1, -1):
            going_on, new = self.conversation.looked_up(replace(context, passages=tuple(fresh[:count])))
            read = Read(new, again, len(fresh) - count)
            if fits(read):
                break
        self.conversation = going_on
        self.shown += read.new
        return read

    def _holding(self, found: ContextPassage) -> int | None:
        """The number of a passage that was shown and holds this one."""
        text = visible(found.text)
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
