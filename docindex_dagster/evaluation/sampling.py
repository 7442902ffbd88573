"""A sample that stays much the same from one night to the next.

Each question has a random number of its own, a hash of its name, and those with the smallest are asked (bottom-k
sampling). So a new commit displaces at most one question, and most of what two nights asked can be compared.
"""

from collections.abc import Sequence
from hashlib import blake2b

from docindex_dagster.evaluation.questions import Question


def sample(questions: Sequence[Question], most: int | None, seed: int = 0) -> list[Question]:
    """At most so many of some questions, in their order; the same for the same names and seed. None: all."""
    if most is None or len(questions) <= most:
        return list(questions)
    chosen = {
        question.name for question in sorted(questions, key=lambda question: random_number(question, seed))[:most]
    }
    return [question for question in questions if question.name in chosen]


def random_number(question: Question, seed: int = 0) -> bytes:
    """Of a question and a seed: eight bytes."""
    return blake2b(f"{seed}:{question.name}".encode(), digest_size=8).digest()
