"""The socket on which commands ask the process that watches their project, and the thread that takes their requests."""

import selectors
import socket
import time
from pathlib import Path
from threading import Thread

from docindex_dagster.watching.commands import Command, Commands
from docindex_dagster.watching.messages import LONGEST_LINE, Refused, line_of, name_of, request_in

_PATIENCE_S = 1.0  # for a whole request: commands write it as soon as they have connected
_PAUSE_S = 0.1  # after a failure of the system's, such as too many open files
_BLOCK = 1 << 16


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
