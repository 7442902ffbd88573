"""Sign bits of vectors, and half-precision numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.stores import matrix as module
from docindex_dagster.stores.matrix import BITS, differences, signs, signs_of_query, to_float32


def test_every_finite_half_is_the_same_number_as_a_single():
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    halves = every[np.isfinite(every)].reshape(-1, 2)

    found = to_float32(halves)

    assert found.dtype == np.float32
    assert np.array_equal(found, halves.astype(np.float32))
    assert np.array_equal(np.signbit(found), np.signbit(halves))  # also covers negative zero


@given(seed=st.integers(0, 1000), count=st.sampled_from([0, 1, 2, 7, 8, 9, 30]))
def test_differences_are_counted_in_each_vector(seed, count):
    random = np.random.default_rng(seed)
    of, query = (random.integers(0, 1 << 64, size, np.uint64) for size in ((count, 8), 8))
    found = np.empty(count, np.uint16)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_MIN_COMPARED", 8)
        module._repeated.cache_clear()
        differences(of, query, found)

    module._repeated.cache_clear()
    assert found.tolist() == [sum((int(a) ^ int(b)).bit_count() for a, b in zip(row, query, strict=True)) for row in of]


def test_all_signs_can_differ():
    found = np.empty(1, np.uint16)
    differences(np.full((1, 8), (1 << 64) - 1, np.uint64), np.zeros(8, np.uint64), found)

    assert found.tolist() == [BITS]


@pytest.mark.parametrize("dimension", [3, 256, 700])
@pytest.mark.parametrize("degrees", [0, 30, 60, 90, 150])
def test_the_share_of_signs_that_differ_is_that_of_the_angle(dimension, degrees):
    random = np.random.default_rng(degrees)
    turned, _ = np.linalg.qr(random.standard_normal((dimension, 2)))
    angle = np.radians(degrees)
    vectors = np.stack([turned[:, 0], np.cos(angle) * turned[:, 0] + np.sin(angle) * turned[:, 1]]).astype(np.float16)
    found = np.empty(2, np.uint16)

    differences(signs(vectors), signs_of_query(to_float32(vectors[0])), found)

    assert found[0] == 0
    assert found[1] / BITS == pytest.approx(degrees / 180, abs=0.07)


def test_signs_do_not_depend_on_what_else_is_signed(monkeypatch):
    vectors = np.random.default_rng(0).standard_normal((50, 16)).astype(np.float16)
    whole = signs(vectors)

    monkeypatch.setattr(module, "_BLOCK", 7)

    assert np.array_equal(signs(vectors), whole)
    assert np.array_equal(signs(vectors[20:30]), whole[20:30])


def test_planes_stand_at_right_angles_as_far_as_there_are_so_many():
    for dimension in (5, 256, 700):
        planes = module._planes(dimension)[: min(dimension, BITS)]
        assert np.allclose(planes @ planes.T, np.eye(len(planes)), atol=1e-5)


def test_the_planes_are_those_by_which_files_were_written():
    vectors = np.eye(4, dtype=np.float16)

    assert [hex(int(word)) for word in signs(vectors)[0, :2]] == ["0xa83d73acd338b8e1", "0xaad6d1d44ecb80c7"]
