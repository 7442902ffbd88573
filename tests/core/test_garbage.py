"""While much is loaded Python looks for no garbage, and does not look through what was loaded later."""

import gc
import sys
from collections.abc import Iterator

import pytest

from docindex_dagster.core.garbage import gc_disabled, loading


@pytest.fixture(autouse=True)
def _collecting() -> Iterator[None]:
    gc.enable()
    gc.unfreeze()
    yield
    gc.unfreeze()
    gc.enable()


def test_what_is_loaded_is_looked_through_neither_now_nor_later():
    with loading("no.such.module"):
        assert not gc.isenabled()
        loaded: list[list[int]] = [[]]

    assert gc.isenabled()
    assert gc.get_freeze_count() > 0
    assert not any(each is loaded for each in gc.get_objects())


def test_where_it_is_loaded_already_nothing_is_different():
    with loading(__name__ if __name__ in sys.modules else "sys"):
        assert gc.isenabled()

    assert gc.get_freeze_count() == 0


def test_where_nothing_is_looked_for_nothing_is_begun():
    gc.disable()
    with gc_disabled():
        pass

    assert not gc.isenabled()
