"""Tests that the costs in `docs/explanation/several-machines.md` are up to date; run as a module to update them."""

import re
from pathlib import Path

import pytest

from benchmarks.capacity import Load, Measured, Plan

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "several-machines.md"
_TABLES = re.compile(r"<!-- capacity -->\n(.*?)\n<!-- /capacity -->", re.DOTALL)


def tables() -> str:
    """Return the capacity plan in the page's format."""
    return f"\n**{Plan().as_markdown().replace(chr(10), '**' + chr(10), 1)}"


def test_the_page_has_what_is_computed():
    assert _TABLES.findall(PAGE.read_text(encoding="utf-8")) == [tables()]


@pytest.mark.parametrize(
    ("more", "part"),
    [
        (Load(updates=50), "workers"),
        (Load(chunks=20_000_000), "publisher"),
        (Load(replicas=4), "search servers"),
        (Load(chunks=20_000_000), "object store, GB"),
        (Load(updates=50), "its requests"),
        (Load(record_days=300), "Postgres"),
    ],
)
def test_more_of_it_costs_more(more, part):
    costs = [{each.name: each.dollars for each in Plan(load=load).parts()} for load in (Load(), more)]

    assert costs[1][part] > costs[0][part]


def test_what_is_measured_decides():
    fast, slow = Plan(measured=Measured(run_s=5)), Plan(measured=Measured(run_s=50))

    assert fast.workers < slow.workers
    assert fast.first_hours > slow.first_hours


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(_TABLES.sub(lambda _: f"<!-- capacity -->\n{tables()}\n<!-- /capacity -->", text), encoding="utf-8")
