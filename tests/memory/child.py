"""Child process that works on a log: python -m tests.memory.child WORK HOME [ARGUMENT…].

`write HOME NAME COUNT` prints each text once it is acknowledged. `watch HOME` reads such lines and answers each with
`seen` or `missed`. `cut HOME` seals the segments in a loop. `fork HOME` writes before and after forking, and
`fill HOME BYTES` writes with a file size limit of BYTES.
"""

import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

from docindex_dagster.core.errors import DocindexError
from docindex_dagster.core.layout import Layout
from docindex_dagster.memory.log import Log, open_log
from docindex_dagster.memory.message import Offsets
from tests.memory.logs import DOMAIN, message, write

_PIPE_BYTES = 1 << 16
_PAUSE_S = 0.005  # gives writers a chance to take the lock


def _say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


def _write(log: Log, name: str, count: str) -> None:
    for number in range(int(count)):
        text = f"{name}-{number}"
        log.append([message(text, session=name)])
        _say(text)


def _watch(log: Log) -> None:
    seen: set[str] = set()
    offsets, rest = Offsets(), b""
    while data := os.read(0, _PIPE_BYTES):
        *lines, rest = (rest + data).split(b"\n")
        read = log.read(offsets)
        seen |= {entry.record.text for entry in read.entries}
        offsets = read.offsets
        for line in lines:
            _say("seen" if line.decode() in seen else "missed")


def _cut(log: Log) -> None:
    while True:
        log.cut()
        _say("cut")
        time.sleep(_PAUSE_S)


def _fork(log: Log) -> None:
    write(log, "before")
    child = os.fork()
    if child == 0:
        write(log, "of the child")
        os._exit(0)
    os.waitpid(child, 0)
    write(log, "of the parent")


def _fill(log: Log, size: str) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(size), resource.RLIM_INFINITY))
    for number in range(100):
        text = f"{number}-" * 50
        try:
            write(log, text)
        except DocindexError as error:
            _say(f"{type(error).__name__}: {error}")
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        else:
            _say(text)


_WORK: dict[str, Callable[..., None]] = {
    "write": _write,
    "watch": _watch,
    "cut": _cut,
    "fork": _fork,
    "fill": _fill,
}

if __name__ == "__main__":
    _WORK[sys.argv[1]](open_log(Layout(Path(sys.argv[2])), DOMAIN), *sys.argv[3:])
