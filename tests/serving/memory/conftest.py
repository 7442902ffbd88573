"""A project, and an agent with memory in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serving.memory.agents import Call, agent, write_project

BOUND = ("--domain", "memory/main", "--may-read", "project/acme")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_project(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="module")
def bound(root: Path) -> Iterator[Call]:
    with agent(root, *BOUND) as call:
        yield call
