"""Quotes found in texts: verbatim but for white space, line breaks, and what begins each line of a comment."""

import re

_COMMENT = re.compile(r"^\s*(?:[#*>;%]+|//+|--|/\*+)(?=\s|$)")


def flat(text: str) -> str:
    """A text as one line, with one space for all white space between words."""
    return " ".join(line for line in map(_flat_line, text.split("\n")) if line)


def lines_of(quote: str, text: str) -> tuple[int, int] | None:
    """The first and last line of a text, from 0, between which a flat quote stands; None where it does not."""
    at = flat(text).find(quote)
    if not quote or at < 0:
        return None
    begin, found = 0, []
    for number, line in enumerate(map(_flat_line, text.split("\n"))):
        if line and begin < at + len(quote) and at < begin + len(line):
            found.append(number)
        begin += len(line) + 1 if line else 0
    return found[0], found[-1]


def _flat_line(line: str) -> str:
    return " ".join(_COMMENT.sub("", line).split())
