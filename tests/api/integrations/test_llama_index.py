"""The LlamaIndex retriever, tested in LlamaIndex itself."""

import asyncio

import pytest

from docindex_dagster import QueryError, open_index

pytestmark = pytest.mark.integrations


@pytest.fixture
def retriever(root):
    from docindex_dagster.integrations.llama_index import DocindexRetriever

    return lambda **options: DocindexRetriever(open_index(root), **options)


def test_nodes_are_the_hits_of_a_search(root, retriever):
    hits = open_index(root).search("pump", top_k=3)
    found = retriever(top_k=3).retrieve("pump")

    assert [(each.node_id, each.node.text, each.score) for each in found] == [
        (hit.chunk_id, hit.text, hit.score) for hit in hits
    ]
    assert len(found) == 3


def test_a_language_model_sees_where_a_text_is_and_no_more(retriever):
    from llama_index.core.schema import MetadataMode

    (found,) = retriever(languages="python", path="src/station.py", top_k=1).retrieve("pump")
    shown = found.node.get_content(MetadataMode.LLM)

    assert "path: src/station.py" in shown
    assert "start_line: 1" in shown
    assert "score" not in shown
    assert "chunk_id" not in shown
    assert found.node.metadata["chunk_id"] == found.node_id


@pytest.mark.parametrize(
    ("options", "paths"),
    [
        ({"sources": "manual"}, {"guide.md"}),
        ({"languages": ["python"], "path": "src/st*"}, {"src/station.py"}),
        ({"mode": "literal", "source_types": "code"}, {"src/pump.py", "src/station.py"}),
    ],
)
def test_options_narrow_the_search(options, paths, retriever):
    assert {each.node.metadata["path"] for each in retriever(**options).retrieve("pump")} == paths


def test_an_event_loop_goes_on_while_a_search_works(retriever):
    asked = retriever(top_k=2)

    async def ask() -> list[list[str]]:
        answers = await asyncio.gather(asked.aretrieve("pump"), asked.aretrieve("well"))
        return [[each.node_id for each in nodes] for nodes in answers]

    assert asyncio.run(ask()) == [[each.node_id for each in asked.retrieve(query)] for query in ("pump", "well")]


def test_what_is_wrong_is_refused_by_the_search(retriever):
    with pytest.raises(QueryError, match="telepathy"):
        retriever(mode="telepathy").retrieve("pump")


def test_postprocessors_take_the_nodes(retriever):
    from llama_index.core.postprocessor import SimilarityPostprocessor

    found = retriever(top_k=3).retrieve("pump")
    best = SimilarityPostprocessor(similarity_cutoff=found[0].score).postprocess_nodes(found)

    assert [each.node_id for each in best][:1] == [found[0].node_id]
    assert len(best) < 3
