"""The checkout and the questions of one repository."""

import json
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from training.labels.changes import questions_of_commits, questions_of_issues
from training.labels.checkout import Checkout, is_wanted
from training.labels.definitions import docstring_questions, symbol_questions
from training.labels.headings import heading_questions
from training.labels.holding import Held, choose, hold_out
from training.labels.questions import CATEGORIES, Category, Question, distinct, sample
from training.licences import Entry
from training.mirrors import check_out, mirror_of


class Job(NamedTuple):
    """What is made of one repository, and where."""

    entry: Entry
    folders: tuple[str, ...]
    excluded: tuple[str, ...]
    mirrors: Path
    build: Path
    seed: int
    most: int  # questions of a category

    @property
    def name(self) -> str:
        """The repository's name without its owner."""
        return self.entry.repository.rpartition("/")[2]


def make(job: Job) -> tuple[str, dict[Category, int]]:
    """Write the checkout and the questions of a repository; its name, and how many there are of each category.

    Raises:
        CalledProcessError: git cannot read the repository.
    """
    target, labels = job.build / "corpora" / job.name, job.build / "labels" / f"{job.name}.json"
    labels.unlink(missing_ok=True)
    if target.exists():
        shutil.rmtree(target)
    mirror = mirror_of(job.mirrors, job.entry)
    check_out(mirror, job.entry.revision, target, job.excluded, lambda path: is_wanted(path, job.folders))
    questions = _questions(job, mirror, Checkout.of(target))
    labels.parent.mkdir(parents=True, exist_ok=True)
    labels.write_text(_as_json(questions), "utf-8")
    return job.entry.repository, {category: sum(question.category == category for question in questions) for category in CATEGORIES}


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
