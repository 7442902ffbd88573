"""A command exits with its status, its complete output, and its exit handlers run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_SCRIPT = """
import atexit, sys
from docindex_dagster.cli.__main__ import run

class Held:
    def __del__(self):
        print("freed")

def main():
    held.append(Held())
    atexit.register(lambda: print("registered"))
    sys.stdout.write("output, ")
    {last}

held = []
run(main)
"""


def ended(last: str, **how) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-c", _SCRIPT.format(last=last)], text=True, check=False, timeout=60, **how)


@pytest.mark.parametrize(
    ("last", "status", "error"),
    [
        ("pass", 0, ""),
        ("sys.exit()", 0, ""),
        ("sys.exit(130)", 130, ""),
        ("sys.exit('no such source')", 1, "no such source\n"),
        ("raise LookupError('a bug')", 1, "LookupError: a bug\n"),
    ],
)
def test_a_process_ends_with_its_status_and_its_output_and_frees_nothing(last, status, error):
    process = ended(last, capture_output=True)

    assert (process.returncode, process.stdout) == (status, "output, registered\n")
    assert process.stderr.endswith(error)


def test_output_that_cannot_be_written_is_no_success():
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        process = ended("pass", stdout=full, stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONUNBUFFERED": ""})

    assert process.returncode == 120


@pytest.mark.parametrize("closed", [1, 2])
def test_a_stream_that_is_closed_takes_nothing_and_breaks_nothing(closed):
    command = f'"{sys.executable}" -m docindex_dagster.cli version {closed}>&-'
    process = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, timeout=60)

    assert process.returncode == 0
    assert process.stderr == ""


def test_what_an_encoding_lacks_is_escaped():
    command = [sys.executable, "-m", "docindex_dagster.cli", "help", "settings"]
    ascii_alone = {**os.environ, "PYTHONIOENCODING": "ascii"}
    process = subprocess.run(command, env=ascii_alone, capture_output=True, text=True, check=False, timeout=60)

    assert (process.returncode, process.stderr) == (0, "")
    assert "\\U0001f512" in process.stdout
