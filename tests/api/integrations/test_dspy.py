"""The DSPy retriever, tested in DSPy itself."""

import asyncio

import pytest

from docindex_dagster import QueryError, open_index

pytestmark = pytest.mark.integrations


def test_passages_are_the_hits_of_a_search(root):
    from docindex_dagster.integrations.dspy import retriever

    index = open_index(root)
    found = retriever(index, top_k=2, sources="station")("pump")
    hits = index.search("pump", top_k=2, sources="station")

    assert found.passages == [hit.text for hit in hits]
    assert [each["score"] for each in found.metadata] == [hit.score for hit in hits]
    assert len(hits) == 2


def test_it_is_a_step_of_a_module_that_can_be_copied(root):
    import dspy

    from docindex_dagster.integrations.dspy import retriever

    class Looks(dspy.Module):
        def __init__(self):
            self.search = retriever(open_index(root), top_k=1)

        def forward(self, question):
            return self.search(question)

    looks = Looks()

    assert looks.deepcopy()(question="pump").passages == looks(question="pump").passages != []


def test_it_is_a_tool_that_says_what_it_does_and_takes(root):
    import dspy

    from docindex_dagster.integrations.dspy import retriever

    tool = dspy.Tool(retriever(open_index(root), top_k=1))

    assert tool.name == "search"
    assert "code and documentation" in tool.desc
    assert tool.args == {"query": {"type": "string"}}
    assert tool(query="pump").passages
    assert asyncio.run(dspy.asyncify(tool.func)("pump")).passages == tool(query="pump").passages


def test_what_is_wrong_is_refused_by_the_search(root):
    from docindex_dagster.integrations.dspy import retriever

    with pytest.raises(QueryError, match="empty"):
        retriever(open_index(root))(" ")
