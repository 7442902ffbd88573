"""Arrow files contain the values of their rows and no neighboring bytes from memory."""

import pyarrow as pa
import pytest

from docindex_dagster.core import tables

SECRET = "xkqzvwjhpfmbtrgd"
HALVES = pa.list_(pa.field("item", pa.float16(), nullable=False), 4)


def strings(texts):
    return pa.array(texts, pa.string())


def lists(texts):
    return pa.array([[text] for text in texts], pa.list_(pa.string()))


def structs(texts):
    return pa.array([{"name": text} for text in texts])


def vectors(texts):
    """Return vectors whose bytes are those of the texts."""
    values = pa.Array.from_buffers(pa.float16(), 4 * len(texts), [None, pa.py_buffer("".join(texts).encode())])
    return pa.FixedSizeListArray.from_arrays(values, type=HALVES)


@pytest.mark.parametrize("make", [strings, lists, structs, vectors])
@pytest.mark.parametrize("neighbors", [(1, 1), (0, 2), (2, 0)])
def test_a_slice_is_written_without_its_neighbors(tmp_path, make, neighbors):
    before, after = neighbors
    table = pa.table({"value": make([*[SECRET[:8]] * before, "whatever", *[SECRET[:8]] * after])}).slice(before, 1)
    file = tmp_path / "rows.arrow"

    tables.write_arrow(file, table.to_batches(), table.schema)

    assert SECRET[:4].encode() not in file.read_bytes()
    assert tables.read_arrow(file).equals(table)
