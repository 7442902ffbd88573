"""Measure a learned order of files.

    python -m benchmarks.quality.learned BENCH CORPORA [--labels LABELS CORPORA] [--plot FILE.svg]

The files found for a question are described by several values, and a model learns their order from other questions. The
models are linear, with the softmax over the files of a question as the loss, and LightGBM's LambdaMART if installed.
The output has NDCG@10 by file and the gain over the product's order, with its interval by paired bootstrap. Then it has
the importance of each value to a model, the loss without it, and a hash of the model.

Each of eight folds of repositories is ordered by models trained on the others. With `--labels`, all are also ordered by
models trained on LABELS: `NAME.json` with questions as in BENCH, over the repositories of its CORPORA. These models use
commits and issues, each source (`category`) alone, and all other sources. `--homes` keeps indexes in a folder for
reuse, and `--tables` keeps search results.
"""

import argparse
import os
import resource
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.quality.ablation import HISTORY, PEOPLE, Study, print_models, print_sources, print_worths
from benchmarks.quality.candidates import ask
from benchmarks.quality.models import models


def main() -> None:
    """Print the results of models, and the importance of values and sources."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path)
    parser.add_argument("corpora", type=Path)
    parser.add_argument("--labels", type=Path, nargs=2, metavar=("LABELS", "CORPORA"))
    parser.add_argument("--homes", type=Path, help="Folder to keep indexes in.")
    parser.add_argument("--tables", type=Path, help="Folder to keep search results in.")
    parser.add_argument("--plot", type=Path, help="Plot the learned importance as an SVG file.")
    arguments = parser.parse_args()
    with TemporaryDirectory() as temporary:
        study = _study(arguments, arguments.homes or Path(temporary))
    _report_cost("files of all questions found")
    installed = models()
    taught = [(PEOPLE,), HISTORY, (PEOPLE, *HISTORY)] if study.labels else [(PEOPLE,)]
    print_models(study, installed, taught)
    if study.labels:
        print_sources(study, installed)
    worths = [study.worths(model, sources) for model in installed for sources in taught[:2]]
    print_worths(worths)
    _report_cost("all learned")
    if arguments.plot:
        from benchmarks.quality.plot_learned import plot

        plot(worths, arguments.plot)


def _study(arguments: argparse.Namespace, homes: Path) -> Study:
    tables: Path | None = arguments.tables
    asked = ask(arguments.bench / "queries", arguments.corpora, homes, tables)
    if not arguments.labels:
        return Study(list(asked), [])
    labels, corpora = arguments.labels
    return Study(list(asked), list(ask(labels, corpora, homes / "labels", tables and tables / "labels")))


def _report_cost(done: str) -> None:
    """Print the cost so far, apart from the reproducible results."""
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stderr.write(f"{done}: {sum(os.times()[:4]):.0f} s of CPU time, {memory:.0f} MiB\n")


if __name__ == "__main__":
    main()
