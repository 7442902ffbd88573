"""Processes killed while they write, fold, erase or roll back a domain lose and duplicate nothing."""

import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.memory.processes import CHECKOUT


def cut_off(root: Path, seed: int, wanted: int) -> "Counter[str]":
    """Kill the given number of processes and count the interrupted operations."""
    command = [sys.executable, "-m", "tests.memory.killed_folds", str(root), str(seed), str(wanted)]
    done = subprocess.run(command, cwd=CHECKOUT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return Counter(json.loads(done.stdout))


def test_a_few_are_killed(tmp_path):
    assert cut_off(tmp_path / "project", seed=1, wanted=5).total() >= 5


@pytest.mark.kill
def test_hundreds_are_killed(tmp_path, capsys):
    seed = int(os.environ.get("DOCINDEX_TEST_SEED") or random.SystemRandom().randrange(1 << 32))
    wanted = int(os.environ.get("DOCINDEX_TEST_KILLS") or 1000)

    found = cut_off(tmp_path / "project", seed, wanted)

    with capsys.disabled():
        print(f"\nto repeat: make test-kill DOCINDEX_TEST_SEED={seed} DOCINDEX_TEST_KILLS={wanted}")  # noqa: T201
        print(f"{found.total()} processes killed that worked on a domain: {dict(found)}")  # noqa: T201 how often
    assert {"write", "fold", "erase"} <= found.keys()
