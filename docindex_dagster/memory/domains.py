"""Domains: what one agent, project or session remembers, apart from all others. Each has a home of its own."""

import os
import re
from urllib.parse import unquote

from docindex_dagster.core.errors import DomainError
from docindex_dagster.core.layout import Layout

_KINDS = ("memory", "project", "session")
_KEY = re.compile(rf"(?:{'|'.join(_KINDS)})/(?=[^/]*[^./])[a-z0-9._-]{{1,64}}")


def check(key: str) -> str:
    """The key of a domain, `memory/NAME`, `project/NAME` or `session/ID`, as it is.

    Raises:
        DomainError: it is none.
    """
    if not is_key(key):
        raise DomainError(
            f"{key[:100]!r} is no domain: take memory/NAME, project/NAME or session/ID, with a name of at most 64 "
            "characters of a-z, 0-9, '.', '_' and '-', not dots alone"
        )
    return key


def is_key(text: str) -> bool:
    """Whether a text is the key of a domain; no source has such a one."""
    return _KEY.fullmatch(text) is not None


def home(layout: Layout, key: str) -> Layout:
    """The home of a domain below the home of a project; it may not be there yet.

    Raises:
        DomainError: the key is none.
    """
    return layout.domain(check(key))


def domains(layout: Layout) -> list[str]:
    """The keys of all domains that have a log, in order."""
    try:
        found = [entry.name for entry in os.scandir(layout.memory) if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []
    keys = sorted(unquote(name) for name in found)
    return [key for key in keys if is_key(key) and layout.domain(key).log.is_dir()]
