"""Child processes that work on a log."""

import subprocess
import sys
from pathlib import Path

from docindex_dagster.core.layout import Layout

CHECKOUT = Path(__file__).parents[2]


def start(work: str, layout: Layout, *arguments: str) -> "subprocess.Popen[str]":
    """Start a process of `tests.memory.child`."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.memory.child", work, layout.home, *arguments],
        cwd=CHECKOUT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def run(work: str, layout: Layout, *arguments: str) -> list[str]:
    """Run a child process and return the lines it printed."""
    process = start(work, layout, *arguments)
    output, _ = process.communicate()
    assert process.returncode == 0
    return output.splitlines()


def kill(process: "subprocess.Popen[str]") -> list[str]:
    """Kill a process and return the printed lines that were not read yet."""
    process.kill()
    lines = process.stdout.read().splitlines()  # `communicate` would lose buffered output
    process.communicate()
    return lines
