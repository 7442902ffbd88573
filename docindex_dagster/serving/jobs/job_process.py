"""The process of a job: started in a session of its own, and alive for as long as it holds the lock of its run.

The server takes the lock and leaves it to the process, which inherits it, so that there is no moment at which a job
that was started seems not to be; and a server that is started again sees who is alive, whoever started it.
"""

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread

from docindex_dagster.core.settings import Settings
from docindex_dagster.runner import journal

# What ends the process of a job that is cancelled: seconds after the first signal, the next is harder to overhear.
SIGNALS = ((0.0, signal.SIGINT), (10.0, signal.SIGTERM), (15.0, signal.SIGKILL))


def start(settings: Settings, command: Sequence[str], path: Path) -> None:
    """Start the process of a job, which goes on when this one ends.

    Args:
        settings: the project.
        command: the program; the name of the run's file and a descriptor of it become its last arguments.
        path: the file of the run in the journal.

    Raises:
        OSError: it cannot be started.
        LinkError: the home contains a symbolic link.
    """
    with journal.starting(path) as (descriptor, note), journal.log_of(path).open("wb") as log:
        process = subprocess.Popen(
            [*command, path.stem, str(descriptor)],
            cwd=settings.root,
            env=environment(settings),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=[descriptor],
        )
        note(process.pid)
    # Nobody else learns that it has ended, and it would stay a zombie.
    Thread(target=process.wait, name=f"reaper of {process.pid}", daemon=True).start()


def environment(settings: Settings) -> dict[str, str]:
    """What the process sees: not the settings of the server, one of which is secret."""
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith("DOCINDEX_SERVE__")}
    return {**kept, "DOCINDEX_ROOT": str(settings.root), "DOCINDEX_HOME": str(settings.home)}


def send(pid: int, signal_: signal.Signals) -> None:
    """Send a signal to the process of a job and to those that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal_)
