"""The commands that wait for the process that watches their project: who they are, and what they are answered.

A thread of the `Listener` takes them from a socket; the thread that indexes answers them.
"""

import selectors
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

from docindex_dagster.core import events
from docindex_dagster.runner.watching.messages import (
    LONGEST_LINE,
    Answer,
    Ended,
    Refused,
    Request,
    Taken,
    line_of,
    name_of,
    request_in,
)

_MOST = 32
_BUSY = "busy with {}"
_OTHER = "of another version, or with other settings"
_PATIENCE_S = 1.0  # for a whole request: commands write it as soon as they have connected
_PAUSE_S = 0.1  # after a failure of the system's, such as too many open files
_BLOCK = 1 << 16


class Command:
    """A command that waits: its request, and the sources of it that are left to be answered."""

    def __init__(self, connection: socket.socket, request: Request) -> None:
        """Of a connection, on which nothing waits from now on."""
        self._connection = connection
        self._connection.settimeout(0)
        self.state = request.state
        self.left = list(request.sources)
        # Of runs that ended while it waited.
        self.summaries: dict[str, Mapping[str, Any]] = {}

    def send(self, answer: Answer) -> bool:
        """Write an answer; False where the command is gone. One that does not read any more is as good as gone."""
        line = line_of(answer)
        try:
            is_sent = self._connection.send(line) == len(line)
        except OSError:
            is_sent = False
        if not is_sent:
            self.close()
        return is_sent

    def close(self) -> None:
        """Hang up."""
        self._connection.close()


class Commands:
    """The commands that wait, the first one first."""

    def __init__(self) -> None:
        """None yet."""
        self._lock = Lock()
        self._waiting: list[Command] = []
        self._state = ""
        self._running: str | None = None
        self._is_closed = False
        self.have_come = Event()
        """Whether one waits."""
        self.served: str | None = None
        """The source that is being indexed because a command asked for it."""

    def take(self, command: Command) -> None:
        """Let a command wait, unless it works with another state, or that could take longer than its own work."""
        with self._lock:
            if command.state != self._state:
                _refuse(command, _OTHER)
            elif self._is_closed or len(self._waiting) >= _MOST or self._running not in {None, *command.left}:
                _refuse(command, _BUSY.format(self._running or "others"))
            elif command.send(Taken()):
                self._waiting.append(command)
                self.have_come.set()

    def set_state(self, state: str) -> None:
        """Work with this state, as `messages.state_of` says, and for no command with another one."""
        with self._lock:
            self._state = state
            others = [one for one in self._waiting if one.state != state]
        for one in others:
            self.refuse(one, _OTHER)

    def first(self) -> Command | None:
        """The one to be answered now."""
        with self._lock:
            return self._waiting[0] if self._waiting else None

    @contextmanager
    def running(self, key: str) -> Iterator[None]:
        """Show those that wait for a source what its run does in the block; the others do their work themselves."""
        with self._lock:
            self._running = key
            others = [one for one in self._waiting if key not in one.left]
        for one in others:
            self.refuse(one, _BUSY.format(key))
        try:
            with events.listening(self._pass_on):
                yield
        finally:
            with self._lock:
                self._running = None

    def _pass_on(self, event: events.Event) -> None:
        with self._lock:
            waiting = [one for one in self._waiting if one.left[0] == event.source]
        for one in waiting:
            if not one.send(event):
                self._drop(one)

    @contextmanager
    def serving(self, key: str) -> Iterator[None]:
        """Index a source in the block because a command asked for it."""
        self.served = key
        try:
            yield
        finally:
            self.served = None

    def note(self, summary: Mapping[str, Any]) -> None:
        """Note how a run ended, for those that waited meanwhile."""
        with self._lock:
            for one in self._waiting:
                one.summaries[summary["source"]] = summary

    def answer(self, command: Command, summary: Mapping[str, Any]) -> None:
        """Answer for the source of a command that is the first of those left."""
        is_there = command.send(Ended(dict(summary)))
        del command.left[0]
        if not command.left or not is_there:
            self._drop(command)

    def refuse(self, command: Command, reason: str) -> None:
        """Leave the rest to a command itself."""
        _refuse(command, reason)
        self._drop(command)

    def _drop(self, command: Command) -> None:
        command.close()
        with self._lock:
            if command in self._waiting:
                self._waiting.remove(command)
            if not self._waiting:
                self.have_come.clear()

    def close(self) -> None:
        """Hang up on all: they do what is left themselves."""
        with self._lock:
            self._is_closed = True
            for one in self._waiting:
                one.close()
            self._waiting.clear()
            self.have_come.clear()


def _refuse(command: Command, reason: str) -> None:
    if command.send(Refused(reason)):
        command.close()


class Listener:
    """Takes the requests of commands, for as long as this process holds the project's `watch_lock`."""

    def __init__(self, path: Path, commands: Commands) -> None:
        """Listen at a path, in place of a socket that a killed process left there.

        Args:
            path: of the socket, which only its user can connect to.
            commands: where commands wait for their answers.

        Raises:
            OSError: the system does not let us.
        """
        self._path = path
        self._commands = commands
        self._server = _bound(path)
        self._ending, self._end = socket.socketpair()
        self._thread = Thread(target=self._listen, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Listen no more."""
        self._end.close()
        self._thread.join()
        self._path.unlink(missing_ok=True)
        self._server.close()
        self._ending.close()
        self._commands.close()

    def _listen(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._server, selectors.EVENT_READ)
            selector.register(self._ending, selectors.EVENT_READ)
            while all(key.fileobj is self._server for key, _ in selector.select()):
                try:
                    connection, _ = self._server.accept()
                except OSError:  # whoever it was is gone, or there are too many open files
                    time.sleep(_PAUSE_S)
                else:
                    self._take(connection)

    def _take(self, connection: socket.socket) -> None:
        try:
            request = request_in(_line_of(connection))
        except (ValueError, OSError) as error:
            _send_refusal(connection, str(error))
        else:
            self._commands.take(Command(connection, request))


def _bound(path: Path) -> socket.socket:
    """A socket that listens at a path; nobody else can connect to it, since it listens only after its mode is set."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    server = socket.socket(socket.AF_UNIX)
    try:
        with name_of(path) as name:
            server.bind(name)
        path.chmod(0o600)
        server.listen()
        server.settimeout(0)
    except OSError:
        server.close()
        raise
    return server


def _line_of(connection: socket.socket) -> bytes:
    """The line that is written on a connection.

    Raises:
        ValueError: it is too long, not whole, or does not come.
        OSError: whoever writes is gone.
    """
    until, read = time.monotonic() + _PATIENCE_S, bytearray()
    while not read.endswith(b"\n"):
        left = until - time.monotonic()
        if len(read) > LONGEST_LINE or left <= 0:
            raise ValueError("the request is too long, or is not whole")
        connection.settimeout(left)
        try:
            block = connection.recv(_BLOCK)
        except TimeoutError:
            continue
        if not block:
            raise ValueError("the request is not whole")
        read += block
    return bytes(read)


def _send_refusal(connection: socket.socket, reason: str) -> None:
    with connection:
        connection.settimeout(0)
        try:
            connection.send(line_of(Refused(reason)))
        except OSError:  # it is gone
            return
