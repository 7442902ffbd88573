"""The LangChain retriever, tested in LangChain itself."""

import asyncio

import pytest

from docindex_dagster import QueryError, open_index
from docindex_dagster.integrations import Options

pytestmark = pytest.mark.integrations


@pytest.fixture
def retriever(root):
    from docindex_dagster.integrations.langchain import DocindexRetriever

    return lambda **options: DocindexRetriever(index=open_index(root), **options)


def test_documents_are_the_hits_of_a_search(root, retriever):
    hits = open_index(root).search("pump", top_k=3)
    found = retriever(top_k=3).invoke("pump")

    assert [(each.id, each.page_content, each.metadata["score"]) for each in found] == [
        (hit.chunk_id, hit.text, hit.score) for hit in hits
    ]
    assert len(found) == 3


def test_each_option_of_a_search_is_a_field(retriever):
    assert Options.__annotations__.keys() == type(retriever()).model_fields.keys() - {
        "index",
        "metadata",
        "name",
        "tags",
    }


@pytest.mark.parametrize(
    ("options", "paths"),
    [
        ({"sources": "manual"}, {"guide.md"}),
        ({"languages": ["python"], "path": "src/st*"}, {"src/station.py"}),
        ({"symbol_kinds": "function", "mode": "bm25"}, {"src/pump.py", "src/station.py"}),
        ({"source_types": "doc", "mode": "vector"}, {"guide.md"}),
        ({"mode": "regex", "path": "src"}, {"src/pump.py", "src/station.py"}),
    ],
)
def test_options_narrow_the_search(options, paths, retriever):
    assert {each.metadata["path"] for each in retriever(**options).invoke("pump")} == paths


def test_an_event_loop_goes_on_while_a_search_works(retriever):
    asked = retriever(top_k=2)

    async def ask() -> list[str]:
        answers = await asyncio.gather(asked.ainvoke("pump"), asked.ainvoke("well"))
        return [document.id for documents in answers for document in documents]

    assert asyncio.run(ask()) == [each.id for documents in asked.batch(["pump", "well"]) for each in documents]


def test_what_is_wrong_is_refused_before_or_by_the_search(retriever):
    with pytest.raises(ValueError, match="mode"):
        retriever(mode="telepathy")
    with pytest.raises(ValueError, match="top_k"):
        retriever(top_k=0)
    with pytest.raises(ValueError, match="language\n"):
        retriever(language="python")
    with pytest.raises(QueryError, match="klingon"):
        retriever(languages="klingon").invoke("pump")


def test_callbacks_hear_of_the_search_and_of_its_failure(retriever):
    from langchain_core.callbacks import BaseCallbackHandler

    heard: list[object] = []

    class Handler(BaseCallbackHandler):
        def on_retriever_end(self, documents, **_):
            heard.append(len(documents))

        def on_retriever_error(self, error, **_):
            heard.append(type(error))

    retriever(top_k=1).invoke("pump", {"callbacks": [Handler()]})
    with pytest.raises(QueryError):
        retriever().invoke(" ", {"callbacks": [Handler()]})

    assert heard == [1, QueryError]
