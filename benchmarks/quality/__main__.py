"""Measure search quality: files, passages, the gain from each signal, and the variation over repositories.

    python -m benchmarks.quality BENCH CORPORA [--grid] [--plot FILE.svg]

BENCH has `repos.json`, `queries/NAME.json` (questions for files), and `passages/code.csv` and `docs.csv` (questions for
lines of one repository). CORPORA has each repository by name at its pinned revision. One configuration answers all.

Files are scored by binary NDCG@10 over chunks by file (see `benchmarks/files.py`). Passages are scored by graded
NDCG@10, as by the authors of the set: a hit that overlaps target lines counts as the best of these targets, the ideal
ranking has each target once, and each hit of a target counts. The value may therefore exceed 1.

Gains have 95 % intervals by paired bootstrap over questions. `--grid` adds other values of each weight and, for each
repository, its score with the value that is best on all others, which shows how much the results depend on the choice.
"""

import argparse
from pathlib import Path

from benchmarks.quality import tables
from benchmarks.quality.evaluate import HYBRID, PLAIN, evaluate, modes, with_graph, with_others, without_each
from benchmarks.quality.questions import read_questions


def main() -> None:
    """Print the tables, and draw the plot."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path)
    parser.add_argument("corpora", type=Path)
    parser.add_argument("--grid", action="store_true", help="Also measure other values of each weight.")
    parser.add_argument("--plot", type=Path, help="Plot the modes and signals as an SVG file.")
    arguments = parser.parse_args()
    whole, without, others = modes(), without_each(), with_others() if arguments.grid else []
    boosted = with_graph()
    questions = read_questions(arguments.bench)
    scores = evaluate(arguments.corpora, questions, [*whole, *without, *boosted, *others])
    results = tables.Results(questions, scores)
    named = [*(variation.name for variation in whole), PLAIN]
    tables.means(results, named)
    tables.passages(results, named)
    tables.gains(results, named[:-1], PLAIN)
    tables.by_column(results, HYBRID, "bm25")
    tables.gains(results, [variation.name for variation in (*without, *boosted, *others)], HYBRID)
    for variation in boosted:
        tables.by_column(results, variation.name, HYBRID)
    tables.by_column(results, "graph", "vector")
    if others:
        tables.leave_one_out(results, [HYBRID, *(variation.name for variation in (*without, *others))])
    if arguments.plot:
        from benchmarks.quality.plot import plot

        plot(results, arguments.plot)


if __name__ == "__main__":
    main()
