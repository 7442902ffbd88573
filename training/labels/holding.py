"""Taking the words of questions out of the files that answer them."""

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from training.labels.checkout import Checkout
from training.labels.questions import Question, normalised

_QUOTED = re.compile(rb"(?P<before>[~a-zA-Z]*)(?P<quotes>\"\"\"|'''|\"|')(?P<text>.*)(?P=quotes)", re.DOTALL)


class Cut(NamedTuple):
    """Bytes of a text that are taken out."""

    start: int
    end: int


class Held(NamedTuple):
    """A question, and what is to be cut out of the file that it was taken from."""

    question: Question
    path: str
    cuts: Sequence[Cut]


def choose(candidates: Sequence[Held], most: int, checkout: Checkout) -> list[Held]:
    """The first questions whose words stand in the files but once, where they are cut out."""
    texts = checkout.normalised_texts().values()
    chosen: list[Held] = []
    for held in candidates:
        if len(chosen) == most:
            break
        words = normalised(held.question.query)
        if sum(text.count(words) for text in texts) <= 1:
            chosen.append(held)
    return chosen


def hold_out(chosen: Iterable[Held], checkout: Checkout) -> list[Question]:
    """Cut the words of questions out of their files; those questions whose words are then in no file."""
    by_path = sorted(chosen, key=lambda held: held.path)
    for path, group in groupby(by_path, key=lambda held: held.path):
        cuts = sorted({cut for held in group for cut in held.cuts}, reverse=True)
        data = checkout.text(path).encode()
        for cut in cuts:
            data = _without(data, cut)
        checkout.replace(path, data.decode())
    texts = checkout.normalised_texts().values()
    questions = [held.question for held in by_path]
    return [question for question in questions if not any(normalised(question.query) in text for text in texts)]


def _without(data: bytes, cut: Cut) -> bytes:
    """A text without a span, and without its lines where nothing else is on them; else the quotes of a literal stay."""
    line_start = data.rfind(b"\n", 0, cut.start) + 1
    line_end = data.find(b"\n", cut.end - 1 if data[cut.end - 1 : cut.end] == b"\n" else cut.end) + 1 or len(data)
    if not data[line_start : cut.start].strip() and not data[cut.end : line_end].strip():
        return data[:line_start] + data[line_end:]
    quoted = _QUOTED.fullmatch(data[cut.start : cut.end])
    empty = (
        b"".join([quoted["before"], quoted["quotes"], b"\n" if b"\n" in quoted["text"] else b"", quoted["quotes"]])
        if quoted
        else b""
    )
    return data[: cut.start] + empty + data[cut.end :]
