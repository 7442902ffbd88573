"""Would a learned order of files be better? `learned BENCH CORPORA [--labels LABELS CORPORA] [--plot FILE.svg]`.

The files that a search finds for a question are described by some values, and a model learns from other questions which
of them comes first: linear, with the softmax over the files of a question as its loss, or LightGBM's LambdaMART, where
that is installed. Printed are NDCG@10 by file and the gain over the order that the product gives, with its interval by
paired bootstrap; then what each value is worth to a model, with a hash of it, and what is lost without the value.

Each of eight folds of repositories is ordered by what the others taught. With `--labels`, all are also ordered by what
LABELS taught: `NAME.json` with questions as in BENCH, over the repositories of its CORPORA; by commits and issues, and
by each source (`category`) alone and by all others. With `--homes`, indexes are kept there, and used the next time;
with `--tables`, what searches found.
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
    """Print what models reach, and what values and sources are worth to them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path)
    parser.add_argument("corpora", type=Path)
    parser.add_argument("--labels", type=Path, nargs=2, metavar=("LABELS", "CORPORA"))
    parser.add_argument("--homes", type=Path, help="Where indexes are kept.")
    parser.add_argument("--tables", type=Path, help="Where what searches found is kept.")
    parser.add_argument("--plot", type=Path, help="Draw what models learned: an SVG file.")
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
    """Say what it took so far, apart from the figures, which are the same each time."""
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stderr.write(f"{done}: {sum(os.times()[:4]):.0f} s of CPU time, {memory:.0f} MiB\n")


if __name__ == "__main__":
    main()
