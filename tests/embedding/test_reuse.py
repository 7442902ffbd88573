"""Vectors are reused from the previous table, from rows that a branch dropped, and from other branches."""

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from docindex_dagster.core import tables
from docindex_dagster.core.layout import Layout
from docindex_dagster.embedding import cache
from docindex_dagster.embedding.build import EmbeddingResult
from docindex_dagster.embedding.cache import VectorCache, embed
from docindex_dagster.embedding.static import StaticEmbedder
from tests.conftest import chunks_of
from tests.embedding.test_build import CountingEmbedder

FIRST = {"a.py": ["alpha reads a file", "beta writes a file"]}
SECOND = {"a.py": ["alpha reads a page", "beta writes a page"]}
KEY = "git/sample"


def index(layout: Layout, files: dict[str, list[str]], key: str = KEY, *, full: bool = False) -> EmbeddingResult:
    """Embed a state of a source like a run."""
    table = layout.table("embeddings", key)
    chunks = chunks_of(files, key)
    result = embed(layout, key, chunks, None if full else tables.read(table), CountingEmbedder(), full=full)
    tables.write(table, result.table)
    cache.clear_spill(layout, key, result.table)
    return result


def test_switching_to_a_branch_and_back_embeds_nothing_that_was_seen_before(layout):
    assert index(layout, FIRST).embedded == 2
    assert index(layout, SECOND).embedded == 2

    for files in (FIRST, SECOND, FIRST):
        again = index(layout, files)
        assert again.embedded == 0
        assert again.reused == 2
        assert again.table.equals(index(Layout(layout.home / "fresh"), files, full=True).table)


def test_another_branch_takes_its_vectors_from_the_first(layout):
    index(layout, FIRST)

    assert index(layout, FIRST, f"{KEY}@feature/x").embedded == 0
    assert index(layout, FIRST | {"b.py": ["gamma sorts numbers"]}, f"{KEY}@feature/x").embedded == 1


def test_other_repositories_and_libraries_share_nothing(layout):
    index(layout, FIRST)

    assert index(layout, FIRST, "git/sample2").embedded == 2
    assert index(layout, FIRST, "library/sample").embedded == 2
    assert index(layout, FIRST, "library/sample@odd").embedded == 2


def test_a_full_run_takes_nothing_over_and_forgets_what_was_kept(layout):
    index(layout, FIRST)
    index(layout, SECOND)

    assert index(layout, FIRST, full=True).embedded == 2
    assert index(layout, SECOND).embedded == 2


def test_a_damaged_part_costs_its_vectors_only(layout):
    index(layout, FIRST)
    index(layout, SECOND)
    (part,) = layout.cached_vectors(KEY, StaticEmbedder.name).glob("*.parquet")
    part.write_bytes(b"PAR1 and no more")

    assert index(layout, FIRST).embedded == 2


def test_what_is_kept_stays_bounded_and_the_newest_is_kept(layout, monkeypatch):
    monkeypatch.setattr(cache, "_MIN_LIMIT_ROWS", 10)
    for number in range(40):
        index(layout, {"a.py": [f"alpha{number} reads a file"]})

    parts = list(layout.cached_vectors(KEY, StaticEmbedder.name).iterdir())
    assert len(parts) <= 9
    assert sum(tables.read(part).num_rows for part in parts) <= 10 + 8
    assert index(layout, {"a.py": ["alpha38 reads a file"]}).embedded == 0


def test_texts_that_come_and_go_do_not_pile_up(layout):
    for files in (FIRST, SECOND) * 20:
        index(layout, files)

    assert sum(table.num_rows for table in VectorCache(layout, KEY).tables(StaticEmbedder.name)) <= 4 + 8 * 2
    assert index(layout, FIRST).embedded == 0


def lost(text: str) -> pa.Table:
    """Return a row with a vector that its source no longer needs."""
    vector = pa.FixedSizeListArray.from_arrays(pa.array([1.0, 2.0], pa.float16()), 2)
    return pa.table({"embed_text_hash": [text], "model": ["m"], "vector": vector})


def kept_texts(layout: Layout) -> list[str]:
    return [text for table in VectorCache(layout, KEY).tables("m") for text in table["embed_text_hash"].to_pylist()]


def test_branches_that_lose_vectors_concurrently_keep_all_of_them(layout):
    def lose(branch: str) -> list[str]:
        texts = [f"{branch}{number}" for number in range(30)]
        for text in texts:
            VectorCache(layout, f"{KEY}@{branch}").add(lost(text))
        return texts

    with ThreadPoolExecutor(3) as branches:
        every = [text for texts in branches.map(lose, "abc") for text in texts]

    assert set(kept_texts(layout)) == set(every)


@pytest.mark.parametrize("content", [b"PAR1 and no more", None], ids=["damaged", "of another shape"])
def test_parts_none_of_which_can_be_used_are_dropped(layout, content):
    folder = layout.cached_vectors(KEY, "m")
    folder.mkdir(parents=True)
    for number in range(1, 9):
        part = folder / f"{number:08d}.parquet"
        if content is None:
            tables.write(part, pa.table({"other": [1]}))
        else:
            part.write_bytes(content)

    VectorCache(layout, KEY)._merge("m", 10)  # as if another run had already merged the readable parts

    assert list(folder.iterdir()) == []
