"""Tables in files, with a cache of the most recently used tables."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.core import tables


def written(path, *values):
    table = pa.table({"value": list(values)})
    tables.write(path, table)
    return table


def test_a_table_is_read_from_its_file_once(tmp_path):
    written(tmp_path / "a.parquet", 1, 2)

    assert tables.read(tmp_path / "a.parquet") is tables.read(tmp_path / "a.parquet")


def test_a_table_that_was_written_need_not_be_read(tmp_path, monkeypatch):
    table = written(tmp_path / "a.parquet", 1, 2)
    monkeypatch.setattr(tables, "_read", lambda _: pytest.fail("it was read"))

    assert tables.read(tmp_path / "a.parquet") is table


def test_a_table_that_another_process_replaced_is_read(tmp_path):
    written(tmp_path / "a.parquet", 1, 2)
    other = pa.table({"value": [5, 6]})
    pq.write_table(other, tmp_path / "other.parquet")
    (tmp_path / "other.parquet").replace(tmp_path / "a.parquet")

    assert tables.read(tmp_path / "a.parquet") == other


def test_a_table_that_was_replaced_is_read_anew(tmp_path):
    written(tmp_path / "a.parquet", 1, 2)
    tables.read(tmp_path / "a.parquet")
    replaced = written(tmp_path / "a.parquet", 3, 4)

    assert tables.read(tmp_path / "a.parquet") == replaced


def test_a_file_that_is_damaged_or_gone_is_noticed(tmp_path):
    path = tmp_path / "a.parquet"
    written(path, 1, 2)
    tables.read(path)
    path.write_bytes(path.read_bytes()[:-1])
    assert tables.read(path) is None

    written(path, 1, 2)
    tables.read(path)
    path.unlink()
    assert tables.read(path) is None


def test_no_more_stays_in_memory_than_is_allowed(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_MAX_CACHED_BYTES", 50)
    first, second, large = (tmp_path / f"{name}.parquet" for name in ("first", "second", "large"))
    written(first, 1, 2)
    written(second, 1, 2, 3, 4, 5)
    written(large, *range(7))
    kept = tables.read(first)

    assert tables.read(first) is kept
    assert tables.read(large) is not tables.read(large)
    tables.read(second)
    assert tables.read(first) is not kept


def test_no_more_tables_stay_in_memory_than_are_allowed(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_MAX_CACHED_TABLES", 2)
    first, second, third = (tmp_path / f"{name}.parquet" for name in ("first", "second", "third"))
    table = written(first, 1)
    written(second, 2)
    assert tables.read(first) is table
    written(third, 3)  # evicts the second table, which is the least recently used

    assert tables.read(first) is table
    monkeypatch.setattr(tables, "_read", lambda _: None)
    assert tables.read(second) is None


class Sized:
    """Counts reads of its size."""

    asked = 0

    @property
    def nbytes(self) -> int:
        self.asked += 1
        return 1


def test_the_size_of_a_table_is_asked_for_once(tmp_path):
    """Reading the size of every table on each use would take quadratic time with many small tables."""
    recent, held = tables._Recent(), [Sized() for _ in range(5)]
    for number, table in enumerate(held):
        recent.put(tmp_path / str(number), (number,), table)

    assert recent.get(tmp_path / "0", (0,)) is held[0]
    assert [table.asked for table in held] == [1] * 5


def versioned(path, version, *values):
    table = tables.stamp(pa.table({"value": list(values)}), version)
    tables.write(path, table)
    return table


def test_a_copy_holds_the_same_and_is_another_file(tmp_path):
    source, path = tmp_path / "a.parquet", tmp_path / "copies" / "b.parquet"
    table = versioned(source, "one", 1, 2)

    assert tables.copy(source, path, "one")

    assert pq.read_table(path).equals(table, check_metadata=True)
    assert path.stat().st_ino != source.stat().st_ino
    assert path.stat().st_nlink == 1


@pytest.mark.parametrize("is_there", [True, False])
def test_what_is_not_of_the_version_is_not_copied(tmp_path, is_there):
    source, path = tmp_path / "a.parquet", tmp_path / "b.parquet"
    if is_there:
        versioned(source, "other", 1, 2)

    assert not tables.copy(source, path, "one")
    assert not path.exists()


def test_a_copy_that_is_there_stays_and_one_that_is_damaged_or_of_another_version_is_replaced(tmp_path):
    source, path = tmp_path / "a.parquet", tmp_path / "b.parquet"
    table = versioned(source, "one", *range(1000))
    tables.copy(source, path, "one")
    first = path.stat().st_ino

    tables.copy(source, path, "one")
    assert path.stat().st_ino == first

    data = bytearray(path.read_bytes())
    data[4:200] = bytes(196)  # the footer stays intact
    path.write_bytes(data)
    tables.copy(source, path, "one")
    assert pq.read_table(path).equals(table)

    versioned(path, "before", 7)
    tables.copy(source, path, "one")
    assert pq.read_table(path).equals(table)


TEXTS = st.lists(st.none() | st.text(max_size=4), max_size=6)


def texts(values) -> pa.Table:
    return pa.table({"text": pa.array(values, pa.string())})


@given(TEXTS, TEXTS)
def test_texts_have_the_same_version_if_and_only_if_they_are_the_same(one, other):
    assert (tables.data_version(texts(one)) == tables.data_version(texts(other))) == (one == other)


@given(TEXTS, TEXTS)
def test_a_version_does_not_tell_how_texts_lie_in_memory(before, values):
    expected = tables.data_version(texts(values))
    whole = texts([*before, *values, "behind"])

    assert tables.data_version(whole.slice(len(before), len(values))) == expected
    assert tables.data_version(pa.concat_tables([texts([value]) for value in values] or [texts([])])) == expected
