"""Searching an index that is split over cells as if it were one.

The files are those of this project: some packages and its documentation, each a source.
"""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import docindex_dagster
from docindex_dagster.core.errors import QueryError, StoreError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import CONFIG_NAME, load_settings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.graph.walk import walk
from docindex_dagster.objects.cells import cell_of
from docindex_dagster.runner.run import index
from docindex_dagster.search.ask import Request, hits_of
from docindex_dagster.search.candidates import Pool
from docindex_dagster.search.cells import Cells, Index, LocalCell, Question
from docindex_dagster.search.closeness import AskSpelt
from docindex_dagster.search.counts import AskCounts
from docindex_dagster.search.engine import search
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.gather import gathered
from docindex_dagster.search.lookup import AskFile, check_filters, find_chunks
from docindex_dagster.search.matches import find_matches
from docindex_dagster.search.model import Granularity, Hit, Mode
from docindex_dagster.search.naming import AskNaming
from docindex_dagster.search.scan import Pattern
from docindex_dagster.search.similar import similar
from docindex_dagster.sources import registry
from docindex_dagster.stores import matrix
from docindex_dagster.stores.analysis import stems
from docindex_dagster.stores.latest import LatestReader
from docindex_dagster.stores.reader import Reader, open_reader
from docindex_dagster.stores.together import generation_of, open_together
from tests.conftest import chunks_of, publish_rows, vectors_of

PACKAGE = Path(docindex_dagster.__file__).parent
ROOMS = ("stores", "search", "status", "llm", "pipeline", "embedding")
SOURCES = (*(PACKAGE / room for room in ROOMS), PACKAGE.parent / "docs")
CELLS = 2
MODEL = StaticEmbedder()


@dataclass(frozen=True)
class Split:
    """The same sources in one index, and split over cells."""

    whole: Reader
    parts: tuple[Reader, ...]

    @property
    def cells(self) -> Cells:
        return cells_of(self.parts)


def cells_of(readers: Sequence[Reader]) -> Cells:
    return Cells(tuple(map(LocalCell, readers)), generation_of([reader.generation for reader in readers]))


def indexed(root: Path, folders: Sequence[Path]) -> Reader:
    root.mkdir()
    (root / CONFIG_NAME).write_text("".join(f'[[source]]\nkind = "library"\npath = "{path}"\n' for path in folders))
    settings = load_settings(root)
    for source in registry.sources(settings).values():
        index(settings, source, MODEL)
    return open_reader(Layout(settings.home))


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Split:
    root = tmp_path_factory.mktemp("cells")
    held = {cell: [path for path in SOURCES if cell_of(f"library/{path.name}", CELLS) == cell] for cell in range(CELLS)}
    assert all(len(folders) > 1 for folders in held.values())
    parts = tuple(indexed(root / f"cell{cell}", folders) for cell, folders in held.items())
    return Split(indexed(root / "whole", SOURCES), parts)


@pytest.fixture(params=["cells", "together"])
def parts(split: Split, request: pytest.FixtureRequest) -> Index:
    """The cells, each of which answers for itself, or all on one machine, whose stores are opened as one."""
    return split.cells if request.param == "cells" else open_together([reader.layout for reader in split.parts])


def queries() -> list[str]:
    """What each module and function of some packages is for, in the words of who wrote it."""
    found = []
    for file in sorted(
        path for room in ("chunking", "graph", "search", "stores") for path in (PACKAGE / room).glob("*.py")
    ):
        module = ast.parse(file.read_text())
        documented: list[ast.Module | ast.FunctionDef] = [module]
        documented += [part for part in module.body if isinstance(part, ast.FunctionDef)]
        found += [text.splitlines()[0] for part in documented if (text := ast.get_docstring(part))]
    return found[::6]


def found_by(index: Index, query: str, **options) -> list[Hit]:
    return search(index, query, lambda: MODEL, **options)


def ids(hits: Sequence[Hit]) -> list[str]:
    return [hit.chunk_id for hit in hits]


def assert_alike(split: Split, parts: Index, texts: Sequence[str], **options) -> None:
    """As near as can be: lengths are right to four digits, so that chunks that are as good may change places."""
    both = [[found_by(index, text, **options) for index in (split.whole, parts)] for text in texts]
    assert sum(len({*ids(one)} & {*ids(two)}) for one, two in both) >= 0.995 * sum(len(one) for one, _ in both)
    assert sum(ids(one) == ids(two) or are_as_good(one, two) for one, two in both) >= 0.95 * len(both)


