"""Kill a process at each step of its work on a log: python -m tests.memory.steps WORK HOME.

A step is a line of the code that writes logs. For each step, a forked process kills itself there, until one reaches the
end. Another process inspects the result. The module prints, as JSON, how often it found each result.
"""

import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from docindex_dagster.core.layout import Layout
from docindex_dagster.memory import log as log_module
from docindex_dagster.memory import segments
from docindex_dagster.memory.log import Log, open_log
from tests.memory.logs import DOMAIN, files, message, texts, write

_FILES = {module.__file__ for module in (log_module, segments)}
_SECRET = "the secret"


def _killed_at(step: int, work: Callable[[], object]) -> bool:
    """Fork a process that kills itself at a step of its work; return whether it reached the step."""
    child = os.fork()
    if child == 0:
        left = step

        def trace(frame: FrameType, event: str, _: Any) -> Any:
            nonlocal left
            if frame.f_code.co_filename not in _FILES:
                return None
            if event == "line":
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
            return trace

        sys.settrace(trace)
        work()
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def _prepared(home: Layout) -> Log:
    """Return a log of two segments with one forgotten message; this process keeps writing to the second."""
    log = Log(home)
    log.remove(log.cut())
    write(log, "first", _SECRET)
    log.close()
    write(log, "last")
    log.forget("message", message(_SECRET).id)
    return log


def _cutting(log: Log) -> str:
    found = ",".join(texts(log))
    write(log, "after it")
    assert texts(log) == [*found.split(","), "after it"]
    return found


def _appending(log: Log) -> str:
    found = ",".join(text for text in texts(log) if text == "new")
    write(log, "new")  # its client retries
    assert texts(log) == ["first", "last", "new"]
    return found or "nothing"


def _removing(log: Log) -> str:
    left = ",".join(texts(log)) or "nothing"
    log.remove(log.cut())
    assert _SECRET.encode() not in files(log)
    assert texts(log) == []
    return left


_WORK: dict[str, tuple[Callable[[Log], object], Callable[[Log], str]]] = {
    "cut": (lambda log: log.cut(), _cutting),
    "append": (lambda log: write(log, "new"), _appending),
    "remove": (lambda log: log.remove(log.cut()), _removing),
}


def main(work: str, home: Layout) -> None:
    """Kill at each step."""
    act, look = _WORK[work]
    found: Counter[str] = Counter()
    step = 0
    while True:
        log = _prepared(home)
        if not _killed_at(step, lambda log=log: act(log)):  # type: ignore[misc]
            break
        found[look(log)] += 1
        step += 1
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], open_log(Layout(Path(sys.argv[2])), DOMAIN).home)
