"""Would a learned order of files be better? `learned BENCH CORPORA [--labels LABELS CORPORA] [--homes FOLDER]`.

The files that a search finds for a question are described by some values, and a model learns from other questions which
of them comes first: linear, with the softmax over the files of a question as its loss, or LightGBM's LambdaMART, where
that is installed. Printed are NDCG@10 by file, the gain over the order that the product gives, with its interval by
paired bootstrap, and what each value is worth to the linear model.

Without `--labels`, each of eight folds of repositories is ordered by what the others taught. With it, all are ordered
by what LABELS taught: `NAME.json` with questions as in BENCH, over the repositories of its CORPORA. With `--homes`,
indexes are kept there, and used the next time.
"""

import argparse
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.files import TOP, is_same_file, ndcg, targets_of
from benchmarks.pipeline import index
from benchmarks.quality.evaluate import interval
from docindex_dagster.core.layout import Layout
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.search.engine import search
from docindex_dagster.search.file_names import share_named
from docindex_dagster.search.model import Hit
from docindex_dagster.search.query import understand
from docindex_dagster.search.wording import Wording
from docindex_dagster.stores.reader import Reader, open_reader

Values = NDArray[np.float64]
VALUES = (
    "score",
    "bm25",
    "vector",
    "definition",
    "heading",
    "document",
    "test",
    "rest of the file",
    "name",
    "folder",
    "coverage",
    "files that refer to it",
    "length",
    "depth",
)
_FOUND, _FOLDS = 75, 8
_PENALTY = 10.0  # of large weights
_TREES = {"learning_rate": 0.05, "num_leaves": 6, "min_data_in_leaf": 100, "lambda_l2": 10.0, "feature_fraction": 0.4}
_ROUNDS = 100


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with the files found for it, best first: `values` has a row for each, of the names in `VALUES`."""

    repository: str
    paths: Sequence[str]
    targets: Sequence[str]
    values: Values

    @property
    def is_right(self) -> NDArray[np.bool_]:
        """Which of the files are asked for."""
        return np.array([any(is_same_file(path, target) for target in self.targets) for path in self.paths])

    def ndcg(self, scores: Values) -> float:
        """What the order by some scores is worth."""
        order = np.argsort(-scores, kind="stable")[:TOP]
        return ndcg([self.paths[at] for at in order], self.targets)


def main() -> None:
    """Print what models reach, and the weights of the linear one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path)
    parser.add_argument("corpora", type=Path)
    parser.add_argument("--labels", type=Path, nargs=2, metavar=("LABELS", "CORPORA"))
    parser.add_argument("--homes", type=Path, help="Where indexes are kept.")
    arguments = parser.parse_args()
    with TemporaryDirectory() as temporary:
        homes = arguments.homes or Path(temporary)
        asked = list(_asked(arguments.bench / "queries", arguments.corpora, homes))
        taught: list[Asked] = []
        if arguments.labels:
            labels, of_labels = arguments.labels
            taught = list(_asked(labels, of_labels, homes / "labels"))
    before = np.array([one.ndcg(-np.arange(float(len(one.paths)))) for one in asked])
    print(f"{'as it is':<28}{before.mean():.4f} over {len(asked)} questions, taught by {len(taught) or 'the others'}")
    models: dict[str, Callable[[Sequence[Asked]], Callable[[Values], Values]]] = {"linear": linear}
    if find_spec("lightgbm"):
        models["LambdaMART"] = trees
    for name, learn in models.items():
        after = _after(asked, taught, learn)
        low, high = interval(after - before)
        print(f"{name:<28}{after.mean():.4f} {np.mean(after - before):+.4f} ({low:+.4f} {high:+.4f})")
    weights = _weights(taught or asked)[0]
    for name, weight in sorted(zip(VALUES, weights, strict=True), key=lambda pair: -abs(pair[1])):
        print(f"  {name:<26}{weight:+.2f} for each standard deviation")


def _after(
    asked: Sequence[Asked], taught: Sequence[Asked], learn: Callable[[Sequence[Asked]], Callable[[Values], Values]]
) -> Values:
    """NDCG of each question by what others taught."""
    found = np.zeros(len(asked))
    names = sorted({one.repository for one in asked})
    shared = learn(taught) if taught else None
    for fold in (set(names[first::_FOLDS]) for first in range(_FOLDS)):
        model = shared or learn([one for one in asked if one.repository not in fold])
        for at, one in enumerate(asked):
            if one.repository in fold:
                found[at] = one.ndcg(model(one.values))
    return found


