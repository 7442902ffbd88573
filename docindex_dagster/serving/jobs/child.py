"""The process of a job: started in a session of its own, and alive for as long as the kernel says that it holds a lock.

The server takes the lock and leaves it to the process, which inherits it, so that there is no moment at which a job
that was started seems not to be; and a server that is started again sees who is alive, whoever started it.
"""

import fcntl
import json
import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Thread
from typing import Self

from docindex_dagster.core.confinement import open_file
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import holder
from docindex_dagster.core.settings import Settings
from docindex_dagster.serving.jobs.model import JobRequest

_TAIL_BYTES = 4000


@dataclass(frozen=True, slots=True)
class Order:
    """What the process of a job is started with."""

    id: str
    request: JobRequest
    lock: int  # the descriptor of the job's lock

    def to_json(self) -> str:
        """As an argument of the process."""
        return json.dumps(asdict(self))

    @classmethod
    def of_json(cls, text: str) -> Self:
        """From that argument."""
        values = json.loads(text)
        request = values["request"]
        return cls(values["id"], JobRequest(**{**request, "paths": tuple(request["paths"])}), values["lock"])


def start(settings: Settings, command: Sequence[str], job: str, request: JobRequest) -> None:
    """Start the process of a job, which goes on when this one ends.

    Args:
        settings: the project.
        command: the program; the order becomes its last argument.
        job: the id of the job.
        request: what it is to do.

    Raises:
        OSError: it cannot be started.
        LinkError: the home contains a symbolic link.
    """
    layout = Layout(settings.home)
    lock = open_file(layout.job(job, "lock"), os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(lock, 0)  # an attempt before noted its number
        with layout.job(job, "log").open("wb") as log:
            process = subprocess.Popen(
                [*command, Order(job, request, lock).to_json()],
                cwd=settings.root,
                env=environment(settings),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=[lock],
            )
        _note(lock, process.pid)
    finally:
        os.close(lock)
    # Nobody else learns that it has ended, and it would stay a zombie.
    Thread(target=process.wait, name=f"reaper of {process.pid}", daemon=True).start()


def begin(lock: int) -> None:
    """Keep the lock for this process, which is that of a job, alone; what it starts does not inherit it."""
    os.set_inheritable(lock, False)  # noqa: FBT003 it has no name
    _note(lock, os.getpid())  # the server may have died before it could


def _note(lock: int, pid: int) -> None:
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(pid).encode(), 0)


def process_of(layout: Layout, job: str) -> int | None:
    """The number of the process of a job that is alive; None where it is not known yet."""
    text = layout.job(job, "lock").read_text(encoding="ascii")
    return int(text) if text.isdecimal() else None


def environment(settings: Settings) -> dict[str, str]:
    """What the process sees: not the settings of the server, one of which is secret."""
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith("DOCINDEX_SERVE__")}
    return {**kept, "DOCINDEX_ROOT": str(settings.root), "DOCINDEX_HOME": str(settings.home)}


def is_alive(layout: Layout, job: str) -> bool:
    """Whether the process of a job runs."""
    return holder(layout.job(job, "lock")) is not None


def send(pid: int, signal_: signal.Signals) -> None:
    """Send a signal to the process of a job and to those that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal_)


def last_words(log: Path) -> str:
    """The last line that the process of a job printed; empty where it printed nothing."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            lines = file.read().decode("utf-8", "replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1] if lines else ""
