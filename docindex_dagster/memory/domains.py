"""Domains: separate memories of an agent, a project or a session. Each has its own home."""

import os
import re
from urllib.parse import unquote

from docindex_dagster.core.errors import DomainError
from docindex_dagster.core.layout import Layout

_KINDS = ("memory", "project", "session")
_KEY = re.compile(rf"(?:{'|'.join(_KINDS)})/(?=[^/]*[^./])[a-z0-9._-]{{1,64}}")


def check(key: str) -> str:
    """Return the key of a domain, `memory/NAME`, `project/NAME` or `session/ID`, if it is valid.

    Raises:
        DomainError: The key is invalid.
    """
    if not is_key(key):
        raise DomainError(
            f"invalid domain {key[:100]!r}: expected memory/NAME, project/NAME or session/ID, where the name has 1 to "
            "64 characters of a-z, 0-9, '.', '_' and '-', and not only dots"
        )
    return key


def is_key(text: str) -> bool:
    """Return whether a text is the key of a domain; keys of sources never are."""
    return _KEY.fullmatch(text) is not None


def home(layout: Layout, key: str) -> Layout:
    """Return the home of a domain, given the home of the project; it may not exist yet.

    Raises:
        DomainError: The key is invalid.
    """
    return layout.domain(check(key))


def domains(layout: Layout) -> list[str]:
    """Return the sorted keys of all domains that have a log."""
    try:
        found = [entry.name for entry in os.scandir(layout.memory) if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []
    keys = sorted(unquote(name) for name in found)
    return [key for key in keys if is_key(key) and layout.domain(key).log.is_dir()]
