"""Plot of the modes, with plain BM25 for comparison, and of the gain from each signal.

Requires the extra `bench`.
"""

from pathlib import Path

import numpy as np
from matplotlib import rcParams
from matplotlib.figure import Figure

from benchmarks.quality.evaluate import HYBRID, NEUTRAL, PLAIN
from benchmarks.quality.questions import SETS
from benchmarks.quality.tables import Results

_COLOURS = ("#3b6fb6", "#d98032", "#4f9d69")
_SHOWN = (PLAIN, "vector", "bm25", HYBRID)


def plot(results: Results, file: Path) -> None:
    """Write the plot as SVG."""
    figure = Figure(figsize=(11, 4.6), layout="tight")
    left, right = figure.subplots(1, 2, gridspec_kw={"width_ratios": (4, 7)})
    for at, (column, colour) in enumerate(zip(SETS, _COLOURS, strict=True)):
        members = results.members(column)
        places = np.arange(len(_SHOWN)) + (at - 1) * 0.27
        heights = [results.values(name)[members].mean() for name in _SHOWN]
        left.bar(places, heights, 0.25, color=colour, label=column)
        gained = [results.gain(HYBRID, f"- {name}", column) for name in NEUTRAL]
        middle = np.array([mean for mean, _, _ in gained])
        reach = np.abs(np.array([(low, high) for _, low, high in gained]).T - middle)
        rows = np.arange(len(gained)) + (at - 1) * 0.22
        right.errorbar(middle, rows, xerr=reach, fmt="o", markersize=4, linewidth=1.2, color=colour)
    left.set_xticks(range(len(_SHOWN)), _SHOWN)
    left.set_ylabel("NDCG@10")
    left.legend(frameon=False)
    right.axvline(0, color="#888888", linewidth=0.8)
    right.set_yticks(range(len(NEUTRAL)), list(NEUTRAL))
    right.invert_yaxis()
    right.set_xlabel("gain of hybrid from each signal: NDCG@10, with 95 % intervals")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    rcParams["svg.hashsalt"] = "docindex"  # reproducible output
    figure.savefig(file, metadata={"Date": None})
