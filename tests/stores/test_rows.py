"""The rows of sources, as published."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.graph.extraction import Extraction
from docindex_dagster.stores import rows
from docindex_dagster.stores.rows import SourceRows, in_batches

_LIMIT, _SOURCES = 100, 3


@pytest.fixture(autouse=True, scope="module")
def small_batches():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "_BATCH_BYTES", _LIMIT)
        patch.setattr(rows, "_BATCH_SOURCES", _SOURCES)
        yield


def size(each: SourceRows) -> int:
    number: int = each.chunks.nbytes + each.embeddings.nbytes
    return number


@given(st.lists(st.integers(0, 3 * _LIMIT)))
def test_batches_hold_every_source_in_order_and_end_where_they_are_full(sizes):
    empty = pa.table({"text": pa.array([], pa.binary())})
    given_rows = [
        SourceRows(str(number), pa.table({"n": pa.array([0] * size, pa.int8())}), empty, Extraction(None, ""))
        for number, size in enumerate(sizes)
    ]

    batches = list(in_batches(given_rows))

    assert [each for batch in batches for each in batch] == given_rows
    for batch in batches:
        assert sum(map(size, batch[:-1])) < _LIMIT  # so the batch exceeds the limit by at most one source
        assert 1 <= len(batch) <= _SOURCES
    for batch in batches[:-1]:
        assert sum(map(size, batch)) >= _LIMIT or len(batch) == _SOURCES
