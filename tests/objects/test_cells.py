"""Which cell holds a repository."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.objects.cells import cell_of

names = st.text(st.characters(codec="utf-8", exclude_characters="@"), min_size=1, max_size=30)
keys = st.one_of(names.map("git/{}".format), names.map("library/{}".format))
counts = st.integers(min_value=1, max_value=20)
REPOSITORIES = [f"git/owner-{number % 40}/repository-{number}" for number in range(5000)]


@given(keys, counts)
def test_each_source_lies_in_one_of_the_cells(key: str, cells: int) -> None:
    assert 0 <= cell_of(key, cells) < cells
    assert cell_of(key, 1) == 0


@given(names, names, counts)
def test_the_branches_of_a_repository_lie_together(name: str, branch: str, cells: int) -> None:
    assert cell_of(f"git/{name}@{branch}", cells) == cell_of(f"git/{name}", cells)


@given(keys, counts)
def test_a_further_cell_takes_sources_over_and_moves_no_other(key: str, cells: int) -> None:
    assert cell_of(key, cells + 1) in {cell_of(key, cells), cells}


@pytest.mark.parametrize("cells", [2, 3, 5, 10])
def test_a_further_cell_takes_over_its_share_from_each_cell(cells: int) -> None:
    moved = [key for key in REPOSITORIES if cell_of(key, cells + 1) == cells]

    assert len(moved) == pytest.approx(len(REPOSITORIES) / (cells + 1), rel=0.15)
    of_each = Counter(cell_of(key, cells) for key in moved)
    assert set(of_each) == set(range(cells))
    assert max(of_each.values()) < 2 * min(of_each.values())


@pytest.mark.parametrize("cells", [2, 3, 5, 10])
def test_the_cells_hold_about_as_many_repositories(cells: int) -> None:
    held = Counter(cell_of(key, cells) for key in REPOSITORIES)

    even = len(REPOSITORIES) / cells
    assert all(held[cell] == pytest.approx(even, rel=0.15) for cell in range(cells))


def test_where_a_repository_lies_never_changes() -> None:
    """Else each host would look for it somewhere else, and an upgrade would move everything."""
    assert [cell_of(key, 10) for key in ("git/flask", "git/pallets/flask", "library/docs", "git/rails@main")] == [
        1,
        2,
        0,
        0,
    ]
