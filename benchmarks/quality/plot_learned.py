"""Plot of the importance of each value to learned models, and of the loss without it.

Requires the extra `bench`.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib import rcParams
from matplotlib.figure import Figure

from benchmarks.quality.ablation import Worth
from benchmarks.quality.candidates import VALUES

_COLOURS = ("#3b6fb6", "#d98032")


def plot(worths: Sequence[Worth], file: Path) -> None:
    """Write the plot as SVG, with two columns for each model and a color for each training set."""
    names = list(dict.fromkeys(worth.model.name for worth in worths))
    figure = Figure(figsize=(13, 4.8), layout="tight")
    axes = np.atleast_1d(figure.subplots(1, 2 * len(names), sharey=True))
    for at, name in enumerate(names):
        drawn, lost = axes[2 * at], axes[2 * at + 1]
        for number, worth in enumerate(worth for worth in worths if worth.model.name == name):
            rows = np.arange(len(VALUES)) + (number - 0.5) * 0.38
            colour = _COLOURS[number]
            drawn.barh(rows, worth.learned.worth, 0.36, color=colour, label=f"trained on {worth.taught_by}")
            middle = np.array([loss.mean for loss in worth.losses])
            reach = np.abs(np.array([(loss.low, loss.high) for loss in worth.losses]).T - middle)
            lost.errorbar(middle, rows, xerr=reach, fmt="o", markersize=4, linewidth=1.2, color=colour)
            drawn.set_xlabel(f"{name}:\n{worth.model.worth}")
            lost.set_xlabel(f"{name}:\nNDCG@10 without it, with 95 % intervals")
        lost.locator_params(axis="x", nbins=5)
        drawn.axvline(0, color="#888888", linewidth=0.8)
        lost.axvline(0, color="#888888", linewidth=0.8)
    axes[0].set_yticks(range(len(VALUES)), list(VALUES))
    axes[0].invert_yaxis()
    axes[-2].legend(frameon=False, fontsize=8, loc="lower right")
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
    rcParams["svg.hashsalt"] = "docindex"  # reproducible output
    figure.savefig(file, metadata={"Date": None})
