"""Redaction of texts for strangers: only words from docindex's own documentation pass.

A detector only finds secrets that look like secrets. An error message may contain any: a password that is a word, a
customer's path, a line of a file. So only what is known to be harmless passes. Because a secret may also be a known
word, everything after "password", "user" and the like is hidden. The report shows numbers and choices of
the settings, but no words of their texts.
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
# A word or a small number in punctuation. Anything with other characters inside may be a path, a name or a key.
_PLAIN = re.compile(r"([(\[\"'`]*)([A-Za-z]+|[0-9]{1,4})([)\]\"'`,.:;!?]*)")
_IN_QUOTES = re.compile(r"[\"`]([\w.:/-]{2,60})[\"`]")
_MAX_LENGTH = 400  # characters of a message
# After such a word comes a secret or a name, which may be a known word or a small number.
_SECRET_LABEL = re.compile(
    r"(?<![a-z])(?:pin|[a-z]*(?:pass(?:word|wd|phrase|code)|pwd|secret|token|credential|key|user(?:name)?|customer"
    r"|client|tenant|login|account))s?(?![a-z])",
    re.IGNORECASE,
)
_VALUE = re.compile(r"[=:/@-][^\W_]")  # a value in the same word, as in password=… or user/…
_ENDS_CLAUSE = re.compile(r"[,;:.!?][)\]\"'`]*$")
_MIN_HIDDEN = 3  # words after a telling one, so that "password: well, secret" shows none
_SECRET_NAME = re.compile(
    r"key|token|secret|pass|pwd|credential|auth|webhook|cookie|dsn|(?:^|_)pin(?:_|$)|conn(?:ection)?_?str"
    r"|(?:database|db|postgres\w*|pg|mysql|mariadb|mongo\w*|redis|amqp|broker|connection)_?ur[il]",
    re.IGNORECASE,
)
_FOLDERS = ("PWD", "OLDPWD")  # variables of a shell that hold folders, not passwords
_PASSWORDS = (re.compile(r"://[^\s/:@]*:(\S+)@"), re.compile(r"(?:password|passwd|pwd)=([^\s;&]+)", re.IGNORECASE))
_HOME_NAME = re.compile(r"(?<=/)[0-9a-f]{32}(?![^/\s])")  # the name of a project's home, which is secret
_LONG = 8  # characters; shorter values occur within words by chance
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_VALIDATED = frozenset({"schedule.timezone"})  # settings whose values come from a public list
_ELSEWHERE = frozenset({"root", "home", "source"})  # settings that other parts of the report cover
_OTHER_VARIABLES = (
    *("DOCINDEX_HOME", "DOCINDEX_ROOT", "DOCINDEX_PROJECT", "DOCINDEX_CEILING_DIRECTORIES", "DAGSTER_HOME"),
    *("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OLLAMA_HOST", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"),
    *("LANG", "LC_ALL", "TERM", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "PYTHONPATH", "VIRTUAL_ENV"),
    *("GIT_DIR", "GIT_CONFIG_GLOBAL", "GIT_SSH_COMMAND", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"),
)


def redact_message(message: str) -> str:
    """Replace each run of words that are not in docindex's documentation, or may be secret, with an ellipsis."""
    shown: list[str] = []
    tokens = message.split()
    for token, is_behind in zip(tokens, _follows_label(tokens), strict=True):
        is_known = not is_behind and _is_known(token)
        if is_known or shown[-1:] != [HIDDEN]:
            shown.append(token if is_known else HIDDEN)
    return " ".join(shown)[:_MAX_LENGTH]


def _is_known(token: str) -> bool:
    found = _PLAIN.fullmatch(token)
    return found is not None and (found[2].isdigit() or found[2].lower() in _words())


def _follows_label(tokens: Iterable[str]) -> Iterator[bool]:
    """Yield for each word whether a word such as "password" precedes it in its clause or within three words."""
    fewest, is_in_clause = 0, False
    for token in tokens:
        yield fewest > 0 or is_in_clause
        fewest -= 1
        telling = list(_SECRET_LABEL.finditer(token))
        if telling and not _VALUE.search(token, telling[-1].end()):
            fewest, is_in_clause = _MIN_HIDDEN, True
        else:
            is_in_clause = (is_in_clause or bool(telling)) and not _ENDS_CLAUSE.search(token)


def is_public(name: str) -> bool:
    """Return whether a name, such as a model's, is an example in docindex's documentation."""
    return name in _names()


def without_secrets(text: str, environment: Mapping[str, str] | None = None) -> str:
    """Remove the secrets from a path, URL or name that the user wants to include.

    Args:
        text: the text.
        environment: variables whose secrets are also removed; by default those of this process.
    """
    for value in _values(os.environ if environment is None else environment):
        text = _pattern_of(value).sub(HIDDEN, text)
    cleaned = scrub(_HOME_NAME.sub(HIDDEN, text))
    return mask(cleaned, find_secrets(cleaned))


def _values(environment: Mapping[str, str]) -> list[str]:
    """Return the values of variables with names like secrets, and passwords within values, the longest first."""
    found: set[str] = set()
    for name, value in environment.items():
        if _SECRET_NAME.search(name) and name not in _FOLDERS:
            found.add(value.strip())
        for password in (password for pattern in _PASSWORDS for password in pattern.findall(value)):
            found |= {password, unquote(password)}
    return sorted(found - {""}, key=len, reverse=True)


def _pattern_of(value: str) -> re.Pattern[str]:
    """Return a pattern that finds a secret; a short one matches only if it is not part of a longer word."""
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
    """Return the settings that differ from the defaults, by section and name."""
    return dict(_changed(settings, ""))


def declared_sources(settings: Settings) -> dict[str, int]:
    """Return the number of declared sources of each kind, and of those with each option."""
    found: dict[str, int] = {}
    for source in settings.source:
        for what in (_kind(source), *_options(source)):
            found[what] = found.get(what, 0) + 1
    return found


def set_variables(environment: Mapping[str, str]) -> list[str]:
    """Return the names of the variables that are set and affect docindex.

    Only known names are returned, so that no name that a user made up is repeated.
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
            yield at, _redacted_value(value, field.annotation, at)


def _redacted_value(value: Any, annotation: Any, at: str) -> Any:
    """Return a value if it cannot be a secret, otherwise its type."""
    match value:
        case None | bool() | int() | float():
            return value
        case SecretStr():
            return "(set)"
        case str() if at in _VALIDATED or value in _choices(annotation) or is_public(value):
            return value
        case str() if "://" in value:
            return _redacted_url(value)
        case str() | Path():
            return "(text)"
        case _:
            return f"({len(value)} entries)"


def _choices(annotation: Any) -> tuple[Any, ...]:
    """Return the values that an annotation allows, if it lists them."""
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    return tuple(choice for part in get_args(annotation) for choice in _choices(part))


def _redacted_url(url: str) -> str:
    parts = urlsplit(url)
    scheme = parts.scheme if parts.scheme in {"http", "https", "ssh", "file", "s3", "gs", "az"} else "other scheme"
    return f"({scheme}, {'this machine' if parts.hostname in _LOOPBACK else 'elsewhere'})"


def _kind(source: SourceSettings) -> str:
    if source.kind == "library":
        return "folders of libraries" if source.declares_children else "libraries"
    return "repositories by URL" if source.url is not None else "git work trees"


def _options(source: SourceSettings) -> Iterator[str]:
    names = ("branch", "branches", "submodules", "include", "exclude", "version")
    yield from (f"with {name}" for name in names if getattr(source, name))
    yield from (f"without {name}" for name in ("recursive", "include_code", "untracked") if not getattr(source, name))
