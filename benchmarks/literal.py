"""Compare exact search with ripgrep.

    python -m benchmarks.literal FOLDER...

Each folder is indexed in a fresh project. Matches of exact texts and patterns are compared by path, line and column
over the indexed files; files that discovery skips are excluded from both. Requires `rg`. Times are wall-clock seconds
of searches in a warm process, and of runs of ripgrep.
"""

import argparse
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from docindex_dagster.cli import dagster_runs
from docindex_dagster.core import tables
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import load_settings
from docindex_dagster.search.model import Mode
from docindex_dagster.search.service import Request, matches_of
from docindex_dagster.sources import config_edits
from docindex_dagster.sources.paths import name_to_path
from docindex_dagster.stores.reader import open_reader

_TEXTS = ("return", "TODO", "->", "e", "(self", "error:", "[0]", "ö", "\\n", "  ")
_PATTERNS = (r"\bdef \w+", r"^import", r"[A-Z]{4,}", r"\d+\.\d+\.\d+", r"(?i)license", r";$", r"^\s*#", r"https?://\S+")
_SHOWN = 3
_Place = tuple[str, int, int]


def main() -> None:
    """Print a row for each folder, then the first differences."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    print(
        "| repository | files | searches | matches | only docindex | only ripgrep | docindex, s | ripgrep, s |\n|---|"
        + "---|" * 7
    )
    differences: list[str] = []
    for folder in parser.parse_args().folders:
        with tempfile.TemporaryDirectory() as project:
            os.chdir(project)
            row, lines = _compared(folder.absolute())
            os.chdir("/")
        print(row, flush=True)
        differences += lines
    print("\n".join(differences))


def _compared(folder: Path) -> tuple[str, list[str]]:
    key = config_edits.declare(Path.cwd(), str(folder))[0]
    settings = load_settings(Path.cwd())
    dagster_runs.index(settings, key)
    reader = open_reader(Layout(settings.home))
    chunks = tables.read(Layout(settings.home).table("chunks", key))
    names = set(chunks["path"].to_pylist()) if chunks is not None else set()
    files = sorted(name for name in names if (folder / os.fsdecode(name_to_path(name))).is_file())
    sums = [0, 0, 0]
    seconds = [0.0, 0.0]
    lines = []
    for text, mode in [*((text, Mode.LITERAL) for text in _TEXTS), *((text, Mode.REGEX) for text in _PATTERNS)]:
        started = time.perf_counter()
        found = matches_of(settings, reader, Request(text, mode, top_k=0))
        seconds[0] += time.perf_counter() - started
        ours = {(match.path, match.line, _bytes(match.text, match.column)) for match in found.matches}
        started = time.perf_counter()
        theirs = set(_ripgrep(folder, files, text, is_regex=mode is Mode.REGEX))
        seconds[1] += time.perf_counter() - started
        for at, places in enumerate((ours, ours - theirs, theirs - ours)):
            sums[at] += len(places)
        lines += [f"{folder.name} {text!r}: only docindex {place}" for place in sorted(ours - theirs)[:_SHOWN]]
        lines += [f"{folder.name} {text!r}: only ripgrep {place}" for place in sorted(theirs - ours)[:_SHOWN]]
    searches = len(_TEXTS) + len(_PATTERNS)
    cells = [folder.name, len(files), searches, *sums, *(f"{value:.1f}" for value in seconds)]
    return f"| {' | '.join(map(str, cells))} |", lines


def _bytes(line: str, column: int) -> int:
    """Return the column in bytes, as ripgrep counts."""
    return len(line[: column - 1].encode()) + 1


def _ripgrep(folder: Path, files: list[str], text: str, *, is_regex: bool) -> Iterator[_Place]:
    options = ["--vimgrep", "--no-ignore", "--hidden", "--no-config", "--null", "--text", "--crlf"]
    command = ["rg", *options, *([] if is_regex else ["--fixed-strings"]), "--regexp", text, "--"]
    for start in range(0, len(files), 500):
        names = [os.fsdecode(name_to_path(name)) for name in files[start : start + 500]]
        done = subprocess.run([*command, *names], cwd=folder, capture_output=True, check=False)
        for line in done.stdout.splitlines():
            name, _, place = line.partition(b"\0")
            number, column, _ = place.split(b":", 2)
            yield os.fsdecode(name), int(number), int(column)


if __name__ == "__main__":
    main()
