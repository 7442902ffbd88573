"""The checkout and the questions of one repository."""

import json
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from training.labels.changes import questions_of_commits, questions_of_issues
from training.labels.checkout import Checkout, is_in, is_left_out
from training.labels.definitions import docstring_questions, symbol_questions
from training.labels.headings import heading_questions
from training.labels.holding import Held, choose, hold_out
from training.labels.questions import CATEGORIES, Category, Question, distinct, sample
from training.licences import Entry
from training.mirrors import check_out, mirror_of


class Job(NamedTuple):
    """What is made of one repository, and where."""

    entry: Entry
    folders: tuple[str, ...]  # that are indexed
    without: tuple[str, ...]  # what in them is from elsewhere
    excluded: tuple[str, ...]  # what nothing is trained on
    mirrors: Path
    build: Path
    seed: int
    most: int  # questions of a category

    @property
    def name(self) -> str:
        """The repository's name without its owner."""
        return self.entry.repository.rpartition("/")[2]

    def is_wanted(self, path: str) -> bool:
        """Whether a file is indexed."""
        return is_in(path, self.folders) and not is_in(path, self.without) and not is_left_out(path)


class Made(NamedTuple):
    """What came of it."""

    job: Job
    language: str  # in which most of the code is written
    counts: dict[Category, int]  # of questions


def make(job: Job) -> Made:
    """Write the checkout and the questions of a repository.

    Raises:
        CalledProcessError: git cannot read the repository.
    """
    target, labels = job.build / "corpora" / job.name, job.build / "labels" / f"{job.name}.json"
    labels.unlink(missing_ok=True)
    if target.exists():
        shutil.rmtree(target)
    mirror = mirror_of(job.mirrors, job.entry)
    check_out(mirror, job.entry.revision, target, job.excluded, job.is_wanted)
    checkout = Checkout.of(target)
    language = _language(checkout)
    questions = _questions(job, mirror, checkout)
    labels.parent.mkdir(parents=True, exist_ok=True)
    labels.write_text(_as_json(questions), "utf-8")
    counts = {category: sum(question.category == category for question in questions) for category in CATEGORIES}
    return Made(job, language, counts)


def _language(checkout: Checkout) -> str:
    sizes = Counter[str]()
    for file in checkout.files.values():
        if file.source_type == "code":
            sizes[file.language or ""] += len(checkout.text(file.path))
    return max(sizes, key=lambda language: (sizes[language], language))


def _questions(job: Job, mirror: Path, checkout: Checkout) -> list[Question]:
    revision = job.entry.revision
    found = [
        *_sampled(job, "issue", questions_of_issues(mirror, revision, checkout)),
        *_sampled(job, "commit", questions_of_commits(mirror, revision, checkout)),
        *_sampled(job, "symbol", symbol_questions(checkout)),
    ]
    chosen = [
        *_held(job, "docstring", docstring_questions(checkout), checkout),
        *_held(job, "heading", heading_questions(checkout), checkout),
    ]
    questions = distinct([*found, *hold_out(chosen, checkout)])
    return sorted(questions, key=lambda question: (question.category, question.query, question.targets))


def _sampled(job: Job, category: Category, questions: Iterable[Question]) -> list[Question]:
    return sample([*distinct(questions)], job.most, f"{job.seed} {job.entry.repository} {category}")


def _held(job: Job, category: Category, candidates: Iterable[Held], checkout: Checkout) -> Sequence[Held]:
    by_question = {held.question: held for held in candidates}
    order = _all_sampled(job, category, by_question)
    return choose([by_question[question] for question in order], job.most, checkout)


def _all_sampled(job: Job, category: Category, questions: Iterable[Question]) -> list[Question]:
    asked = [*distinct(questions)]
    return sample(asked, len(asked), f"{job.seed} {job.entry.repository} {category}")


def _as_json(questions: Iterable[Question]) -> str:
    rows = [
        {"query": question.query, "category": question.category, "targets": [*question.targets]}
        for question in questions
    ]
    return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"
