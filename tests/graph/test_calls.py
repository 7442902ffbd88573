"""Calls of hand-labeled programs: few edges are wrong, and most are found, in each language."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.graph.calls import PROGRAMS, judge, programs


class Shares(NamedTuple):
    """Precision over edges and recall over labels, in percent."""

    precision: float
    recall: float


# One point below the figures of each language in docs/explanation/call-graph.md.
FLOORS = {
    "bash": Shares(99.0, 97.5),
    "c": Shares(99.0, 96.0),
    "cpp": Shares(99.0, 95.9),
    "csharp": Shares(98.7, 94.1),
    "elixir": Shares(99.0, 98.2),
    "go": Shares(99.0, 93.1),
    "haskell": Shares(99.0, 98.2),
    "java": Shares(98.7, 93.5),
    "javascript": Shares(98.2, 88.1),
    "kotlin": Shares(98.2, 93.4),
    "lua": Shares(99.0, 87.6),
    "php": Shares(99.0, 93.8),
    "python": Shares(99.0, 90.6),
    "ruby": Shares(98.6, 84.5),
    "rust": Shares(98.6, 94.2),
    "scala": Shares(99.0, 92.0),
    "swift": Shares(98.6, 95.6),
    "typescript": Shares(99.0, 95.9),
    "zig": Shares(99.0, 95.9),
}
FLOOR = Shares(97.0, 75.0)  # for languages without a measurement
FLOOR_OF_ALL = Shares(99.5, 93.5)
BY_LANGUAGE: dict[str, list[Path]] = defaultdict(list)
for _program in programs():
    BY_LANGUAGE[_program.parent.name].append(_program)


def shares(folders: Iterable[Path]) -> Shares:
    judgements = [judge(folder) for folder in folders]
    found = sum(one.found for one in judgements)
    wrong = sum(len(one.wrong) for one in judgements)
    needed = sum(one.needed for one in judgements)
    return Shares(100 * found / (found + wrong), 100 * found / needed)


@pytest.mark.parametrize("language", sorted(BY_LANGUAGE))
def test_calls_of_a_language_are_resolved_as_well_as_they_were(language):
    reached, floor = shares(BY_LANGUAGE[language]), FLOORS.get(language, FLOOR)

    assert reached.precision >= floor.precision
    assert reached.recall >= floor.recall


def test_over_all_languages_nearly_no_edge_is_wrong():
    reached = shares(folder for folders in BY_LANGUAGE.values() for folder in folders)

    assert reached.precision >= FLOOR_OF_ALL.precision
    assert reached.recall >= FLOOR_OF_ALL.recall


def test_there_are_at_least_180_programs():
    assert len(programs(PROGRAMS)) >= 180


def test_each_language_with_a_floor_has_programs():
    assert FLOORS.keys() <= BY_LANGUAGE.keys()
