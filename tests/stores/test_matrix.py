"""Nearest vectors: exact search in memory, and search among candidates preselected by sign bits."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.stores import matrix as module
from docindex_dagster.stores.matrix import largest
from docindex_dagster.stores.parts import COLUMNS, Choose, Part, Parts

Ids = list[tuple[str, float]]


def part_of(name: str, vectors: np.ndarray) -> Part:
    ids = [f"{name}{row}" for row in range(len(vectors))]
    values = pa.array(vectors.astype(np.float16).ravel())
    columns = {
        "chunk_id": pa.array(ids, pa.string()),
        **{column: pa.array([name] * len(ids), pa.string()) for column in (*COLUMNS, "text")},
        "vector": pa.FixedSizeListArray.from_arrays(values, vectors.shape[1]),
    }
    return Part(pa.RecordBatch.from_pydict(columns))


def drawn(seed: int, *counts: int, dimension: int = 16) -> dict[str, Part]:
    random = np.random.default_rng(seed)
    return {
        name: part_of(name, random.standard_normal((count, dimension)))
        for name, count in zip("abcdefgh", counts, strict=False)
    }


def exact(parts: dict[str, Part], query: np.ndarray, allowed: set[str] | None = None) -> list[str]:
    """Return all ids, nearest first, computed in double precision."""
    found: list[tuple[float, str]] = []
    for part in parts.values():
        vectors = part.stored.astype(np.float64)
        cosines = vectors @ query / np.linalg.norm(vectors, axis=1)
        found += zip((-cosines).tolist(), part.ids.to_pylist(), strict=True)
    return [name for _, name in sorted(found) if allowed is None or name in allowed]


def unit(seed: int, dimension: int = 16) -> np.ndarray:
    query = np.random.default_rng(seed + 1).standard_normal(dimension)
    return (query / np.linalg.norm(query)).astype(np.float32)


def everything(rows: pa.Table) -> np.ndarray:
    return np.ones(rows.num_rows, np.bool_)


def evens(rows: pa.Table) -> np.ndarray:
    return np.array([int(name[1:]) % 2 == 0 for name in rows["chunk_id"].to_pylist()], np.bool_)


def ranked(found: list[tuple[str, float]]) -> list[str]:
    return [name for name, _ in sorted(found, key=lambda item: (-item[1], item[0]))]


def nearest(
    parts: dict[str, Part], query: np.ndarray, choose: Choose, limit: int, live: dict[str, np.ndarray] | None = None
) -> Ids:
    return Parts([(part, (live or {}).get(name)) for name, part in parts.items()]).nearest(query, choose, choose, limit)


@pytest.fixture(params=[True, False])
def is_exact(request, monkeypatch) -> None:
    """Compare all vectors, or only candidates selected by sign bits."""
    if not request.param:
        monkeypatch.setattr(module, "_MAX_BYTES", 0)


@given(
    values=st.lists(st.integers(-5, 5), min_size=1, max_size=400),
    limit=st.integers(1, 30),
)
def test_the_largest_values_are_found_with_all_that_equal_the_last(values, limit):
    array = np.array(values, np.float32)
    least = sorted(values)[-min(limit, len(values))]

    assert largest(array, limit).tolist() == [at for at, value in enumerate(values) if value >= least]


def test_the_largest_values_of_many_are_found():
    values = np.random.default_rng(0).standard_normal(50_001).astype(np.float32)

    assert largest(values, 100).tolist() == sorted(np.argsort(-values)[:100].tolist())


@pytest.mark.parametrize("most_bytes", [module._MAX_BYTES, 0])
@given(seed=st.integers(0, 100), counts=st.lists(st.integers(0, 60), min_size=1, max_size=6), limit=st.integers(1, 20))
def test_of_few_the_nearest_are_found_exactly(most_bytes, seed, counts, limit):
    parts, query = drawn(seed, *counts), unit(seed)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_MAX_BYTES", most_bytes)
        for name in ("_BLOCK", "_COMPARED"):
            patch.setattr(module, name, 7)  # gives each of two threads a block
        found = nearest(parts, query, everything, limit)

    assert ranked(found) == exact(parts, query)[:limit]


@pytest.mark.usefixtures("is_exact")
def test_a_vector_of_zeros_is_at_a_right_angle_to_all(monkeypatch):
    monkeypatch.setattr(module, "_MAX_BYTES", 0)
    query = unit(1)

    found = nearest({"a": part_of("a", np.stack([np.zeros(16), query]))}, query, everything, 2)

    assert {name: round(value, 2) for name, value in found} == {"a0": 0.0, "a1": 1.0}


def test_only_rows_that_are_chosen_and_published_are_found():
    parts, query = drawn(3, 40, 50), unit(3)
    published = {"b": np.arange(50) < 20}
    allowed = {f"a{row}" for row in range(0, 40, 2)} | {f"b{row}" for row in range(0, 20, 2)}

    found = nearest(parts, query, evens, 15, published)

    assert ranked(found) == exact(parts, query, allowed)[:15]
    assert nearest(parts, query, lambda rows: ~everything(rows), 15) == []


@pytest.fixture
def many(monkeypatch) -> dict[str, Part]:
    """Parts of which a sign-bit search compares only a tenth."""
    monkeypatch.setattr(module, "_MAX_BYTES", 0)
    monkeypatch.setattr(module, "_MIN_COMPARED", 400)
    monkeypatch.setattr(module, "_BLOCK", 300)
    random = np.random.default_rng(5)
    topics = random.standard_normal((40, 64))
    return {
        name: part_of(name, topics[random.integers(0, 40, count)] + random.standard_normal((count, 64)))
        for name, count in (("a", 1500), ("b", 2500))
    }


def test_signs_find_nearly_all_of_the_nearest_and_it_says_how_near_they_are(many):
    random = np.random.default_rng(8)
    missed = 0
    for _ in range(20):
        source, row = random.choice(["a", "b"]), random.integers(0, 1500)
        vector = many[source].stored[row].astype(np.float32) + 0.5 * random.standard_normal(64).astype(np.float32)
        query = vector / np.linalg.norm(vector)
        found = dict(nearest(many, query, everything, 10))
        cosines = dict(nearest(many, query, everything, 4000))
        missed += len(set(exact(many, query)[:10]) - found.keys())
        assert found == pytest.approx({name: cosines[name] for name in found}, abs=1e-6)
    assert missed <= 4  # of 200


def test_signs_let_a_part_of_the_vectors_be_compared(many, monkeypatch):
    compared: list[int] = []

    def counting(query: np.ndarray, part: Part, rows: np.ndarray, out: np.ndarray) -> None:
        compared.append(len(rows))
        compare(query, part, rows, out)

    compare = module._compare_stored
    monkeypatch.setattr(module, "_compare_stored", counting)

    nearest(many, unit(1, 64), everything, 10)

    assert 350 <= sum(compared) <= 600  # of 4,000


def test_of_chosen_rows_the_signs_of_these_alone_are_counted(many):
    query = many["b"].stored[10].astype(np.float32)
    query /= np.linalg.norm(query)
    allowed = {f"{name}{row}" for name in "ab" for row in range(0, 2500, 2)}

    found = nearest(many, query, evens, 10, {"a": np.zeros(1500, np.bool_)})

    expected = [name for name in exact(many, query, allowed) if name[0] == "b"][:10]
    assert ranked(found)[0] == "b10"
    assert len(set(expected) - {name for name, _ in found}) <= 1
    assert {name[0] for name, _ in found} == {"b"}
