"""Tables of results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.quality.evaluate import interval
from benchmarks.quality.questions import CATEGORIES, SETS, Question, Scores


@dataclass(frozen=True, slots=True)
class Results:
    """The scores of all questions in order, by name of the configuration."""

    questions: Sequence[Question]
    scores: Mapping[str, Sequence[Scores]]

    def values(self, name: str, measure: str = "ndcg") -> np.ndarray:
        """Return one measure of a configuration for each question."""
        return np.array([getattr(scores, measure) for scores in self.scores[name]])

    def members(self, column: str) -> np.ndarray:
        """Return which questions count in a column."""
        return np.array([column in question.columns for question in self.questions])

    def gain(self, name: str, over: str, column: str) -> tuple[float, float, float]:
        """Return the gain of one configuration over another in a column, with its 95 % interval."""
        differences = (self.values(name) - self.values(over))[self.members(column)]
        return float(differences.mean()), *interval(differences)

    def languages(self) -> list[str]:
        """Return the languages of the questions for files."""
        found = {name for question in self.questions for name in question.columns}
        return sorted(found - {*SETS, *CATEGORIES})


def means(results: Results, names: Sequence[str]) -> None:
    """Print NDCG@10 by set, category and language."""
    columns = (*SETS, *CATEGORIES, *results.languages())
    print(f"\n{'NDCG@10':<28}" + "".join(f"{name:>12}" for name in columns))
    for name in names:
        values = results.values(name)
        print(f"{name:<28}" + "".join(f"{values[results.members(column)].mean():>12.3f}" for column in columns))


def passages(results: Results, names: Sequence[str]) -> None:
    """Print the other common measures for passages."""
    measures = [(column, measure) for column in ("code", "docs") for measure in ("mrr", "hit_at_5")]
    print(f"\n{'passages':<28}" + "".join(f"{' '.join(pair):>16}" for pair in measures))
    for name in names:
        row = [results.values(name, measure)[results.members(column)].mean() for column, measure in measures]
        print(f"{name:<28}" + "".join(f"{value:>16.3f}" for value in row))


def gains(results: Results, names: Sequence[str], over: str) -> None:
    """Print the gain of each configuration with its 95 % interval by paired bootstrap; * if it excludes zero."""
    print(f"\n{'gain over ' + over:<28}" + "".join(f"{column:>28}" for column in SETS))
    for name in names:
        cells = []
        for column in SETS:
            mean, low, high = results.gain(name, over, column)
            cells.append(f"{mean:+.3f} ({low:+.3f} {high:+.3f}){'*' if low * high > 0 else ' '}")
        print(f"{name:<28}" + "".join(f"{cell:>28}" for cell in cells))


def by_column(results: Results, name: str, over: str) -> None:
    """Print the gain of one configuration by set, category and language, with its interval; * as in `gains`."""
    print(f"\n{name + ' over ' + over:<28}")
    for column in (*SETS, *CATEGORIES, *results.languages()):
        mean, low, high = results.gain(name, over, column)
        number = results.members(column).sum()
        print(f"{column:<28}{number:>5} questions {mean:+.3f} ({low:+.3f} {high:+.3f}){'*' if low * high > 0 else ' '}")


def leave_one_out(results: Results, names: Sequence[str]) -> None:
    """Print each repository's score with the values that are best on all others, then the same by language.

    The best values have the highest mean of the three sets. Questions for passages, which are about one repository, are
    always in the rest. The first name is the current configuration.
    """
    repositories = np.array([question.repository for question in results.questions])
    sets = [results.members(column) for column in SETS]
    values = {name: results.values(name) for name in names}
    print(f"\n{'left out':<14}{'current':>10}{'best for the others':>22}")
    changes = []
    held_out = values[names[0]].copy()
    for repository in sorted(set(repositories[sets[0]])):
        inside = repositories == repository
        rest = {name: np.mean([own[members & ~inside].mean() for members in sets]) for name, own in values.items()}
        chosen = max(rest, key=lambda name: rest[name])
        before, after = values[names[0]][inside].mean(), values[chosen][inside].mean()
        changes.append(after - before)
        held_out[inside] = values[chosen][inside]
        print(f"{repository:<14}{before:>10.4f}{after:>12.4f}  {chosen}")
    print(f"mean change {np.mean(changes):+.4f}, spread {np.min(changes):+.4f} to {np.max(changes):+.4f}")
    for language in results.languages():
        members = results.members(language)
        print(f"{language:<14}{values[names[0]][members].mean():>10.4f}{held_out[members].mean():>12.4f}")
