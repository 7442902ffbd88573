"""Measure the check of unchanged sources.

    python -m benchmarks.ticks

Creates 150 libraries of 500 small files and 50 git work trees of 500 files in a temporary folder, and checks each, as
sensors do at every tick. The output has the seconds of several consecutive checks, for all libraries and for all work
trees: wall-clock time, then CPU time after the slash.
"""

import argparse
import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from docindex_dagster.sources.changes import fingerprint
from docindex_dagster.sources.model import Source

_LIBRARIES, _WORK_TREES = 150, 50
_FOLDERS, _FILES_A_FOLDER = 25, 20
_LOOKS = 5
_GIT = ("git", "-c", "user.name=Bench", "-c", "user.email=bench@example.com", "-c", "gc.auto=0")


def fill(folder: Path) -> None:
    """Write 500 small files."""
    for number in range(_FOLDERS):
        part = folder / f"part-{number}"
        part.mkdir(parents=True)
        for page in range(_FILES_A_FOLDER):
            (part / f"page-{page}.md").write_text(f"# Page {page}\n\nPart {number} of {folder.name}.\n")
    (folder / ".gitignore").write_text("*.tmp\n/build/\ndrafts/**/old-?.md\n")


def library(folder: Path) -> Source:
    fill(folder)
    return Source(f"library/{folder.name}", "library", folder.name, folder, include=("**/*.md",), exclude=("old/**",))


def work_tree(folder: Path) -> Source:
    """Create a work tree with a commit, an edit and an untracked file."""
    fill(folder)
    for arguments in (("init", "--quiet"), ("add", "--all"), ("commit", "--quiet", "--message", "all")):
        subprocess.run([*_GIT, *arguments], cwd=folder, check=True)
    (folder / "part-0/page-0.md").write_text("edited\n")
    (folder / "new.md").write_text("new\n")
    return Source(f"git/{folder.name}", "git", folder.name, folder)


def look(sources: Sequence[Source]) -> tuple[float, float]:
    """Return the seconds to compute all fingerprints: wall-clock and CPU time."""
    started, worked = time.perf_counter(), cpu_seconds()
    for source in sources:
        fingerprint(source)
    return time.perf_counter() - started, cpu_seconds() - worked


def cpu_seconds() -> float:
    """Return the CPU time of this process and its finished children."""
    return sum(os.times()[:4])


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    with tempfile.TemporaryDirectory(prefix="docindex-ticks-") as folder:
        libraries = [library(Path(folder, "libraries", f"library-{number}")) for number in range(_LIBRARIES)]
        work_trees = [work_tree(Path(folder, "git", f"tree-{number}")) for number in range(_WORK_TREES)]
        for name, sources in (("libraries", libraries), ("git work trees", work_trees)):
            seconds = [look(sources) for _ in range(_LOOKS)]
            looks = ", ".join(f"{clock:.2f}/{worked:.2f}" for clock, worked in seconds)
            print(f"{len(sources)} {name}, {_FOLDERS * _FILES_A_FOLDER} files each: {looks} s")


if __name__ == "__main__":
    main()
