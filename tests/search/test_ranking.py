"""Ranking signals for code, each tested alone on an index of a few files."""

import pyarrow as pa
import pytest

from docindex_dagster.core.layout import Layout
from docindex_dagster.core.schemas import CHUNKS
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.search.engine import search
from docindex_dagster.search.model import Granularity, Hit, Mode
from docindex_dagster.search.weights import WEIGHTS
from docindex_dagster.stores.reader import Reader, open_reader
from tests.conftest import chunks_of, publish_rows, vectors_of

FILES = {
    "lib/caller.py": ["run calls parse_token and parse_token and parse_token"],
    "lib/tokens.py": ["parse_token reads a token"],
    "lib/retry.py": ["attempt waits before it goes on"],
    "lib/waiting.py": ["pause waits before it goes on"],
    "tests/test_flow.py": ["test_flow opens and closes the valve of the pump"],
    "lib/flow.py": ["flow opens the valve of the pump after a while, and some time later closes it again"],
    "lib/big.py": ["one ferries goods", "two ferries goods", "three ferries goods", "four ferries goods"],
    "lib/small.py": ["ship ferries a few goods over"],
    "docs/mill.md": ["Milling describes how a mill grinds the corn"],
    "lib/mill.py": ["mill grinds the corn"],
    "tests/test_birds.py": ["test_birds names a zebrafinch2 among others, and counts the feathers of each"],
    "lib/birds.py": ["bird 2 has feathers, and a name among others", "bird 7 has two feathers"],
    "lib/cats.py": ["cat 2 of cat 7", "cat 7 after cat 2"],
    "notes/birds.md": ["Kinds of birds are a wren and a jackdaw7"],
}
TYPES = {
    "tests/test_flow.py": "test",
    "docs/mill.md": "doc",
    "tests/test_birds.py": "test",
    "notes/birds.md": "doc",
}


@pytest.fixture(scope="module")
def reader(tmp_path_factory) -> Reader:
    layout = Layout(tmp_path_factory.mktemp("index"))
    chunks = chunks_of(FILES)
    types = [TYPES.get(path, "code") for path in chunks["path"].to_pylist()]
    chunks = chunks.set_column(CHUNKS.get_field_index("source_type"), CHUNKS.field("source_type"), pa.array(types))
    publish_rows(layout, "library/sample", chunks, vectors_of(chunks))
    return open_reader(layout)


def find(reader: Reader, query: str) -> list[Hit]:
    return search(reader, query, StaticEmbedder, mode=Mode.BM25)


def paths(reader: Reader, query: str) -> list[str]:
    return [hit.path for hit in find(reader, query)]


def test_the_definition_of_a_symbol_comes_before_its_uses(reader):
    assert paths(reader, "parse_token")[0] == "lib/tokens.py"


def test_a_file_whose_name_says_it_comes_first(reader):
    assert paths(reader, "retrying waits before it goes on")[0] == "lib/retry.py"


def test_tests_stand_back_unless_they_are_asked_for(reader):
    assert paths(reader, "opens and closes the valve of the pump")[0] == "lib/flow.py"
    assert paths(reader, "test that opens and closes the valve of the pump")[0] == "tests/test_flow.py"


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("zebrafinch2", "tests/test_birds.py"),
        ("jackdaw7", "notes/birds.md"),
        ("names of jackdaw7", "notes/birds.md"),
    ],
)
@pytest.mark.parametrize("mode", [Mode.BM25, Mode.HYBRID])
def test_a_word_that_only_a_test_or_a_document_has_leads_to_it(reader, query, path, mode):
    assert search(reader, query, StaticEmbedder, mode=mode)[0].path == path


def test_a_test_stands_back_where_code_has_its_words(reader):
    assert paths(reader, "names and feathers among others")[0] == "lib/birds.py"


@pytest.mark.parametrize(
    ("query", "path", "share"),
    [
        ("what grinds the corn in a mill", "docs/mill.md", 0.0),  # questions ask about the content of documents
        ("grinds the corn in a mill", "docs/mill.md", 0.5),
        ("grinds the corn, see mill.md for a mill", "docs/mill.md", 1.0),
        ("grinds the corn in a mill", "lib/mill.py", 1.0),
    ],
)
def test_a_sentence_that_names_a_document_says_less_than_one_that_writes_its_name(reader, query, path, share):
    (hit,) = [hit for hit in find(reader, query) if hit.path == path]
    gained = {signal.name: signal.contribution for signal in hit.signals}

    assert gained.get("path", 0.0) == pytest.approx(share * WEIGHTS.path * gained["bm25"])


def test_documents_come_first_where_a_question_asks_for_them(reader):
    assert paths(reader, "what grinds the corn")[0] == "docs/mill.md"
    assert paths(reader, "grinds the corn")[0] == "lib/mill.py"


def test_one_file_does_not_fill_the_first_page(reader):
    found = paths(reader, "ferries goods")

    assert "lib/small.py" in found[:4]
    assert found.count("lib/big.py") == 4


def test_a_name_with_a_typing_error_is_found(reader):
    assert paths(reader, "parse_tokem")[0] == "lib/tokens.py"


def test_other_forms_of_a_word_are_found(reader):
    assert "lib/mill.py" in paths(reader, "corn grinding")


@pytest.mark.parametrize("query", ["parse_token", "opens the valve", "ferries goods", "how does a mill grind"])
def test_the_contributions_of_the_signals_add_up_to_the_score(reader, query):
    for hit in find(reader, query):
        assert hit.score == pytest.approx(sum(signal.contribution for signal in hit.signals))


def test_with_granularity_file_no_file_is_shown_twice_not_even_as_a_copy_in_another_source(tmp_path):
    layout = Layout(tmp_path / "home")
    for source in ("library/one", "library/two"):
        chunks = chunks_of({path: FILES[path] for path in ("lib/big.py", "lib/small.py")}, source)
        publish_rows(layout, source, chunks, vectors_of(chunks))
    copied = open_reader(layout)

    found = search(copied, "ferries goods", StaticEmbedder, mode=Mode.BM25, granularity=Granularity.FILE)

    assert sorted(hit.path for hit in found) == ["lib/big.py", "lib/small.py"]
    assert len(search(copied, "ferries goods", StaticEmbedder, mode=Mode.BM25)) == 10


@pytest.mark.parametrize("mode", [Mode.BM25, Mode.HYBRID])
def test_with_granularity_file_one_large_file_does_not_keep_the_others_out(tmp_path, mode):
    layout = Layout(tmp_path / "home")
    large = {"docs/reference.md": [f"entry_{at} ferries goods goods goods goods" for at in range(300)]}
    small = {f"lib/part{at}.py": [f"ferry_{at} ferries goods and says much else of it"] for at in range(12)}
    chunks = chunks_of(large | small)
    publish_rows(layout, "library/sample", chunks, vectors_of(chunks))

    found = search(
        open_reader(layout), "ferries goods", StaticEmbedder, mode=mode, granularity=Granularity.FILE, top_k=10
    )

    assert len({hit.path for hit in found}) == 10
