"""Scores of rankings, and their tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from benchmarks.quality.evaluate import SAMPLES, interval
from benchmarks.tasks.indexes import Task

TOP = 10
AT = (1, 5, 10)


@dataclass(frozen=True, slots=True)
class Result:
    """The ranks, from 1, of a task's files among the first ten files; None for those beyond. Seconds of the search."""

    task: Task
    ranks: tuple[int | None, ...]
    seconds: float = 0.0
    chunks: int = 0

    @classmethod
    def of(cls, task: Task, paths: Sequence[str], seconds: float = 0.0, chunks: int = 0) -> "Result":
        """Compare the files found, best first, with those of the fix."""
        position = {path: rank for rank, path in enumerate(paths[:TOP], start=1)}
        return cls(task, tuple(position.get(path) for path in task.gold), seconds, chunks)

    @property
    def measures(self) -> tuple[float, ...]:
        """Acc@1, 5 and 10; any@5 and 10; the reciprocal rank."""
        found = [rank or TOP + 1 for rank in self.ranks]
        accuracy = [float(max(found) <= k) for k in AT]
        return (*accuracy, *(float(min(found) <= k) for k in AT[1:]), 1 / min(found) if min(found) <= TOP else 0.0)

    @property
    def objective(self) -> float:
        """What `leave_one_out` maximizes."""
        return self.measures[AT.index(5)] + self.measures[-1]


MEASURES = (*(f"Acc@{k}" for k in AT), *(f"any@{k}" for k in AT[1:]), "MRR")


def row_of(label: str, results: Sequence[Result]) -> str:
    """Return a row of the table: each mean with its interval."""
    values = np.array([result.measures for result in results])
    chosen = np.random.default_rng(0).integers(0, len(values), (SAMPLES, len(values)))
    low, high = np.quantile(values[chosen].mean(axis=1), [0.025, 0.975], axis=0)
    cells = [f"{mean:>8.1%} {f'{a:.0%}-{b:.0%}':>9}" for mean, a, b in zip(values.mean(axis=0), low, high, strict=True)]
    return f"{label:<44}{len(results):>5}{''.join(cells)}"


def table(results: Sequence[Result], way: str) -> None:
    """Print the results by set, language and repository."""
    print(f"\n{way:<44}{'tasks':>5}" + "".join(f"{name:>18}" for name in MEASURES))
    for column in ("set", "language", "github"):
        for value in sorted({getattr(result.task, column) for result in results}):
            print(row_of(value, [result for result in results if getattr(result.task, column) == value]))
    milliseconds = np.median([1000 * result.seconds for result in results])
    chunks = np.median([result.chunks for result in results])
    print(f"median search: {milliseconds:.0f} ms over {chunks:,.0f} chunks")


def gains(found: Mapping[str, Sequence[Result]], default: str) -> None:
    """Print the gain of each way over the default, with its interval by paired bootstrap; * if it excludes zero."""
    sets = sorted({result.task.set for result in found[default]})
    measured = (MEASURES.index("Acc@5"), MEASURES.index("any@10"), MEASURES.index("MRR"))
    columns = [f"{name} {MEASURES[at]}" for name, at in product(sets, measured)]
    print(f"\n{'gain over ' + default:<22}" + "".join(f"{column:>32}" for column in columns))
    for way, results in found.items():
        cells = []
        for name, at in product(sets, measured):
            pairs = zip(results, found[default], strict=True)
            differences = np.array([a.measures[at] - b.measures[at] for a, b in pairs if a.task.set == name])
            low, high = interval(differences)
            cells.append(f"{differences.mean():+.3f} ({low:+.3f} {high:+.3f}){'*' if low * high > 0 else ' '}")
        print(f"{way:<22}" + "".join(f"{cell:>32}" for cell in cells))


def leave_one_out(found: Mapping[str, Sequence[Result]], default: str) -> None:
    """Print the results by set if each repository uses the way that is best on all others, by Acc@5 and MRR."""
    tasks = [result.task for result in found[default]]
    repositories = np.array([task.github for task in tasks])
    objectives = {way: np.array([one.objective for one in results]) for way, results in found.items()}
    held_out: list[Result] = [*found[default]]
    for repository in sorted(set(repositories)):
        rest = repositories != repository
        sets = [rest & np.array([task.set == name for task in tasks]) for name in {task.set for task in tasks}]
        best = max(found, key=lambda way: sum(objectives[way][mask].mean() for mask in sets if mask.any()))
        print(f"{repository:<44} {best}")
        for at in np.flatnonzero(~rest).tolist():
            held_out[at] = found[best][at]
    table(held_out, "each repository left out")
