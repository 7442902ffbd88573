"""Measure whether a bug report finds the files that its fix changed.

    python -m benchmarks.tasks BENCH MIRRORS [--set NAME] [--repository OWNER/NAME] [--weights] [--keep FOLDER]

BENCH has `tasks/SET.jsonl`; MIRRORS has a bare clone of each repository, as OWNER+NAME or OWNER+NAME/repo. A task has
the text of an issue, a commit, and the files that the accepted fix changed. Tasks of a repository are indexed in order
of their commits, each from the index of the one before, in a work tree that has no other reference, so that neither
files nor the history after the commit are visible.

- Acc@k: the share of tasks whose files are all among the first k files.
- any@k: the share of tasks with at least one of their files among the first k.
- MRR: the mean reciprocal rank of the first file of the fix.

Intervals are 95 % by bootstrap over tasks. "as text" ranks a report as any other query. `--weights` leaves out each
view of a report and tries half and double its weight; then it scores each repository with the change that is best on
all others. `--keep` stores the index of each task, and uses those stored before.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tasks.indexes import Task, read_tasks, readers
from benchmarks.tasks.results import TOP, Result, gains, leave_one_out, table
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.search.engine import search
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.model import Granularity, Intent
from docindex_dagster.search.weights import WEIGHTS
from docindex_dagster.stores.reader import Reader

Ranker = Callable[[Reader, str], Sequence[str]]
"""Returns the paths of the best files for a report."""
DEFAULT, AS_TEXT = "default", "as text"
VIEWS = ("title", "words", "names", "path_words", "identifiers", "prose", "mention", "history")
_FACTORS = (0.0, 0.5, 2.0)


def ranker(**options: Any) -> Ranker:
    """Return a search for files with these options."""

    def rank(reader: Reader, text: str) -> Sequence[str]:
        hits = search(reader, text, StaticEmbedder, granularity=Granularity.FILE, top_k=TOP, **options)
        return [hit.path for hit in hits]

    return rank


def rankers(*, with_weights: bool) -> dict[str, Ranker]:
    """Return the ways to rank: by default, as any other query, over code only, and with other weights."""
    found = {
        DEFAULT: ranker(),
        AS_TEXT: ranker(intent=Intent.TOPIC),
        "as text, code only": ranker(intent=Intent.TOPIC, filters=Filters(source_types=("code",))),
    }
    for view, factor in product(VIEWS, _FACTORS) if with_weights else ():
        weight = factor * getattr(WEIGHTS, view)
        name = f"{view} = {weight:g}" if factor else f"- {view}"
        found[name] = ranker(weights=replace(WEIGHTS, **{view: weight}))
    return found


def measure(rank: Ranker, task: Task, reader: Reader) -> Result:
    """Ask for the files of a task."""
    started = time.perf_counter()
    paths = rank(reader, task.text)
    seconds = time.perf_counter() - started
    return Result.of(task, paths, seconds, sum(source.chunks for source in reader.generation.sources.values()))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path)
    parser.add_argument("mirrors", type=Path)
    parser.add_argument("--set", help="Only this set.")
    parser.add_argument("--repository", action="append", help="Only this repository.")
    parser.add_argument("--most", type=int, help="Only this many tasks of each repository, spread over time.")
    parser.add_argument("--weights", action="store_true", help="Also measure other weights of each view.")
    parser.add_argument("--keep", type=Path, help="Store the index of each task here, and use those stored before.")
    arguments = parser.parse_args()
    tasks = [task for task in read_tasks(arguments.bench) if arguments.set in {None, task.set}]
    if arguments.repository:
        tasks = [task for task in tasks if task.github in arguments.repository]
    if arguments.most:
        tasks = list(_thinned(tasks, arguments.most))
    ways = rankers(with_weights=arguments.weights)
    found: dict[str, list[Result]] = defaultdict(list)
    for task, reader in readers(tasks, arguments.mirrors, keep=arguments.keep):
        for way, rank in ways.items():
            found[way].append(measure(rank, task, reader))
        ranks = "  ".join(f"{way} {results[-1].ranks}" for way, results in found.items() if way in {DEFAULT, AS_TEXT})
        print(f"{task.id:<44}{ranks}", flush=True)
    for way in list(ways)[:3]:
        table(found[way], way)
    gains(found, DEFAULT)
    if arguments.weights:
        leave_one_out({way: results for way, results in found.items() if not way.startswith(AS_TEXT)}, DEFAULT)


def _thinned(tasks: Sequence[Task], most: int) -> Iterator[Task]:
    by_repository: dict[str, list[Task]] = defaultdict(list)
    for task in tasks:
        by_repository[task.github].append(task)
    for of_repository in by_repository.values():
        chosen = np.linspace(0, len(of_repository) - 1, min(most, len(of_repository))).round().astype(int)
        yield from (of_repository[at] for at in chosen)


if __name__ == "__main__":
    main()
