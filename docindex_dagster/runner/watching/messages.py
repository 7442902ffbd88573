"""Protocol between commands and the watcher of their project: JSON lines over a Unix socket.

The command writes one `Request`. The watcher answers with `Taken` or `Refused`. While it indexes the sources, it sends
events, and one `Ended` per source in the order of the request. Both processes must have the same version and settings.
"""

import json
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from docindex_dagster.core import events
from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.core.settings import Settings

LONGEST_LINE = 1 << 20  # bytes
_MAX_NAME_BYTES = 100  # of a socket path; the limits of systems are slightly higher
_UNREAD = frozenset({"search", "rerank", "serve"})  # settings that no run reads
# Variables that affect a run's result or location, in addition to the settings.
_VARIABLES = ("DAGSTER_HOME", "DOCINDEX_DEBUG", "GIT_CONFIG_", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")


@dataclass(frozen=True, slots=True)
class Request:
    """A command's request to bring sources up to date.

    Attributes:
        state: The command's `state_of`; a watcher with a different state rejects the request.
        sources: The keys of the sources.
    """

    state: str
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Taken:
    """The watcher accepted the request."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The watcher rejected the request, or stopped processing it; the command does the rest itself."""

    reason: str


@dataclass(frozen=True, slots=True)
class Ended:
    """A source is done; the summary has the format of `status.summary`."""

    summary: dict[str, Any]


Answer = Taken | Refused | Ended | events.Event
_ANSWERS: Mapping[str, type[Answer]] = {
    kind.__name__: kind
    for kind in (
        *(Taken, Refused, Ended),
        *(events.Progress, events.Waiting, events.Notice, events.StageBegan, events.StageEnded),
    )
}


def state_of(settings: Settings) -> str:
    """Return a hash of everything but the files that affects a run: installation, user, settings and environment."""
    names = (*_VARIABLES, *(f"{section.provider.upper()}_" for section in (settings.embedding, settings.llm)))
    variables = sorted(item for item in os.environ.items() if item[0].startswith(names))
    installation = (sys.modules["docindex_dagster"].__version__, __file__, sys.prefix)
    values = json.dumps(settings.model_dump(exclude=set(_UNREAD)), sort_keys=True, default=_plain)
    return digest_parts(*installation, str(os.getuid()), platform.node(), values, json.dumps(variables))


def _plain(value: Any) -> str:
    return value.get_secret_value() if isinstance(value, SecretStr) else repr(value)


def encode_line(message: Request | Answer) -> bytes:
    """Encode a message as a line."""
    fields = json.dumps(asdict(message), ensure_ascii=False, default=str)
    return f'{{"{type(message).__name__}": {fields}}}\n'.encode("utf-8", "replace")


def parse_request(line: bytes) -> Request:
    """Parse the request in an untrusted line.

    Raises:
        ValueError: The line is not a request.
    """
    try:
        found = json.loads(line)
    except RecursionError as error:
        raise ValueError("invalid request") from error
    match found:
        case {"Request": {"state": str() as state, "sources": [*sources], **others}, **more} if not more and not others:
            if sources and all(isinstance(source, str) for source in sources):
                return Request(state, tuple(dict.fromkeys(sources)))
    raise ValueError("invalid request")


def parse_answer(line: bytes) -> Answer:
    """Parse the answer in a line.

    Raises:
        ValueError: The line is not an answer.
    """
    try:
        [(name, fields)] = json.loads(line).items()
        return _ANSWERS[name](**fields)
    except (AttributeError, KeyError, TypeError, RecursionError) as error:
        raise ValueError("invalid answer") from error


@contextmanager
def short_socket_path(path: Path) -> Iterator[str]:
    """Yield a path for a socket that is short enough for the system, valid within the block."""
    if len(os.fsencode(path)) <= _MAX_NAME_BYTES:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"  # on systems without /proc, binding and connecting fail
    finally:
        os.close(folder)
