"""What of a text can be repeated where strangers read it: the words that docindex's own pages have, and nothing else.

A detector finds secrets that look like some. A message of an error may hold any: a password that is a word, the path of
a customer, a line of a file. So what is known to be harmless is let through, and nothing else. A secret may be a word
that is known, all the same: what stands behind "password", "user" and the like is hidden, whatever it is.
"""

import builtins
import errno
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from urllib.parse import unquote

from docindex_dagster.core import errors, installation
from docindex_dagster.core.urls import scrub
from docindex_dagster.sources.secrets import find_secrets, mask

HIDDEN = "…"
_LETTERS = re.compile(r"[A-Za-z]+")
# A word or a small number between marks; what has other characters inside may be a path, a name or a key.
_PLAIN = re.compile(r"([(\[\"'`]*)([A-Za-z]+|[0-9]{1,4})([)\]\"'`,.:;!?]*)")
_IN_QUOTES = re.compile(r"[\"`]([\w.:/-]{2,60})[\"`]")
_LONGEST = 400  # characters of a message
# Behind it stands a secret or a name, which may be a word of the pages or a small number.
_TELLING = re.compile(
    r"(?<![a-z])(?:pin|[a-z]*(?:pass(?:word|wd|phrase|code)|pwd|secret|token|credential|key|user(?:name)?|customer"
    r"|client|tenant|login|account))s?(?![a-z])",
    re.IGNORECASE,
)
_VALUE = re.compile(r"[=:/@-][^\W_]")  # in the same word, as in password=… or user/…
_ENDS_CLAUSE = re.compile(r"[,;:.!?][)\]\"'`]*$")
_FEWEST_HIDDEN = 3  # words behind a telling one, so that "password: well, secret" shows none
_SECRET_NAME = re.compile(
    r"key|token|secret|pass|pwd|credential|auth|webhook|cookie|dsn|(?:^|_)pin(?:_|$)|conn(?:ection)?_?str"
    r"|(?:database|db|postgres\w*|pg|mysql|mariadb|mongo\w*|redis|amqp|broker|connection)_?ur[il]",
    re.IGNORECASE,
)
_FOLDERS = ("PWD", "OLDPWD")  # of a shell
_PASSWORDS = (re.compile(r"://[^\s/:@]*:(\S+)@"), re.compile(r"(?:password|passwd|pwd)=([^\s;&]+)", re.IGNORECASE))
_HOME_NAME = re.compile(r"(?<=/)[0-9a-f]{32}(?![^/\s])")  # of a home in a project, which is a secret
_LONG = 8  # characters: what is shorter occurs within words by chance


def harmless(message: str) -> str:
    """A message with an ellipsis for each row of words that docindex's pages do not have, or that may be a secret."""
    shown: list[str] = []
    tokens = message.split()
    for token, is_behind in zip(tokens, _behind(tokens), strict=True):
        is_known = not is_behind and _is_known(token)
        if is_known or shown[-1:] != [HIDDEN]:
            shown.append(token if is_known else HIDDEN)
    return " ".join(shown)[:_LONGEST]


def _is_known(token: str) -> bool:
    found = _PLAIN.fullmatch(token)
    return found is not None and (found[2].isdigit() or found[2].lower() in _words())


def _behind(tokens: Iterable[str]) -> Iterator[bool]:
    """For each word, whether one such as "password" is before it: in its clause, or three words before or less."""
    fewest, is_in_clause = 0, False
    for token in tokens:
        yield fewest > 0 or is_in_clause
        fewest -= 1
        telling = list(_TELLING.finditer(token))
        if telling and not _VALUE.search(token, telling[-1].end()):
            fewest, is_in_clause = _FEWEST_HIDDEN, True
        else:
            is_in_clause = (is_in_clause or bool(telling)) and not _ENDS_CLAUSE.search(token)


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
        text = _place_of(value).sub(HIDDEN, text)
    cleaned = scrub(_HOME_NAME.sub(HIDDEN, text))
    return mask(cleaned, find_secrets(cleaned))


def _values(environment: Mapping[str, str]) -> list[str]:
    """The values of variables that are called like secrets, and passwords within values, the longest first."""
    found: set[str] = set()
    for name, value in environment.items():
        if _SECRET_NAME.search(name) and name not in _FOLDERS:
            found.add(value.strip())
        for password in (password for pattern in _PASSWORDS for password in pattern.findall(value)):
            found |= {password, unquote(password)}
    return sorted(found - {""}, key=len, reverse=True)


def _place_of(value: str) -> re.Pattern[str]:
    """Finds a secret: a short one only where no letter or digit goes on before or behind it."""
    if len(value) >= _LONG:
        return re.compile(re.escape(value))
    before = r"(?<![^\W_])" if value[0].isalnum() else ""
    behind = r"(?![^\W_])" if value[-1].isalnum() else ""
    return re.compile(f"{before}{re.escape(value)}{behind}")


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
    return "\n".join(file.read_text(encoding="utf-8") for file in installation.pages().values())
