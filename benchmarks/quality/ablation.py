"""Effect of each value and each source of questions on a model that learns the order of files."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.quality.candidates import VALUES, Asked, Values
from benchmarks.quality.evaluate import interval
from benchmarks.quality.models import Learned, Model

PEOPLE = "people"  # human questions, which are ordered in folds of repositories
HISTORY = ("commit", "issue")
SOURCES = ("commit", "docstring", "heading", "issue", "symbol")
_FOLDS = 8
_ALL = tuple(range(len(VALUES)))


@dataclass(frozen=True, slots=True)
class Gain:
    """A mean difference of NDCG@10 with its 95 % interval by paired bootstrap over questions."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, after: Values, before: Values) -> "Gain":
        """Compute the gain of one order over another."""
        low, high = interval(after - before)
        return cls(float(np.mean(after - before)), low, high)

    def __str__(self) -> str:
        """Format the gain, with * if the interval excludes zero."""
        return f"{self.mean:+.4f} ({self.low:+.4f} {self.high:+.4f}){'*' if self.low * self.high > 0 else ' '}"


@dataclass(frozen=True, slots=True)
class Worth:
    """The importance of each value to a trained model, in the order of `VALUES`."""

    model: Model
    taught_by: str
    learned: Learned
    losses: Sequence[Gain]  # of a model trained without the value


@dataclass(frozen=True)
class Study:
    """Questions to order, and questions to train on."""

    asked: Sequence[Asked]
    labels: Sequence[Asked]

    def as_it_is(self) -> Values:
        """Return the NDCG of each question in the order of the search."""
        return np.array([one.ndcg(-np.arange(float(len(one.paths)))) for one in self.asked])

    def after(self, model: Model, sources: Collection[str], columns: Sequence[int] = _ALL) -> Values:
        """Return the NDCG of each question after training on sources; human questions never train their own model."""
        labels = self._of(sources)
        if PEOPLE not in sources:
            learned = model.learn(labels, columns)
            return np.array([one.ndcg(learned.order(one.values)) for one in self.asked])
        found = np.zeros(len(self.asked))
        names = sorted({one.repository for one in self.asked})
        for fold in (set(names[first::_FOLDS]) for first in range(_FOLDS)):
            others = [one for one in self.asked if one.repository not in fold]
            learned = model.learn([*others, *labels], columns)
            for at, one in enumerate(self.asked):
                if one.repository in fold:
                    found[at] = one.ndcg(learned.order(one.values))
        return found

    def worths(self, model: Model, sources: Collection[str]) -> Worth:
        """Return the importance of each value to a model."""
        whole = self.after(model, sources)
        losses = [
            Gain.of(self.after(model, sources, [column for column in _ALL if column != without]), whole)
            for without in _ALL
        ]
        taught = [*(self.asked if PEOPLE in sources else ()), *self._of(sources)]
        return Worth(model, " and ".join(sources), model.learn(taught, _ALL), losses)

    def count(self, sources: Collection[str]) -> int:
        """Return the number of questions from sources."""
        return len(self._of(sources)) + (len(self.asked) if PEOPLE in sources else 0)

    def _of(self, sources: Collection[str]) -> list[Asked]:
        return [one for one in self.labels if one.category in sources]


def print_models(study: Study, models: Sequence[Model], sources: Sequence[Collection[str]]) -> None:
    """Print the results of models trained on sources, and a hash of each model."""
    before = study.as_it_is()
    print(f"{'search':<40}{before.mean():.4f} over {len(study.asked)} questions")
    for taught_by in sources:
        for model in models:
            after = study.after(model, taught_by)
            name = f"{model.name}, {' and '.join(taught_by)}"
            print(f"{name:<40}{after.mean():.4f} {Gain.of(after, before)} by {study.count(taught_by)} questions")


def print_sources(study: Study, models: Sequence[Model]) -> None:
    """Print the results of models trained on each source alone, and on all others."""
    before = study.as_it_is()
    for model in models:
        whole = study.after(model, SOURCES)
        print(f"\n{model.name + ', trained on':<34}{'':>8}{'over search':>26}{'over all sources':>27}")
        print(f"{'all sources':<26}{study.count(SOURCES):>8}{whole.mean():>8.4f} {Gain.of(whole, before)}")
        for source in SOURCES:
            others = [other for other in SOURCES if other != source]
            for name, sources in ((f"{source} alone", [source]), (f"all but {source}", others)):
                after = study.after(model, sources)
                gains = f"{Gain.of(after, before)} {Gain.of(after, whole)}"
                print(f"{name:<26}{study.count(sources):>8}{after.mean():>8.4f} {gains}")


def print_worths(worths: Sequence[Worth]) -> None:
    """Print the importance of each value to models, and the loss of each model without it."""
    for worth in worths:
        print(f"\n{worth.model.name}, trained on {worth.taught_by}: {worth.learned.identity}")
        print(f"{'':<26}{worth.model.worth:>34}  without it")
        for at in np.argsort(-np.abs(worth.learned.worth), kind="stable"):
            print(f"{VALUES[at]:<26}{worth.learned.worth[at]:>34.3f}  {worth.losses[at]}")
