"""Measure how soon a search finds an edit while `docindex watch` runs.

    python -m benchmarks.watch [FOLDER...]

Uses a library and a git work tree of 500 files each, or a copy of each folder. One file is edited once, then twenty
times, each time with a new word, and the published index is searched until it has the word. The watcher runs in its own
process.
"""

import argparse
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import CONFIG_NAME
from docindex_dagster.search.engine import search
from docindex_dagster.search.model import Mode
from docindex_dagster.stores.reader import open_reader

_FILES, _FOLDERS, _EDITS = 500, 25, 20
_ASK_S = 0.01
_PATIENCE_S = 60
_HASHED = frozenset({".py", ".md"})
_CODE = (".py", ".c", ".cc", ".go", ".java", ".js", ".php", ".rb", ".rs", ".ts")
_USUAL_BYTES = 20_000


def make(folder: Path) -> list[Path]:
    """Write an equal number of pages and modules with reproducible words; return their paths."""
    choose = random.Random(7)
    words = [f"word{number}" for number in range(3000)]
    files = []
    for number in range(_FILES):
        place = folder / f"part{number % _FOLDERS}"
        place.mkdir(parents=True, exist_ok=True)
        sentences = [" ".join(choose.choices(words, k=40)).capitalize() + "." for _ in range(8)]
        if number % 2:
            file, text = place / f"page{number}.md", f"# Page {number}\n\n" + "\n\n".join(sentences)
        else:
            functions = (
                f'def do{number}_{at}(a, b):\n    """{line}"""\n    return a * {at} + b\n'
                for at, line in enumerate(sentences)
            )
            file, text = place / f"module{number}.py", "\n\n".join(functions)
        file.write_text(text)
        files.append(file)
    return files


def commit(folder: Path) -> None:
    """Turn a folder into a git work tree."""
    identity = ("-c", "user.name=Bench", "-c", "user.email=bench@example.com")
    for command in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "--message", "All")):
        subprocess.run(["git", *identity, *command], cwd=folder, check=True)


def is_found(layout: Layout, word: str) -> bool:
    """Return whether the published index contains a word."""
    return bool(search(open_reader(layout), word, NotImplemented, mode=Mode.LITERAL, top_k=1))


def seconds_until_found(layout: Layout, word: str, started: float) -> float:
    """Search after each publication; return the seconds until the word is found."""
    asked = ""
    while time.perf_counter() < started + _PATIENCE_S:
        current = layout.current.read_text()
        if current != asked and is_found(layout, word):
            return time.perf_counter() - started
        asked = current
        time.sleep(_ASK_S)
    raise SystemExit(f"{word} was not found within {_PATIENCE_S} s")


def copied(folder: Path, place: Path) -> list[Path]:
    """Copy a folder; return its code files, starting with the largest of a typical size."""
    shutil.copytree(folder, place, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    files = sorted((file for suffix in _CODE for file in place.rglob(f"*{suffix}") if file.is_file()), key=str)
    usual = [file for file in files if file.stat().st_size < _USUAL_BYTES]
    return sorted(usual, key=lambda file: file.stat().st_size, reverse=True)


def measure(kind: str, fill: Callable[[Path], list[Path]]) -> tuple[int, list[float]]:
    """Return the number of chunks, and the seconds of each edit.

    The first edit may include the time to load libraries.
    """
    with tempfile.TemporaryDirectory(prefix="docindex-watch-") as folder:
        root = Path(folder)
        files = fill(root / "source")
        if kind == "git":
            commit(root / "source")
        (root / CONFIG_NAME).write_text(f'[[source]]\nkind = "{kind}"\npath = "source"\n')
        command = [sys.executable, "-m", "docindex_dagster.cli"]
        subprocess.run([*command, "index"], cwd=root, check=True, capture_output=True)
        watcher = subprocess.Popen([*command, "watch", "--json"], cwd=root, stdout=subprocess.DEVNULL)
        try:
            time.sleep(15)  # it starts and loads its libraries
            layout = Layout(root / ".docindex")
            seconds = [edit(layout, files[0], f"zebrafinch{number}") for number in range(_EDITS + 1)]
            return sum(one.chunks for one in open_reader(layout).generation.sources.values()), seconds
        finally:
            watcher.send_signal(signal.SIGINT)
            watcher.wait()


def edit(layout: Layout, file: Path, word: str) -> float:
    """Return the seconds from a saved edit until a search finds it."""
    time.sleep(1)  # edits are never more frequent than runs
    text = file.read_text()
    started = time.perf_counter()
    file.write_text(f"{text}\n{'#' if file.suffix in _HASHED else '//'} {word}\n")
    return seconds_until_found(layout, word, started)


def main() -> None:
    """Print a row for each source."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="*", metavar="FOLDER")
    folders = parser.parse_args().folders
    print("| source | chunks | first edit, s | median, s | worst, s |\n|---|---|---|---|---|")
    measured: list[tuple[str, str, Callable[[Path], list[Path]]]]
    measured = [(folder.name, "library", partial(copied, folder)) for folder in folders]
    measured = measured or [(f"{kind}, {_FILES} files", kind, make) for kind in ("library", "git")]
    for name, kind, fill in measured:
        chunks, (first, *seconds) = measure(kind, fill)
        median, worst = statistics.median(seconds), max(seconds)
        print(f"| {name} | {chunks:,} | {first:.2f} | {median:.2f} | {worst:.2f} |", flush=True)


if __name__ == "__main__":
    main()
