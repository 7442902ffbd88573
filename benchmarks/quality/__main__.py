"""How good is the first page? Files, passages, each signal's worth, and the spread over repositories.

    python -m benchmarks.quality BENCH CORPORA [--grid] [--plot FILE.svg]

BENCH has `repos.json`, `queries/NAME.json` (questions for files) and `passages/code.csv` and `docs.csv` (questions for
lines, over one repository); CORPORA holds each repository by name, at its pinned revision. One configuration answers
all.

Files are scored by binary NDCG@10 over chunks by file (see `benchmarks/files.py`). Passages by graded NDCG@10: a hit
that overlaps the lines of targets counts as the best of them, the ideal ranking has each target once, and hits of one
target count each, as the authors of the set score it; so the value may exceed 1.

Gains come with their 95 % interval by paired bootstrap over questions. With `--grid`, other values of each weight
follow, and for each repository what it would score with the value that is best on all others: how much the figures hang
on the choice.
"""

import argparse
from pathlib import Path

from benchmarks.quality import tables
from benchmarks.quality.evaluate import HYBRID, PLAIN, evaluate, modes, with_graph, with_others, without_each
from benchmarks.quality.questions import read_questions


def main() -> None:
    """Print the tables, and draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path)
    parser.add_argument("corpora", type=Path)
    parser.add_argument("--grid", action="store_true", help="Also other values of each weight.")
    parser.add_argument("--plot", type=Path, help="Draw a picture of the modes and signals: an SVG file.")
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
