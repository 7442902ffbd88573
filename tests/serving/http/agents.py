"""What happens while an agent answers, whatever it is asked: two steps, with words before the first one."""

from docindex_dagster.answering.citations import check
from docindex_dagster.answering.conversation import Conversation
from docindex_dagster.answering.events import Answer, Events, Found, Spent, Step
from docindex_dagster.llm.chat import Delta
from tests.answering.samples import passage

THOUGHT = "Let me look [1]."
TEXT = "It moves `water` [2], they say [9]."
FOUND, LOOKED = passage(1, "def pump(): ..."), passage(2, "def water(): ...", path="lib/water.py")


async def answer(*_: object) -> Events:
    """The events, in their order."""
    yield Found("pump", (FOUND,), (), 2, ())
    yield Delta(THOUGHT)
    yield Step("search", '{"query": "water"}', "1 passage", (LOOKED,))
    yield Step("rm", "{", "there is no such tool", is_error=True)
    yield Delta(TEXT)
    citations = tuple(check(TEXT, [FOUND, LOOKED]))
    yield Answer(TEXT, citations, Conversation().answered("?", TEXT, citations), "openai/small-1")
    yield Spent(10, 5, 0.01, 0.1, 0.2, 0.3)
