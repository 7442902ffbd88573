"""Child processes return results and events to the parent, and are never left running."""

import multiprocessing
import os
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from docindex_dagster.core import events
from docindex_dagster.core.child_process import _send, run_in_child_process, shielded_from_interrupts
from docindex_dagster.core.events import Event, Progress
from tests.sources_of_code import run_in_a_source

_PATIENCE_S = 60


def announced(number: int) -> tuple[int, int]:
    events.emit(Progress("a", "graph", number, 2, "files"))
    return os.getpid(), number


def fail() -> None:
    raise LookupError("nothing is there")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def doubled(table: pa.Table) -> pa.Table:
    return pa.concat_tables([table, table])


def wait_for_ever(file: Path) -> None:
    file.write_text(str(os.getpid()))
    time.sleep(600)


def hand_on(file: Path) -> None:
    with ThreadPoolExecutor(1) as thread:
        thread.submit(run_in_child_process, partial(wait_for_ever, file)).result()


def test_another_process_gives_the_result_and_its_events_are_announced_here():
    seen: list[Event] = []

    with events.listening(seen.append):
        process, number = run_in_child_process(partial(announced, 1))

    assert process != os.getpid()
    assert number == 1
    assert seen == [Progress("a", "graph", 1, 2, "files")]


def test_tables_go_to_another_process_and_come_back():
    table = pa.table({"text": ["pump", None, "välve" * 100_000], "list": [[1], [], None]}, metadata={b"version": b"1"})

    found = run_in_child_process(partial(doubled, table.slice(1)))

    assert found.equals(doubled(table.slice(1)), check_metadata=True)


def test_the_memory_of_a_table_is_sent_as_it_is_and_not_copied_into_a_pickle_first():
    table = pa.table({"text": ["pump" * 100_000]})
    ours, theirs = multiprocessing.Pipe()

    with ThreadPoolExecutor(1) as thread:
        sent = thread.submit(_send, ours, table)
        pickled, count = theirs.recv()
        memory = [theirs.recv_bytes() for _ in range(count)]
        sent.result()

    assert len(pickled) < 1000
    assert b"pump" * 100_000 in b"".join(memory)


@pytest.mark.parametrize(("work", "code"), [(fail, 1), (die, -signal.SIGKILL)])
def test_a_process_without_a_result_is_an_error(work, code, capfd):
    with pytest.raises(ChildProcessError, match=f"exit code {code} "):
        run_in_child_process(work)
    assert ("nothing is there" in capfd.readouterr().err) == (work is fail)


def test_a_listener_that_fails_leaves_no_process_behind():
    def refuse(_event: Event) -> None:
        raise OSError("no terminal")

    before = set(multiprocessing.active_children())
    with events.listening(refuse), pytest.raises(OSError, match="no terminal"):
        run_in_child_process(partial(announced, 1))

    assert set(multiprocessing.active_children()) == before


def test_the_process_ends_with_the_one_that_waits_for_it(tmp_path):
    file = tmp_path / "process"
    waiting = multiprocessing.get_context("spawn").Process(target=hand_on, args=(file,))
    waiting.start()
    _until(lambda: file.exists() and file.read_text() != "")
    waiting.kill()

    _until(lambda: not Path("/proc", file.read_text()).exists())


def _until(condition) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


SCRIPT = """
from docindex_dagster.core.child_process import _send, run_in_child_process

if __name__ == "__main__":
    print(run_in_child_process(list))
"""


def test_a_folder_with_modules_of_its_own_runs_none_of_them(tmp_path):
    ended = run_in_a_source(SCRIPT, tmp_path)

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "[]\n", "")


def test_the_environment_that_other_threads_read_stays_as_it_is(monkeypatch):
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)

    with shielded_from_interrupts():
        assert "PYTHONSAFEPATH" not in os.environ
        inherited = subprocess.run(["/usr/bin/env"], capture_output=True, text=True, check=True).stdout.splitlines()
    assert "PYTHONSAFEPATH=1" in inherited
    assert "PYTHONSAFEPATH" not in subprocess.run(["/usr/bin/env"], capture_output=True, text=True, check=True).stdout
