"""Ranking the documents of a cell by the statistics of all cells."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
from tantivy import Query

from docindex_dagster.core.layout import Layout
from docindex_dagster.stores import tantivy_index
from docindex_dagster.stores.reader import Reader, open_reader
from tests.conftest import chunks_of, publish_rows, vectors_of

KEY = "library/sample"
TEXTS = ["water the dry field of wheat", "turn the gear", "slip"]


@pytest.fixture
def reader(layout: Layout) -> Reader:
    chunks = chunks_of({"farm/field.py": TEXTS}, KEY)
    publish_rows(layout, KEY, chunks, vectors_of(chunks))
    return open_reader(layout)


def of_searcher(reader: Reader, averages: dict[str, float]) -> dict[str, float]:
    """The average lengths by which a searcher ranks, as it explains a score."""
    own = reader.padding.searcher(averages)
    found = {}
    for name, word in (("body", "wheat"), ("symbols", "water"), ("path_terms", "farm")):
        query = Query.term_query(reader.index.schema, name, word)
        ((_, address),) = own.searcher.search(query, limit=1).hits
        explained = query.explain(own.searcher, address).to_json()
        (found[name],) = (part["value"] for part in parts(json.loads(explained)) if "avgdl" in part["description"][:5])
    return found


def parts(explained):
    yield explained
    for detail in explained.get("details", ()):
        yield from parts(detail)


def test_the_lengths_of_fields_are_known(reader: Reader) -> None:
    lengths = reader.padding.lengths

    assert lengths.documents == 3
    assert lengths.tokens["body"] == pytest.approx(sum(len(text.split()) for text in TEXTS))
    assert lengths.tokens["path_terms"] == pytest.approx(3 * len(["farm", "field", "py"]))
    assert lengths.tokens["headings"] == 0


def test_deleted_documents_count_until_they_are_merged_away(layout: Layout) -> None:
    """As they do in the scores of the index that has them."""
    for files in ({"field.py": ["wheat"], "gear.py": ["gear"]}, {"field.py": ["wheat"]}):
        chunks = chunks_of(files, KEY)
        publish_rows(layout, KEY, chunks, vectors_of(chunks))
    reader = open_reader(layout)

    assert reader.searcher.num_docs == 1
    assert reader.padding.lengths.documents == 2


@pytest.mark.parametrize(
    "averages",
    [
        {"body": 40.0, "symbols": 12.0, "path_terms": 9.0, "headings": 0.0},  # longer ones elsewhere
        {"body": 1.5, "symbols": 1.1, "path_terms": 2.0, "headings": 0.0},  # shorter ones
        {"body": 1.5, "symbols": 12.0, "path_terms": 3.0, "headings": 2.0},
    ],
)
def test_a_cell_ranks_by_the_averages_of_all_cells(reader: Reader, averages: dict[str, float]) -> None:
    found = of_searcher(reader, averages)

    # Whole tokens of few documents: of thousands, the error is a thousandth of this.
    assert found == pytest.approx({name: averages[name] for name in found}, rel=0.1)


def test_no_search_finds_the_padding(reader: Reader) -> None:
    own = reader.padding.searcher({"body": 1.5, "symbols": 12.0, "path_terms": 3.0, "headings": 2.0})

    assert own.documents == own.searcher.num_docs > reader.searcher.num_docs
    rows = tantivy_index.held(own.searcher, reader.index.schema, [KEY])
    assert rows.num_rows == len(TEXTS)
    assert own.searcher.doc_freq("body", "wheat") == 1


def test_searches_that_wait_for_the_same_averages_share_what_is_made(reader: Reader) -> None:
    averages = {"body": 1.5, "symbols": 12.0, "path_terms": 3.0, "headings": 2.0}

    with ThreadPoolExecutor(8) as searches:
        found = list(searches.map(lambda _: reader.padding.searcher(averages).searcher, range(8)))

    assert all(searcher is found[0] for searcher in found)


def test_only_the_last_averages_stay_open(reader: Reader) -> None:
    first, *others = ({"body": length} for length in (1.5, 2.5, 3.5, 2.5))

    before = reader.padding.searcher(first)
    second, third, again = map(reader.padding.searcher, others)

    assert again is second is not third
    assert reader.padding.searcher(first) is not before


def test_an_index_that_was_made_anew_is_not_taken_for_the_one_before(layout: Layout) -> None:
    """Its generations are counted from one again."""
    found = []
    for texts in (TEXTS, TEXTS[:1]):
        chunks = chunks_of({"farm/field.py": texts}, KEY)
        publish_rows(layout, KEY, chunks, vectors_of(chunks))
        reader = open_reader(layout)
        own = reader.padding.searcher({"body": 4.0})
        found.append(
            (reader.generation.number, reader.padding.lengths.documents, own.searcher.doc_freq("body", "slip"))
        )
        shutil.rmtree(layout.home)

    assert found == [(1, 3, 1), (1, 1, 0)]


def test_several_indexes_rank_as_one(tmp_path) -> None:
    texts = {"library/a": ["wheat and corn", "corn"], "library/b": ["corn in a dry field", "wheat wheat wheat"]}
    whole = Layout(tmp_path / "whole")
    parts = {key: Layout(tmp_path / key[-1]) for key in texts}
    for key, words in texts.items():
        chunks = chunks_of({"field.py": words}, key)
        for layout in (whole, parts[key]):
            publish_rows(layout, key, chunks, vectors_of(chunks))
    readers = [open_reader(layout) for layout in parts.values()]
    together = tantivy_index.open_together([one.layout.tantivy / one.generation.tantivy for one in readers])

    assert scores(together.searcher(), "wheat", "corn") == scores(open_reader(whole).searcher, "wheat", "corn")


def scores(searcher, *words: str) -> list[tuple[str, float]]:
    from tantivy import Occur

    schema = tantivy_index.schema()
    query = Query.boolean_query([(Occur.Should, Query.term_query(schema, "body", word)) for word in words])
    hits = searcher.search(query, limit=10).hits
    ids = tantivy_index.chunk_ids(searcher, [address for _, address in hits])
    return sorted(zip(ids, [score for score, _ in hits], strict=True))
