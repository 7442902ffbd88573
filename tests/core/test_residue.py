"""Erased texts are found in every byte of a file, and remaining texts are not mistaken for them."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from docindex_dagster.core import residue
from docindex_dagster.core.errors import ErasureError
from docindex_dagster.core.residue import RESIDUE, Erased, Windows

SECRET = b"the launch code is 4711-Quetzal"


@pytest.fixture
def erased() -> Erased:
    found = Erased()
    found.texts.add(SECRET)
    return found


@pytest.mark.parametrize("start", [0, 1, 7, 99, residue._BLOCK - RESIDUE, residue._BLOCK - 3, residue._BLOCK])
@pytest.mark.parametrize("end", [RESIDUE, len(SECRET)])
def test_a_run_of_a_text_is_found_at_every_place_of_a_file(tmp_path, erased, start, end):
    file = tmp_path / "file"
    file.write_bytes(b"a" * start + SECRET[:end] + b"b" * 9)

    with pytest.raises(ErasureError, match="still contains erased text"):
        erased.search([file])


def test_a_file_without_it_is_read_to_the_end_and_counted(tmp_path, erased):
    file = tmp_path / "file"
    file.write_bytes(SECRET[: RESIDUE - 1] + b"c" * residue._BLOCK)

    assert erased.search([file, tmp_path / "gone"]) == (1, RESIDUE - 1 + residue._BLOCK)


def test_the_bytes_behind_a_text_that_stays_may_be_those_of_one_that_was_erased(tmp_path, erased):
    file = tmp_path / "file"
    file.write_bytes(b"\0" + SECRET[:24] + b"\0")

    erased.texts.discard(SECRET[:20])

    assert erased.search([file]) == (1, 26)


@pytest.mark.parametrize(
    "value", [SECRET.decode(), [SECRET.decode()], {"name": SECRET.decode()}, [{"names": [SECRET.decode(), None]}]]
)
def test_values_of_compressed_tables_are_searched(tmp_path, erased, value):
    file = tmp_path / "table.parquet"
    pq.write_table(pa.table({"value": [value] * 100}), file, compression="zstd")

    with pytest.raises(ErasureError):
        erased.search([file])


def test_a_table_that_cannot_be_decoded_is_an_error(tmp_path, erased):
    file = tmp_path / "table.parquet"
    file.write_bytes(b"PAR1 and nothing else")

    with pytest.raises(ErasureError, match="cannot search"):
        erased.search([file])


def test_what_a_text_shares_with_one_that_stays_is_not_searched_for():
    texts = Windows()
    texts.add(SECRET)

    texts.discard(b"of old, " + SECRET[:-5])

    assert not texts.occur_in(SECRET[:-5])
    assert texts.occur_in(SECRET)


def test_of_too_many_windows_those_that_came_first_are_searched_for(monkeypatch):
    monkeypatch.setattr(residue, "_MAX_WINDOWS", 1000)
    pieces = [np.random.default_rng(number).bytes(500) for number in range(9)]
    texts = Windows()

    for piece in pieces:
        texts.add(piece)

    assert [texts.occur_in(piece) for piece in pieces] == [True] * 3 + [False] * 6


def test_it_is_saved_for_the_next_erasure_and_a_damaged_file_holds_nothing(tmp_path, erased):
    file = tmp_path / "erased.npz"

    erased.save(file)

    assert Erased.load(file).texts.occur_in(SECRET)
    assert file.stat().st_mode & 0o077 == 0
    file.write_bytes(file.read_bytes()[:100])
    assert Erased.load(file).is_empty
