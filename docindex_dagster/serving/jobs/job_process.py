"""Process of a job, in a session of its own. It is alive for as long as it holds the lock of its run.

The server takes the lock, and the process inherits it, so a started job never appears to be dead. A restarted server
sees which jobs are alive, regardless of which server started them.
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

# Signals to a canceled job, each with the seconds after which it is sent. Each is harder to ignore than the previous.
SIGNALS = ((0.0, signal.SIGINT), (10.0, signal.SIGTERM), (15.0, signal.SIGKILL))


def start(settings: Settings, command: Sequence[str], path: Path) -> None:
    """Start the process of a job. It keeps running if this process ends.

    Args:
        settings: the project's settings.
        command: the program; the name of the run's file and its descriptor are appended as arguments.
        path: the file of the run in the journal.

    Raises:
        OSError: the process cannot be started.
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
    # Reap the process, or it would stay a zombie.
    Thread(target=process.wait, name=f"reaper of {process.pid}", daemon=True).start()


def environment(settings: Settings) -> dict[str, str]:
    """Return the environment of the process, without the server's settings, one of which is a secret."""
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith("DOCINDEX_SERVE__")}
    return {**kept, "DOCINDEX_ROOT": str(settings.root), "DOCINDEX_HOME": str(settings.home)}


def send(pid: int, signal_: signal.Signals) -> None:
    """Send a signal to the process of a job and to all processes that it started."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal_)
