"""What a command and the process that watches its project write to each other: lines of JSON, through a Unix socket.

The command writes one `Request`. The answers are `Taken` or `Refused`; then, as the sources are indexed, what happens
and one `Ended` for each, in the order of the request. Only processes of one version, with the same settings, do so.
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
_LONGEST_NAME = 100  # bytes of a socket's; systems take some more
_UNREAD = frozenset({"search", "rerank", "serve"})  # settings that no run reads
# Variables that change what a run makes, or where, besides those that are settings.
_VARIABLES = ("DAGSTER_HOME", "DOCINDEX_DEBUG", "GIT_CONFIG_", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")


@dataclass(frozen=True, slots=True)
class Request:
    """A command asks for sources to be brought up to date.

    Attributes:
        state: what it works with, as `state_of` says; who works with another one does not take the request.
        sources: their keys.
    """

    state: str
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Taken:
    """The request will be answered."""


@dataclass(frozen=True, slots=True)
class Refused:
    """It will not be, or not any further; the command is to do the rest itself."""

    reason: str


@dataclass(frozen=True, slots=True)
class Ended:
    """A source is done; the summary is that of `status.summary`."""

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
    """A hash of what a run depends on but for the files: this installation and user, the settings, the environment."""
    names = (*_VARIABLES, *(f"{one.provider.upper()}_" for one in (settings.embedding, settings.llm)))
    variables = sorted(item for item in os.environ.items() if item[0].startswith(names))
    installation = (sys.modules["docindex_dagster"].__version__, __file__, sys.prefix)
    values = json.dumps(settings.model_dump(exclude=set(_UNREAD)), sort_keys=True, default=_plain)
    return digest_parts(*installation, str(os.getuid()), platform.node(), values, json.dumps(variables))


def _plain(value: Any) -> str:
    return value.get_secret_value() if isinstance(value, SecretStr) else repr(value)


def line_of(message: Request | Answer) -> bytes:
    """A message as a line."""
    fields = json.dumps(asdict(message), ensure_ascii=False, default=str)
    return f'{{"{type(message).__name__}": {fields}}}\n'.encode("utf-8", "replace")


def request_in(line: bytes) -> Request:
    """The request in a line, which anyone may have written.

    Raises:
        ValueError: it is none.
    """
    try:
        found = json.loads(line)
    except RecursionError as error:
        raise ValueError("this is no request") from error
    match found:
        case {"Request": {"state": str() as state, "sources": [*sources], **others}, **more} if not more and not others:
            if sources and all(isinstance(source, str) for source in sources):
                return Request(state, tuple(dict.fromkeys(sources)))
    raise ValueError("this is no request")


def answer_in(line: bytes) -> Answer:
    """The answer in a line.

    Raises:
        ValueError: it is none.
    """
    try:
        [(name, fields)] = json.loads(line).items()
        return _ANSWERS[name](**fields)
    except (AttributeError, KeyError, TypeError, RecursionError) as error:
        raise ValueError("this is no answer") from error


@contextmanager
def name_of(path: Path) -> Iterator[str]:
    """A name for a socket that is short enough for the system, for as long as the block runs."""
    if len(os.fsencode(path)) <= _LONGEST_NAME:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"  # on systems without it, nothing can be bound or found there
    finally:
        os.close(folder)
