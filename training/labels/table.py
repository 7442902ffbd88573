"""Which repositories questions are made of, and which of their folders are indexed."""

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from training.labels.repository import Job
from training.licences import read_corpus
from training.mirrors import read_exclusions


class Row(NamedTuple):
    """Which folders and files of a repository are indexed, `.` for all, and which in them are from elsewhere."""

    folders: tuple[str, ...]
    without: tuple[str, ...]


def read_table(path: Path) -> dict[str, Row]:
    """The rows of the table by repository."""
    with path.open(encoding="utf-8", newline="") as file:
        return {
            row["repository"]: Row(tuple(row["folders"].split()), tuple(row["without"].split()))
            for row in csv.DictReader(file)
        }


def jobs_of(folder: Path, mirrors: Path, build: Path, seed: int, most: int) -> list[Job]:
    """What is to be made of each repository of `labels.csv` in a folder, at the revision that `corpus.csv` names."""
    entries = {entry.repository: entry for entry in read_corpus(folder / "corpus.csv")}
    exclusions = read_exclusions(folder / "exclusions.csv")
    return [
        Job(entries[repository], *row, exclusions.get(repository, ()), mirrors, build, seed, most)
        for repository, row in read_table(folder / "labels.csv").items()
    ]


def problems(folder: Path, others: Iterable[Path] = ()) -> list[str]:
    """What forbids to train on the repositories of `labels.csv`; nothing where all is well.

    Args:
        folder: of the tables.
        others: lists of names never to train on that `never.txt` has to hold whole, such as a benchmark's.
    """
    never = _names(folder / "never.txt")
    corpus = {entry.repository for entry in read_corpus(folder / "corpus.csv")}
    bare = {name.rpartition("/")[2] for name in never}
    found = [f"{name}: in {other}, and not in never.txt" for other in others for name in sorted(_names(other) - never)]
    for repository in read_table(folder / "labels.csv"):
        name = repository.lower()
        if repository not in corpus:
            found.append(f"{repository}: not in corpus.csv, which says its revision and licence")
        if name in never or name.rpartition("/")[2] in bare:
            found.append(f"{repository}: on the list of repositories never to train on")
    return found


def _names(path: Path) -> set[str]:
    return {line.strip().lower() for line in path.read_text("utf-8").splitlines() if line.strip()}
