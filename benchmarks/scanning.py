"""Measure how long exact texts and patterns take.

    python -m benchmarks.scanning PROJECT... [--rounds 5]

In each project, rare and common words and patterns are searched in a warm process, alternately without and with text
files; indexes of older versions have none. The output has milliseconds of CPU time, which depends less on load than
wall-clock time: the median and the maximum over the searches. `chunks` returns the best 500 chunks, as for an agent;
`matches` counts all and returns 100, as on the command line.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import load_settings
from docindex_dagster.search.candidates import Pool
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.matches import find_matches
from docindex_dagster.search.text_scan import Pattern, find_matching_chunks
from docindex_dagster.stores.reader import Reader, open_reader

_CHUNKS, _MATCHES = 500, 100
_LONGEST_S = 600.0
_TEXTS = (
    *("return", "self", "error", "TODO", "->", "e", "assertEqual(", "serialize", "_zqxjkv_", "http2", " = ", "Größe"),
)
_WITH_A_TEXT = (r"\bdef \w+", "^import", r"https?://\S+", r"raise \w+Error\(", r"async fn \w+", r"curl_easy_\w+")
_WITHOUT = (
    *("[A-Z]{4,}", r"\d+\.\d+\.\d+", "(?i)license", ";$", r"^\s*#", r"(get|set)[A-Z]\w+\(", r"[a-z]+\d{7}"),
    *("TODO|FIXME", r"\w+_\w+_\w+zq"),
)


def main() -> None:
    """Print a table for each project."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("projects", type=Path, nargs="+")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    for project in arguments.projects:
        reader = open_reader(Layout(load_settings(project.absolute()).home))
        print(f"{reader.searcher.num_docs:,} chunks\n| | row tables: median, slowest | text files | speedup |")
        print("|---|---|---|---|")
        _compare(reader, arguments.rounds)


def _compare(reader: Reader, rounds: int) -> None:
    sources = {key: replace(source, rows=()) for key, source in reader.generation.sources.items()}
    readers = (replace(reader, generation=replace(reader.generation, sources=sources)), reader)
    kinds = {
        "literal": [Pattern(text, is_regex=False) for text in _TEXTS],
        "regex with a literal of three letters": [Pattern(text, is_regex=True) for text in _WITH_A_TEXT],
        "regex without": [Pattern(text, is_regex=True) for text in _WITHOUT],
    }
    for what, ask in (("chunks", _chunks), ("matches", _matches)):
        for kind, patterns in kinds.items():
            before, now = _milliseconds(ask, readers, patterns, rounds)
            cells = [f"{statistics.median(times):.0f}, {max(times):.0f}" for times in (before, now)]
            ratio = statistics.median(before) / statistics.median(now)
            print(f"| {what}: {kind} | {' | '.join(cells)} | {ratio:.1f} |", flush=True)


def _chunks(reader: Reader, pattern: Pattern) -> None:
    find_matching_chunks(Pool(reader, Filters(), _CHUNKS), pattern, _LONGEST_S)


def _matches(reader: Reader, pattern: Pattern) -> None:
    find_matches(Pool(reader, Filters(), _MATCHES), pattern, longest_s=_LONGEST_S)


def _milliseconds(
    ask: Callable[[Reader, Pattern], None], readers: Sequence[Reader], patterns: Sequence[Pattern], rounds: int
) -> list[list[float]]:
    """Return the minimum time of each pattern for each reader; the readers alternate."""
    for reader in readers:
        ask(reader, patterns[0])
    found: list[list[float]] = [[] for _ in readers]
    for pattern in patterns:
        times: list[list[float]] = [[] for _ in readers]
        for _ in range(rounds):
            for reader, taken in zip(readers, times, strict=True):
                began = time.process_time()
                ask(reader, pattern)
                taken.append((time.process_time() - began) * 1000)
        for taken, least in zip(times, found, strict=True):
            least.append(min(taken))
    return found


if __name__ == "__main__":
    main()
