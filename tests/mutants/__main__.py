"""Disable each mechanism of the call graph and print the tests that fail: `python -m tests.mutants [NAME…]`.

Each mechanism runs in its own process, two at a time. The exit code is 1 if no test fails for a mechanism, or if it
cannot be disabled.
"""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.mutants.mutant import Mutant
from tests.mutants.plugin import VARIABLE
from tests.mutants.table import MUTANTS

ROOT = Path(__file__).parents[2]
# Excludes the minimum scores in tests/graph/test_calls.py: they fail without saying which mechanism is missing.
TESTS = ("tests/callgraph/mechanisms", "tests/graph/test_python.py")
_PROCESSES = 2
_LONGEST = 300  # seconds
_NAMES_SHOWN = 3
_WIDTH = max(len(mutant.name) for mutant in MUTANTS) + 1
_PASSED, _FAILED = 0, 1  # exit codes of pytest
# Counts only tests that find different edges. Other errors merely show that the mechanism is used.
_NOTICED = re.compile(r"^FAILED \S+?::(?:\w+::)*(\w+)\S* - AssertionError", re.MULTILINE)


class Outcome(NamedTuple):
    """Tests that fail without a mechanism. `problem` says why they could not run."""

    noticed: tuple[str, ...]
    problem: str = ""


def main(names: Sequence[str]) -> int:
    """Print one line per mechanism and return the exit code."""
    if unknown := set(names) - {mutant.name for mutant in MUTANTS}:
        print(f"not in tests/mutants/table.py: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 1
    whole = _run("")
    if whole.noticed or whole.problem:
        print(whole.problem or f"already failing: {', '.join(whole.noticed)}", file=sys.stderr)
        return 1
    chosen = [mutant for mutant in MUTANTS if not names or mutant.name in names]
    failures = 0
    with ThreadPoolExecutor(_PROCESSES) as processes:
        for mutant, outcome in zip(chosen, processes.map(lambda one: _run(one.name), chosen), strict=True):
            print(_line(mutant, outcome), flush=True)
            failures += not outcome.noticed
    print(f"{len(chosen) - failures} of {len(chosen)} mechanisms are noticed when they are taken out")
    return 1 if failures else 0


def _run(name: str) -> Outcome:
    """Run the tests without a mechanism, or with all mechanisms if the name is empty."""
    options = ["-q", "--tb=no", "-rfE", "--no-header", "-p", "no:cacheprovider", "-p", "tests.mutants.plugin"]
    command = [sys.executable, "-m", "pytest", *options, *TESTS]
    environment = {**os.environ, VARIABLE: name, "COLUMNS": "500"}
    try:
        ran = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=_LONGEST, check=False
        )
    except subprocess.TimeoutExpired:
        return Outcome((), f"still running after {_LONGEST} s")
    if ran.returncode not in {_PASSED, _FAILED}:
        return Outcome((), f"cannot be taken out: {(ran.stderr or ran.stdout).strip().splitlines()[-1]}")
    noticed = tuple(dict.fromkeys(_NOTICED.findall(ran.stdout)))
    if ran.returncode == _FAILED and not noticed:
        return Outcome((), "breaks what uses it: let it return something of the right type")
    return Outcome(noticed)


def _line(mutant: Mutant, outcome: Outcome) -> str:
    """Format a table row: the mechanism, the number of failing tests, and the first of them."""
    shown = ", ".join(name.removeprefix("test_") for name in outcome.noticed[:_NAMES_SHOWN])
    return f"{mutant.name:<{_WIDTH}}{len(outcome.noticed):>4}  {outcome.problem or shown or f'SURVIVES: {mutant.what}'}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
