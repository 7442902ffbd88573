"""Commands in a pseudo-terminal: their output, and their response to Ctrl-C."""

import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path

_CLI = (sys.executable, "-m", "docindex_dagster.cli")
_CTRL_C = b"\x03"
_LONGEST_S = 120
_STEERING = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\]8;[^\x07\x1b]*(?:\x07|\x1b\\)|\r")


class Terminal:
    """Command that runs as session leader in its own pseudo-terminal."""

    def __init__(self, arguments: Sequence[str], folder: Path, columns: int = 80, **variables: str) -> None:
        """Start `docindex ARGUMENTS` in a folder."""
        inherited = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES", "NO_COLOR"}}
        environment = {**inherited, "TERM": "xterm-256color", **variables}
        self.pid, self._terminal = pty.fork()
        if not self.pid:
            os.chdir(folder)
            os.execve(_CLI[0], [*_CLI, *arguments], environment)
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.output = ""
        self.code: int | None = None

    def wait_for(self, text: str) -> None:
        """Read output until it contains this text."""
        self._read(lambda: text in self.plain)
        assert text in self.plain, self.plain

    def wait_for_count(self, text: str, count: int) -> None:
        """Read output until it contains this text `count` times."""
        self._read(lambda: self.plain.count(text) >= count)
        assert self.plain.count(text) >= count, self.plain

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def type_line(self, text: str) -> None:
        self.type(f"{text}\n")

    def press_ctrl_c(self) -> None:
        """Send Ctrl-C, so that the terminal signals every process of the command."""
        os.write(self._terminal, _CTRL_C)

    def end(self) -> int:
        """Read the remaining output and return the exit code."""
        self._read(lambda: False)
        if self.code is None:
            _, status = os.waitpid(self.pid, 0)
            self.code = os.waitstatus_to_exitcode(status)
            os.close(self._terminal)
        return self.code

    @property
    def plain(self) -> str:
        """Return the output without terminal control sequences."""
        return _STEERING.sub("", self.output)

    def _read(self, is_enough: Callable[[], bool]) -> None:
        ends_at = time.monotonic() + _LONGEST_S
        while not is_enough():
            assert time.monotonic() < ends_at, f"no end: {self.plain}"
            if not select.select([self._terminal], [], [], 1)[0]:
                continue
            try:
                data = os.read(self._terminal, 65536)
            except OSError:  # the other end is closed
                return
            if not data:
                return
            self.output += data.decode("utf-8", "replace")