def are_as_good(one: Sequence[Hit], two: Sequence[Hit]) -> bool:
    """Whether the same chunks have changed places with others of the same score alone."""
    scores = [hit.score for hit in one]
    return {*ids(one)} == {*ids(two)} and [hit.score for hit in two] == pytest.approx(scores, rel=1e-4)


@pytest.mark.parametrize("mode", [Mode.HYBRID, Mode.BM25, Mode.VECTOR])
def test_a_search_finds_what_it_finds_in_one_index(split: Split, parts: Index, mode: Mode) -> None:
    assert len(queries()) >= 100

    # Stores that are opened as one are asked what one index is asked; and both ways are part of the hybrid one.
    asked = queries() if mode is Mode.HYBRID else queries()[::3]
    assert_alike(split, parts, asked if isinstance(parts, Cells) else asked[:20], mode=mode)


def test_a_machine_that_has_several_cells_answers_as_one_cell(split: Split) -> None:
    of_two = open_together([reader.layout for reader in split.parts])

    assert_alike(split, cells_of([of_two]), queries()[:20])


def test_answers_of_all_cells_are_put_together(split: Split) -> None:
    """Each cell has a part of these answers."""
    questions: list[Question[Any]] = [
        AskNaming(stems(["index"]), tuple(split.whole.generation.sources)),
        AskCounts([("body", stems(["publication"])[0]), ("path_terms", "py"), ("symbols", "open_reader")]),
        AskSpelt([(word, stems([word])[0]) for word in ("part_alone", "tokens_per_minute", "quokka")], Filters()),
        AskFile("__init__.py"),
    ]
    for question in questions:
        parts = [question.of(reader) for reader in split.parts]
        assert question.of(split.whole) == split.cells.ask(question) not in parts


def test_scores_are_those_of_one_index(split: Split, parts: Index) -> None:
    text = "how a reader opens the published generation"

    whole, found = (found_by(index, text, mode=Mode.BM25) for index in (split.whole, parts))

    assert [hit.score for hit in found] == pytest.approx([hit.score for hit in whole], rel=1e-3)


@pytest.mark.parametrize(
    "options",
    [
        {"granularity": Granularity.FILE},
        {"filters": Filters(sources=("library/stores", "library/docs", "library/llm"))},
        {"filters": Filters(source_types=("doc",))},
        {"filters": Filters(path_glob="re*.py")},
    ],
    ids=repr,
)
def test_the_options_of_a_search_mean_the_same(split: Split, parts: Index, options: Mapping[str, object]) -> None:
    assert_alike(split, parts, queries()[:20], **options)


@pytest.mark.parametrize("text", ["publish in stores", "sensor", "patience in search", "open_reader", "opn_reader"])
def test_names_of_sources_and_of_symbols_mean_the_same(split: Split, parts: Index, text: str) -> None:
    assert ids(found_by(parts, text)) == ids(found_by(split.whole, text))


@pytest.mark.parametrize("text", ["zyzzyva quokka", "quokka", "reconcile the marmot", "publish", "publsih"])
def test_what_is_nowhere_in_any_cell_is_doubted(split: Split, parts: Index, text: str) -> None:
    whole, found = list[str](), list[str]()

    found_by(split.whole, text, warn=whole.append)
    found_by(parts, text, warn=found.append)

    assert found == whole


@pytest.mark.parametrize(("mode", "text"), [(Mode.LITERAL, "frozen=True, slots"), (Mode.REGEX, r"def _\w+\(")])
def test_texts_are_read_in_all_cells(split: Split, parts: Index, mode: Mode, text: str) -> None:
    whole = ids(found_by(split.whole, text, mode=mode, top_k=50))

    assert len(whole) == 50
    assert ids(found_by(parts, text, mode=mode, top_k=50)) == whole


def test_every_place_of_a_text_is_listed(split: Split) -> None:
    pattern = Pattern("dataclass", is_regex=False)

    cells = cells_of(split.parts[::-1])  # their order means nothing
    whole, parts = (find_matches(Pool(index, Filters(), 25), pattern) for index in (split.whole, cells))

    assert len(parts.matches) == 25
    assert parts == whole
    assert find_matches(Pool(split.cells, Filters(), 0), pattern).matches[:25] == parts.matches


@pytest.mark.parametrize("place", ["reader.py", "reader.py:30", "library/stores::reader.py::1", "__init__.py"])
def test_places_are_found_in_whatever_cell_they_are(split: Split, parts: Index, place: str) -> None:
    assert find_chunks(parts, place) == find_chunks(split.whole, place)


def test_a_place_that_no_cell_has_is_an_error(split: Split, parts: Index) -> None:
    with pytest.raises(QueryError, match="last line that is indexed"):
        find_chunks(parts, "reader.py:100000")
    with pytest.raises(QueryError, match="no indexed file"):
        check_filters(parts, Filters(languages=("cobol",)))
    check_filters(parts, Filters(path_glob="reader.py"))


