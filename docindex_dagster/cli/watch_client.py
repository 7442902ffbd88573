"""Client that lets `docindex index` delegate to the process that watches the project, which is already warm."""

import socket
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import typer

from docindex_dagster.cli import INTERRUPTED, progress
from docindex_dagster.core import events
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings
from docindex_dagster.render import console
from docindex_dagster.runner.watching.messages import (
    LONGEST_LINE,
    Answer,
    Ended,
    Refused,
    Request,
    Taken,
    encode_line,
    parse_answer,
    short_socket_path,
    state_of,
)

_TIMEOUT_S = 2.0  # for the first answer, which the watching process sends even while it is busy
_WATCHER_ENDED = "the watching process has ended; continuing here"
_INTERRUPTED = "interrupted; the watching process continues"


def delegate_to_watcher(
    settings: Settings, keys: Collection[str], show: Callable[[Mapping[str, Any]], None], *, quiet: bool
) -> dict[str, dict[str, Any]]:
    """Let the process that watches the project bring sources up to date, and show its progress.

    Args:
        settings: the project's settings.
        keys: the keys of the sources, in order.
        show: prints the summary of a source.
        quiet: as for `progress.shown`.

    Returns:
        The summaries by key. Empty if no process watches the project, or one with other settings.

    Raises:
        Exit: The user stopped waiting.
    """
    done: dict[str, dict[str, Any]] = {}
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            answers = _answers(connection, settings, keys)
            if not isinstance(next(answers, None), Taken):
                return {}
            for number, key in enumerate(keys, start=1):
                started = time.monotonic()
                position = f"{number} of {len(keys)}" if len(keys) > 1 else ""
                with progress.report_progress(key, position, quiet=quiet):
                    end = _end(answers)
                if isinstance(end, Refused):
                    break
                if end is None or end.summary.get("source") != key:
                    console.err.print(_WATCHER_ENDED)
                    break
                done[key] = {**end.summary, "seconds": round(time.monotonic() - started, 2)}
                show(done[key])
    except KeyboardInterrupt:
        console.failure(_INTERRUPTED)
        raise typer.Exit(INTERRUPTED) from None
    return done


def _end(answers: Iterator[Answer]) -> Ended | Refused | None:
    """Emit the events of a source's run, and return how it ended; None if that is unknown."""
    for answer in answers:
        match answer:
            case Ended() | Refused():
                return answer
            case Taken():
                return None
            case event:
                events.emit(event)
    return None


def _answers(connection: socket.socket, settings: Settings, keys: Collection[str]) -> Iterator[Answer]:
    """Yield the answers to the request, until the other process is gone or sends something invalid."""
    try:
        connection.settimeout(_TIMEOUT_S)
        with short_socket_path(Layout(settings.home).watch_socket) as name:
            connection.connect(name)
        connection.sendall(encode_line(Request(state_of(settings), tuple(keys))))
        with connection.makefile("rb") as lines:
            while line := lines.readline(LONGEST_LINE):
                yield parse_answer(line)
                connection.settimeout(None)
    except (OSError, ValueError):
        return
