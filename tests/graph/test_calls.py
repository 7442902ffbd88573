"""Calls of hand-labelled programs: few edges are wrong, and most are found, in each language."""

from collections import defaultdict
from pathlib import Path

import pytest

from tests.graph.calls import PROGRAMS, Judgement, judge, programs

# What each language, and all together, must reach at least.
PRECISION, RECALL = 0.92, 0.60
PRECISION_OF_ALL, RECALL_OF_ALL = 0.97, 0.75
BY_LANGUAGE: dict[str, list[Path]] = defaultdict(list)
for _program in programs():
    BY_LANGUAGE[_program.parent.name].append(_program)


def shares(judgements: list[Judgement]) -> tuple[float, float]:
    found, wrong, needed = (
        sum(getattr(one, name) if name != "wrong" else len(one.wrong) for one in judgements)
        for name in ("found", "wrong", "needed")
    )
    return found / (found + wrong), found / needed


@pytest.mark.parametrize("language", sorted(BY_LANGUAGE))
def test_calls_of_a_language_are_resolved_rightly_or_not_at_all(language):
    precision, recall = shares([judge(program) for program in BY_LANGUAGE[language]])

    assert precision >= PRECISION
    assert recall >= RECALL


def test_over_all_languages_nearly_no_edge_is_wrong():
    precision, recall = shares([judge(program) for program in programs()])

    assert precision >= PRECISION_OF_ALL
    assert recall >= RECALL_OF_ALL


def test_there_are_at_least_sixty_programs():
    assert len(programs(PROGRAMS)) >= 60