def test_what_resembles_a_place_is_found_in_all_cells(split: Split, parts: Index) -> None:
    whole, found = (
        similar(index, "reader.py:40", ("library/stores",), filters=Filters(), top_k=20)
        for index in (split.whole, parts)
    )

    assert ids(found) == ids(whole)
    assert len({cell_of(hit.source, CELLS) for hit in found}) == CELLS


def test_vectors_that_do_not_fit_into_memory_are_asked_of_each_table(split: Split, monkeypatch) -> None:
    monkeypatch.setattr(matrix, "_MOST_BYTES", 0)
    whole, together = open_reader(split.whole.layout), open_together([reader.layout for reader in split.parts])

    assert together.matrix is None
    assert_alike(split, together, queries()[:40], mode=Mode.VECTOR)
    places = [
        ids(similar(index, "reader.py:40", ("library/stores",), filters=Filters(), top_k=20))
        for index in (whole, together)
    ]
    assert places[0] == places[1] != []


def test_the_graph_of_all_cells_on_a_machine_is_one(split: Split) -> None:
    together = open_together([reader.layout for reader in split.parts])

    assert together.graph.nodes.num_rows == split.whole.graph.nodes.num_rows
    assert together.graph.edges.num_rows == split.whole.graph.edges.num_rows
    links = [walk(reader.links, {chunk_id: 1.0}) for reader in split.parts for chunk_id in _linked(reader)[:5]]
    assert links == [
        walk(together.links, {chunk_id: 1.0}) for reader in split.parts for chunk_id in _linked(reader)[:5]
    ]
    assert all(links)


def _linked(reader: Reader) -> list[str]:
    """The chunks that the graph links with others."""
    links = reader.links
    found: list[str] = links.chunk_ids.take(pa.array(np.flatnonzero(np.diff(links.begins)))).to_pylist()
    return found


def test_a_program_that_lives_sees_what_each_cell_publishes(tmp_path: Path) -> None:
    first, second = (Layout(tmp_path / name) for name in ("first", "second"))
    latest = LatestReader(first, second)
    with pytest.raises(StoreError, match="nothing is indexed"):
        latest.reader()

    for layout, key, expected in ((first, "library/a", 1), (second, "library/b", 2)):
        chunks = chunks_of({"field.py": ["wheat"]}, key)
        publish_rows(layout, key, chunks, vectors_of(chunks))
        reader = latest.reader()
        assert len(found_by(reader, "wheat")) == len(reader.generation.sources) == expected
        assert latest.reader() is reader


def test_where_a_cell_was_never_brought_here_an_answer_says_it(split: Split, tmp_path: Path) -> None:
    empty, there = Layout(tmp_path / "empty"), split.parts[0].layout
    settings, of_it = load_settings(tmp_path), next(iter(split.parts[0].generation.sources))
    whole, part = (open_together(layouts) for layouts in ([split.parts[1].layout, there], [empty, there]))

    def warnings(reader: Reader, *sources: str) -> list[str]:
        found = list[str]()
        hits_of(settings, reader, Request("wheat", Mode.BM25, filters=Filters(sources=sources)), found.append)
        return [warning for warning in found if "cell" in warning]

    assert warnings(whole) == []
    assert str(empty.home) in warnings(part)[0]
    assert warnings(part, of_it) == []


def test_walks_in_the_graph_stay_within_a_cell(split: Split) -> None:
    """What one source calls in another of the same cell is followed, and not what it calls in another cell."""
    text = "open the published generation"
    hits = found_by(split.cells, text, top_k=30)

    read = gathered(Pool(split.cells, Filters(), 30), text, hits)

    assert {*ids(hits)} < {*ids(read)}
    alone = cells_of(split.parts[:1])
    hits = found_by(alone, text, top_k=30)
    of_one = gathered(Pool(split.parts[0], Filters(), 30), text, hits)
    assert gathered(Pool(alone, Filters(), 30), text, hits) == of_one


def test_cells_of_several_models_are_not_searched_together(split: Split) -> None:
    first, second = (reader.generation for reader in split.parts)

    with pytest.raises(StoreError, match="different models"):
        generation_of([first, replace(second, model="another")])


def test_the_number_of_what_is_searched_grows_with_each_publication(split: Split) -> None:
    first, second = (reader.generation for reader in split.parts)

    before = generation_of([first, second])

    assert {*before.sources} == {*split.whole.generation.sources}
    assert generation_of([first, replace(second, number=second.number + 1)]).number > before.number
