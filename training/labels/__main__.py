"""Make questions with known answers from the history and the texts of repositories, to train a ranker on.

    python -m training.labels BUILD --mirrors FOLDER [--never FILE...] [--only OWNER/NAME...]

BUILD/corpora/NAME is the checkout that is to be indexed, without the texts that questions were made of;
BUILD/labels/NAME.json has the questions and BUILD/repos.json
the repositories, both in the shape of the benchmark's. The same seed gives the same files.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path

from training.labels.repository import Made, make
from training.labels.table import jobs_of, problems

_FOLDER = Path(__file__).parent.parent


def main() -> None:
    """Make the questions of all repositories of the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path, help="A folder for the checkouts and questions.")
    parser.add_argument("--mirrors", type=Path, required=True, help="Bare clones OWNER+NAME/repo with their history.")
    parser.add_argument("--never", type=Path, action="append", default=[], help="A list of names never to train on.")
    parser.add_argument("--only", action="append", default=[], help="Only this repository.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most", type=int, default=60, help="Questions of a category and repository.")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    if wrong := problems(_FOLDER, arguments.never):
        sys.exit("\n".join(wrong))
    started = time.monotonic()
    jobs = jobs_of(_FOLDER, arguments.mirrors, arguments.build, arguments.seed, arguments.most)
    jobs = [job for job in jobs if not arguments.only or job.entry.repository in arguments.only]
    with get_context("spawn").Pool(arguments.workers, maxtasksperchild=4) as pool:
        found: list[Made] = []
        for made in pool.imap_unordered(make, jobs):
            found.append(made)
            text = ", ".join(f"{category} {count}" for category, count in made.counts.items())
            name = made.job.entry.repository
            sys.stdout.write(f"{time.monotonic() - started:5.0f} s  {len(found)} of {len(jobs)}  {name}: {text}\n")
            sys.stdout.flush()
    _write_table(arguments.build / "repos.json", found)


def _write_table(path: Path, found: Sequence[Made]) -> None:
    """The repositories, in the shape of the benchmark's table: what is checked out is all indexed."""
    rows = [
        {
            "name": made.job.name,
            "language": made.language,
            "github": made.job.entry.repository,
            "revision": made.job.entry.revision,
            "root": None,
        }
        for made in sorted(found, key=lambda made: made.job.entry.repository.lower())
    ]
    path.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"{error.cmd}: {error.stderr.decode(errors='replace')}")
