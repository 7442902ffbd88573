"""Queue of commands that delegate their work to the watcher of their project.

A thread of the `Listener` accepts them from a socket; the indexing thread answers them.
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
    encode_line,
    parse_request,
    short_socket_path,
)

_MAX_WAITING = 32
_BUSY = "busy with {}"
_OTHER = "different version or settings"
_REQUEST_TIMEOUT_S = 1.0  # for a complete request, which commands write as soon as they have connected
_PAUSE_S = 0.1  # after a system error, such as too many open files
_BLOCK = 1 << 16


class Command:
    """A waiting command: its request, and the sources that are not yet answered."""

    def __init__(self, connection: socket.socket, request: Request) -> None:
        """Wrap a connection, which becomes non-blocking."""
        self._connection = connection
        self._connection.settimeout(0)
        self.state = request.state
        self.left = list(request.sources)
        # Summaries of runs that ended while the command waited.
        self.summaries: dict[str, Mapping[str, Any]] = {}

    def send(self, answer: Answer) -> bool:
        """Write an answer; return False if the command is gone or no longer reads."""
        line = encode_line(answer)
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
    """The waiting commands, first come, first served."""

    def __init__(self) -> None:
        """Start with no commands."""
        self._lock = Lock()
        self._waiting: list[Command] = []
        self._state = ""
        self._running: str | None = None
        self._is_closed = False
        self.have_come = Event()
        """Set while a command is waiting."""
        self.served: str | None = None
        """Source that is being indexed because a command requested it."""

    def take(self, command: Command) -> None:
        """Queue a command. Reject it if its state differs, or if waiting could take longer than its own work."""
        with self._lock:
            if command.state != self._state:
                _refuse(command, _OTHER)
            elif self._is_closed or len(self._waiting) >= _MAX_WAITING or self._running not in {None, *command.left}:
                _refuse(command, _BUSY.format(self._running or "other commands"))
            elif command.send(Taken()):
                self._waiting.append(command)
                self.have_come.set()

    def set_state(self, state: str) -> None:
        """Set the state from `messages.state_of`, and reject commands with a different one."""
        with self._lock:
            self._state = state
            others = [command for command in self._waiting if command.state != state]
        for command in others:
            self.refuse(command, _OTHER)

    def first(self) -> Command | None:
        """Return the command to answer next."""
        with self._lock:
            return self._waiting[0] if self._waiting else None

    @contextmanager
    def running(self, key: str) -> Iterator[None]:
        """Forward the events of a source's run to the commands that wait for it; reject the others."""
        with self._lock:
            self._running = key
            others = [command for command in self._waiting if key not in command.left]
        for command in others:
            self.refuse(command, _BUSY.format(key))
        try:
            with events.listening(self._pass_on):
                yield
        finally:
            with self._lock:
                self._running = None

    def _pass_on(self, event: events.Event) -> None:
        with self._lock:
            waiting = [command for command in self._waiting if command.left[0] == event.source]
        for command in waiting:
            if not command.send(event):
                self._drop(command)

    @contextmanager
    def serving(self, key: str) -> Iterator[None]:
        """Mark a source as being indexed on a command's request, during the block."""
        self.served = key
        try:
            yield
        finally:
            self.served = None

    def note(self, summary: Mapping[str, Any]) -> None:
        """Record the result of a run for all waiting commands."""
        with self._lock:
            for command in self._waiting:
                command.summaries[summary["source"]] = summary

    def answer(self, command: Command, summary: Mapping[str, Any]) -> None:
        """Send the result for the first unanswered source of a command."""
        is_connected = command.send(Ended(dict(summary)))
        del command.left[0]
        if not command.left or not is_connected:
            self._drop(command)

    def refuse(self, command: Command, reason: str) -> None:
        """Reject a command, which then does its remaining work itself."""
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
        """Disconnect all commands, which then do their remaining work themselves."""
        with self._lock:
            self._is_closed = True
            for command in self._waiting:
                command.close()
            self._waiting.clear()
            self.have_come.clear()


def _refuse(command: Command, reason: str) -> None:
    if command.send(Refused(reason)):
        command.close()


class Listener:
    """Accepts requests from commands while this process holds the project's `watch_lock`."""

    def __init__(self, path: Path, commands: Commands) -> None:
        """Listen on a socket, replacing one that a killed process left behind.

        Args:
            path: The path of the socket, which only its user can connect to.
            commands: The queue of commands.

        Raises:
            OSError: The socket cannot be created.
        """
        self._path = path
        self._commands = commands
        self._server = _bound(path)
        self._ending, self._end = socket.socketpair()
        self._thread = Thread(target=self._listen, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
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
                except OSError:  # the client is gone, or there are too many open files
                    time.sleep(_PAUSE_S)
                else:
                    self._take(connection)

    def _take(self, connection: socket.socket) -> None:
        try:
            request = parse_request(_line_of(connection))
        except (ValueError, OSError) as error:
            _send_refusal(connection, str(error))
        else:
            self._commands.take(Command(connection, request))


def _bound(path: Path) -> socket.socket:
    """Return a listening socket. No other user can connect, since it starts listening only after its mode is set."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    server = socket.socket(socket.AF_UNIX)
    try:
        with short_socket_path(path) as name:
            server.bind(name)
        path.chmod(0o600)
        server.listen()
        server.settimeout(0)
    except OSError:
        server.close()
        raise
    return server


def _line_of(connection: socket.socket) -> bytes:
    """Read a line from a connection.

    Raises:
        ValueError: The line is too long, incomplete, or does not arrive in time.
        OSError: The client is gone.
    """
    deadline, read = time.monotonic() + _REQUEST_TIMEOUT_S, bytearray()
    while not read.endswith(b"\n"):
        remaining = deadline - time.monotonic()
        if len(read) > LONGEST_LINE or remaining <= 0:
            raise ValueError("request too long or incomplete")
        connection.settimeout(remaining)
        try:
            block = connection.recv(_BLOCK)
        except TimeoutError:
            continue
        if not block:
            raise ValueError("incomplete request")
        read += block
    return bytes(read)


def _send_refusal(connection: socket.socket, reason: str) -> None:
    with connection:
        connection.settimeout(0)
        try:
            connection.send(encode_line(Refused(reason)))
        except OSError:  # the client is gone
            return
