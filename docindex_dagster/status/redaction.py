"""What of a text can be repeated where strangers read it: the words that docindex's own pages have, and nothing else.

A detector finds secrets that look like some. A message of an error may hold any: a password that is a word, the path of
a customer, a line of a file. So what is known to be harmless is let through, and nothing else. A secret may be a word
that is known, all the same: what stands behind "password", "user" and the like is hidden, whatever it is. Settings are
shown by their numbers and choices, and of their texts no word.
"""

import builtins
import errno
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, SecretStr

from docindex_dagster.core import errors, installation
from docindex_dagster.core.settings import Settings, SourceSettings
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
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_VALIDATED = frozenset({"schedule.timezone"})  # whose text can only be one of a public list
_ELSEWHERE = frozenset({"root", "home", "source"})
_OTHER_VARIABLES = (
    *("DOCINDEX_HOME", "DOCINDEX_ROOT", "DOCINDEX_PROJECT", "DOCINDEX_CEILING_DIRECTORIES", "DAGSTER_HOME"),
    *("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OLLAMA_HOST", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"),
    *("LANG", "LC_ALL", "TERM", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "PYTHONPATH", "VIRTUAL_ENV"),
    *("GIT_DIR", "GIT_CONFIG_GLOBAL", "GIT_SSH_COMMAND", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"),
)


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


def changed_settings(settings: Settings) -> dict[str, Any]:
    """What differs from the defaults, by section and name."""
    return dict(_changed(settings, ""))


def declared_sources(settings: Settings) -> dict[str, int]:
    """How many sources of each kind are declared, and how many have which option."""
    found: dict[str, int] = {}
    for source in settings.source:
        for what in (_kind(source), *_options(source)):
            found[what] = found.get(what, 0) + 1
    return found


def set_variables(environment: Mapping[str, str]) -> list[str]:
    """The variables that decide something for docindex and are set: their names alone.

    Only names are compared that docindex knows, so that none is repeated that a user made up.
    """
    known = {*_OTHER_VARIABLES, *(f"DOCINDEX_{section}__{name}".upper() for section, name in _setting_names())}
    return sorted(name for name in environment if name in known)


def _setting_names() -> Iterator[tuple[str, str]]:
    for section, field in Settings.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from ((section, name) for name in field.annotation.model_fields)


def _changed(section: BaseModel, path: str) -> Iterator[tuple[str, Any]]:
    for name, field in type(section).model_fields.items():
        value, at = getattr(section, name), f"{path}{name}"
        if at in _ELSEWHERE:
            continue
        if isinstance(value, BaseModel):
            yield from _changed(value, f"{at}.")
        elif value != field.default:
            yield at, _shown(value, field.annotation, at)


def _shown(value: Any, annotation: Any, at: str) -> Any:
    """A value if it can be no secret, else what kind of value it is."""
    match value:
        case None | bool() | int() | float():
            return value
        case SecretStr():
            return "(set)"
        case str() if at in _VALIDATED or value in _choices(annotation) or is_public(value):
            return value
        case str() if "://" in value:
            return _shown_url(value)
        case str() | Path():
            return "(a text)"
        case _:
            return f"({len(value)} entries)"


def _choices(annotation: Any) -> tuple[Any, ...]:
    """The values that an annotation allows, where it names them."""
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    return tuple(choice for part in get_args(annotation) for choice in _choices(part))


def _shown_url(url: str) -> str:
    parts = urlsplit(url)
    scheme = parts.scheme if parts.scheme in {"http", "https", "ssh", "file", "s3", "gs", "az"} else "another scheme"
    return f"({scheme}, {'this machine' if parts.hostname in _LOOPBACK else 'elsewhere'})"


def _kind(source: SourceSettings) -> str:
    if source.kind == "library":
        return "folders of libraries" if source.declares_children else "libraries"
    return "repositories by URL" if source.url is not None else "git work trees"


def _options(source: SourceSettings) -> Iterator[str]:
    names = ("branch", "branches", "submodules", "include", "exclude", "version")
    yield from (f"with {name}" for name in names if getattr(source, name))
    yield from (f"without {name}" for name in ("recursive", "include_code", "untracked") if not getattr(source, name))
