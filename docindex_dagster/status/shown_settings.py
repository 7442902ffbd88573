"""The settings of a project as strangers may see them: numbers and choices as they are, of texts no word."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin
from urllib.parse import urlsplit

from pydantic import BaseModel, SecretStr

from docindex_dagster.core.settings import Settings, SourceSettings
from docindex_dagster.status.redaction import is_public

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_VALIDATED = frozenset({"schedule.timezone"})  # whose text can only be one of a public list
_ELSEWHERE = frozenset({"root", "home", "source"})


def changed(settings: Settings) -> dict[str, Any]:
    """What differs from the defaults, by section and name."""
    return dict(_changed(settings, ""))


def declared(settings: Settings) -> dict[str, int]:
    """How many sources of each kind are declared, and how many have which option."""
    found: dict[str, int] = {}
    for source in settings.source:
        for what in (_kind(source), *_options(source)):
            found[what] = found.get(what, 0) + 1
    return found


def variables(environment: Mapping[str, str]) -> list[str]:
    """The variables that decide something for docindex and are set: their names alone.

    Only names are compared that docindex knows, so that none is repeated that a user made up.
    """
    known = {*_OTHERS, *(f"DOCINDEX_{section}__{name}".upper() for section, name in _names())}
    return sorted(name for name in environment if name in known)


_OTHERS = (
    *("DOCINDEX_HOME", "DOCINDEX_ROOT", "DOCINDEX_PROJECT", "DOCINDEX_CEILING_DIRECTORIES", "DAGSTER_HOME"),
    *("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OLLAMA_HOST", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"),
    *("LANG", "LC_ALL", "TERM", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "PYTHONPATH", "VIRTUAL_ENV"),
    *("GIT_DIR", "GIT_CONFIG_GLOBAL", "GIT_SSH_COMMAND", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"),
)


def _names() -> Iterator[tuple[str, str]]:
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
