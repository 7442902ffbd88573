"""Tests of Celery workers configured as in `deploy/`: if one is killed, another takes over its task."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.scale.processes import CHECKOUT, kill, start, tail, wait_for, without_ours

pytestmark = pytest.mark.scale

# The worker is killed one second after it receives the task, about when a run would start; the second worker finishes.
TASKS = """
import os, signal, time
from pathlib import Path
from dagster_celery.app import app

@app.task(name="work")
def work(folder):
    begun = Path(folder, "begun")
    is_first = not begun.exists()
    begun.touch()
    if is_first:
        time.sleep(1)
        os.kill(os.getpid(), signal.SIGKILL)
    Path(folder, "done").touch()
"""


@contextmanager
def worker(log: Path, environment: dict[str, str]) -> Iterator[None]:
    command = [sys.executable, "-m", "celery", "--app", "tasks:app", "worker", "--queues", "dagster", "-n", log.stem]
    process = start(command, log, environment)
    try:
        yield
    finally:
        kill(process)


def test_a_task_whose_worker_was_killed_is_done_by_another(tmp_path, broker):
    pytest.importorskip("dagster_celery", reason="make test-scale installs it")
    (tmp_path / "tasks.py").write_text(TASKS)
    environment = without_ours(os.environ) | {
        "DAGSTER_CELERY_BROKER_URL": broker,
        "DAGSTER_CELERY_BACKEND_URL": broker.removesuffix("/0") + "/1",
        "PYTHONPATH": os.pathsep.join(map(str, (tmp_path, CHECKOUT / "deploy" / "celery", CHECKOUT))),
    }
    ask = [sys.executable, "-c", f"from tasks import work; work.apply_async([{str(tmp_path)!r}], queue='dagster')"]
    one, two = tmp_path / "one.log", tmp_path / "two.log"
    with worker(one, environment), worker(two, environment):
        assert start(ask, tmp_path / "ask.log", environment).wait(60) == 0, tail(tmp_path / "ask.log")

        wait_for((tmp_path / "done").exists, "the other worker to do it", 240)
