"""Models that learn the order of files from their values: linear, and LightGBM's LambdaMART."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

from benchmarks.quality.candidates import Asked, Values

_PENALTY = 10.0  # penalty of large weights
_TREES = {"learning_rate": 0.05, "num_leaves": 6, "min_data_in_leaf": 100, "lambda_l2": 10.0, "feature_fraction": 0.4}
_ROUNDS = 100
_FIXED = {
    "objective": "lambdarank",
    "seed": 0,
    "deterministic": True,
    "force_row_wise": True,  # otherwise LightGBM chooses the faster method, which may vary
    "num_threads": 1,
    "verbose": -1,
}


@dataclass(frozen=True, slots=True)
class Learned:
    """A trained model."""

    order: Callable[[Values], Values]  # scores of files by their values
    worth: Values  # importance of each value to the model
    text: str  # serialized model

    @property
    def identity(self) -> str:
        """A hash that is equal for equal models."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]


class Model(NamedTuple):
    """A function that trains on questions and columns of their values, with the meaning of its importance."""

    name: str
    learn: Callable[[Sequence[Asked], Sequence[int]], Learned]
    worth: str


def models() -> list[Model]:
    """Return the installed models."""
    found = [Model("linear", linear, "weight per standard deviation")]
    return [*found, Model("LambdaMART", trees, "share of the gain of splits")] if find_spec("lightgbm") else found


def linear(taught: Sequence[Asked], columns: Sequence[int]) -> Learned:
    """Learn a weighted sum that maximizes the softmax share of a question's target files."""
    from scipy.optimize import minimize

    used = [(one.values[:, columns], one.is_right) for one in taught]
    used = [(values, is_right) for values, is_right in used if is_right.any()]
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

    weights: Values = minimize(loss, np.zeros(len(columns)), jac=True, method="L-BFGS-B").x
    text = "\n".join(" ".join(f"{number:.9f}" for number in numbers) for numbers in (weights, mean, spread))
    return Learned(lambda values: (values[:, columns] - mean) / spread @ weights, weights, text)


def trees(taught: Sequence[Asked], columns: Sequence[int]) -> Learned:
    """Learn gradient-boosted trees with LightGBM's ranking objective."""
    import lightgbm

    rows = np.concatenate([one.values[:, columns] for one in taught])
    right = np.concatenate([one.is_right for one in taught]).astype(int)
    data = lightgbm.Dataset(rows, right, group=[len(one.paths) for one in taught])
    model = lightgbm.train(_FIXED | _TREES, data, _ROUNDS)
    gains = model.feature_importance("gain")
    return Learned(
        lambda values: np.asarray(model.predict(values[:, columns])), gains / gains.sum(), model.model_to_string()
    )
