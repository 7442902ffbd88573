"""Processes at work on a log, seen from outside."""

import subprocess
import sys
from pathlib import Path

from docindex_dagster.core.layout import Layout

CHECKOUT = Path(__file__).parents[2]


def start(work: str, layout: Layout, *arguments: str) -> "subprocess.Popen[str]":
    """A process of `tests.memory.child`."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.memory.child", work, layout.home, *arguments],
        cwd=CHECKOUT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def run(work: str, layout: Layout, *arguments: str) -> list[str]:
    """Let one do its work; the lines that it printed."""
    process = start(work, layout, *arguments)
    output, _ = process.communicate()
    assert process.returncode == 0
    return output.splitlines()


def kill(process: "subprocess.Popen[str]") -> list[str]:
    """Kill it; the lines that it printed, but for those that were read."""
    process.kill()
    lines = process.stdout.read().splitlines()  # `communicate` would lose what is buffered
    process.communicate()
    return lines
