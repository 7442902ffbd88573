"""What a model has read for an answer so far: passages under the numbers of the conversation."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from docindex_dagster.answering.conversation import Conversation
from docindex_dagster.answering.passages import Passage
from docindex_dagster.core.printable import visible
from docindex_dagster.search.context import Context, ContextPassage


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
