"""What of a text can be repeated where strangers read it: the words that docindex's own pages have, and nothing else.

A detector finds secrets that look like some. A message of an error may hold any: a password that is a word, the path of
a customer, a line of a file. So nothing is looked for and taken out; what is known to be harmless is let through.
"""

import builtins
import errno
import os
import re
from collections.abc import Iterable, Mapping
from functools import cache

from docindex_dagster.core import errors, pages
from docindex_dagster.core.urls import scrub
from docindex_dagster.sources.secrets import find_secrets, mask

HIDDEN = "…"
_LETTERS = re.compile(r"[A-Za-z]+")
# A word or a small number between marks; what has other characters inside may be a path, a name or a key.
_PLAIN = re.compile(r"([(\[\"'`]*)([A-Za-z]+|[0-9]{1,4})([)\]\"'`,.:;!?]*)")
_IN_QUOTES = re.compile(r"[\"`]([\w.:/-]{2,60})[\"`]")
_LONGEST = 400  # characters of a message
_SECRET_NAME = re.compile(r"key|token|secret|passw|credential|auth|webhook", re.IGNORECASE)
_SHORTEST_SECRET = 8


def harmless(message: str) -> str:
    """A message with an ellipsis for each row of words that docindex's pages do not have."""
    shown: list[str] = []
    for token in message.split():
        found = _PLAIN.fullmatch(token)
        is_known = found is not None and (found[2].isdigit() or found[2].lower() in _words())
        if is_known or shown[-1:] != [HIDDEN]:
            shown.append(token if is_known else HIDDEN)
    return " ".join(shown)[:_LONGEST]


def is_public(name: str) -> bool:
    """Whether a name, as that of a model, is one that docindex's pages have as an example."""
    return name in _names()


def masked(text: str, environment: Mapping[str, str] | None = None) -> str:
    """A path, a URL or a name that the user wants shown, without the secrets that are found in it.

    Args:
        text: what is shown.
        environment: whose secrets are hidden as well; by default that of this process.
    """
    for value in _values(os.environ if environment is None else environment):
        text = text.replace(value, HIDDEN)
    cleaned = scrub(text)
    return mask(cleaned, find_secrets(cleaned))


def _values(environment: Mapping[str, str]) -> Iterable[str]:
    """The values of variables that are called like secrets, the longest first."""
    found = [value for name, value in environment.items() if _SECRET_NAME.search(name)]
    return sorted((value for value in found if len(value) >= _SHORTEST_SECRET), key=len, reverse=True)


@cache
def _words() -> frozenset[str]:
    kinds = [name for module in (errors, builtins) for name in vars(module) if name.endswith(("Error", "Exception"))]
    reasons = [word for code in errno.errorcode for word in _LETTERS.findall(os.strerror(code))]
    return frozenset(word.lower() for word in (*_LETTERS.findall(_texts()), *kinds, *reasons))


@cache
def _names() -> frozenset[str]:
    return frozenset(_IN_QUOTES.findall(_texts()))


@cache
def _texts() -> str:
    return "\n".join(file.read_text(encoding="utf-8") for file in pages.pages().values())