def linear(taught: Sequence[Asked]) -> Callable[[Values], Values]:
    """A weighted sum of the values."""
    weights, mean, spread = _weights(taught)
    return lambda values: (values - mean) / spread @ weights


def _weights(taught: Sequence[Asked]) -> tuple[Values, Values, Values]:
    """The weights under which right files have the largest share of the softmax, and the mean and spread of values."""
    from scipy.optimize import minimize

    used = [(one.values, one.is_right) for one in taught if one.is_right.any()]
    rows = np.concatenate([values for values, _ in used])
    mean, spread = rows.mean(axis=0), rows.std(axis=0) + 1e-9
    scaled = (rows - mean) / spread
    right = np.concatenate([flags / flags.sum() for _, flags in used])
    lengths = np.array([len(flags) for _, flags in used])
    begins = np.cumsum(lengths) - lengths
    of = np.repeat(np.arange(len(used)), lengths)

    def loss(weights: Values) -> tuple[float, Values]:
        scores = scaled @ weights
        powers = np.exp(scores - np.maximum.reduceat(scores, begins)[of])
        shares = powers / np.add.reduceat(powers, begins)[of]
        missed = -(right * np.log(shares + 1e-300)).sum() + _PENALTY * weights @ weights
        return float(missed), scaled.T @ (shares - right) + 2 * _PENALTY * weights

    found = minimize(loss, np.zeros(len(VALUES)), jac=True, method="L-BFGS-B")
    return found.x, mean, spread


def trees(taught: Sequence[Asked]) -> Callable[[Values], Values]:
    """Trees by gradient boosting, as LightGBM ranks."""
    import lightgbm

    rows = np.concatenate([one.values for one in taught])
    right = np.concatenate([one.is_right for one in taught]).astype(int)
    data = lightgbm.Dataset(rows, right, group=[len(one.paths) for one in taught])
    fixed = {"objective": "lambdarank", "seed": 0, "deterministic": True, "num_threads": 1, "verbose": -1}
    model = lightgbm.train(fixed | _TREES, data, _ROUNDS)
    return lambda values: np.asarray(model.predict(values))


def _asked(questions: Path, corpora: Path, homes: Path) -> Iterator[Asked]:
    embedder = StaticEmbedder()
    for file in sorted(questions.glob("*.json")):
        name = file.stem
        if not (corpora / name).is_dir():
            continue
        layout = Layout(homes / name)
        reader = open_reader(layout) if layout.current.exists() else index(corpora / name, homes / name).reader
        referring = _referring(reader)
        rows: list[dict[str, Any]] = json.loads(file.read_text())
        for row in rows:
            hits = _best_of_files(search(reader, row["query"], lambda: embedder, top_k=_FOUND))
            if hits:
                wording = Wording.of(understand(row["query"]), reader)
                values = np.array([_values(hit, hits[0].score, wording, referring) for hit in hits])
                yield Asked(name, [hit.path for hit in hits], targets_of(row), values)


def _best_of_files(hits: Sequence[Hit]) -> list[Hit]:
    first = {hit.path: hit for hit in reversed(hits)}
    return [hit for hit in hits if first[hit.path] is hit]


def _referring(reader: Reader) -> Mapping[str, int]:
    """How many other files refer to what is in each file."""
    places = reader.graph.nodes["path"].to_pylist()
    found: dict[str, set[str]] = defaultdict(set)
    for path, target in zip(reader.graph.edges["path"].to_pylist(), reader.graph.objects.tolist(), strict=True):
        if places[target] is not None and places[target] != path:
            found[places[target]].add(path)
    return {path: len(others) for path, others in found.items()}


def _values(hit: Hit, best: float, wording: Wording, referring: Mapping[str, int]) -> list[float]:
    added = {signal.name: signal.contribution / best for signal in hit.signals}
    signals = ("bm25", "vector", "definition", "heading", "document", "test", "file")
    query = tuple(wording.shares)
    folder = hit.path.rpartition("/")[0].rpartition("/")[2]
    return [
        hit.score / best,
        *(added.get(name, 0.0) for name in signals),
        share_named(hit.path, query) ** 2,
        share_named(folder, query),
        wording.in_chunk(asdict(hit)),
        math.log1p(referring.get(hit.path, 0)),
        math.log1p(len(hit.text)),
        float(hit.path.count("/")),
    ]


if __name__ == "__main__":
    main()
