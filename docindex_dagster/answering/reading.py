"""What a model has read for an answer so far: passages under the numbers of the conversation."""

from dataclasses import dataclass

from docindex_dagster.answering.conversation import Conversation
from docindex_dagster.answering.passages import Passage
from docindex_dagster.search.context import Context


@dataclass(slots=True, eq=False)
class Reading:
    """Grows while an agent looks further.

    Attributes:
        conversation: that the answer belongs to, with all passages so far.
    """

    conversation: Conversation

    def begin(self, context: Context) -> tuple[Passage, ...]:
        """Take what was found for the question; gives what the model reads, what the last answer cites included."""
        self.conversation, read = self.conversation.found(context)
        return read

    def add(self, context: Context) -> tuple[Passage, ...]:
        """Take what was found further; gives its passages."""
        self.conversation, found = self.conversation.looked_up(context)
        return found
