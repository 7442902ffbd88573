"""Locks between machines: exclusive, released when their process dies, and revoked from unresponsive holders."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from docindex_dagster.core.errors import LockError, LostLockError
from docindex_dagster.objects.postgres_locks import PostgresLocks

pytestmark = pytest.mark.scale

KEY = "library/guide"
LEASE_S = 2.0
_BEGIN = """
import sys, time
from docindex_dagster.core.errors import LostLockError
from docindex_dagster.objects.postgres_locks import PostgresLocks
locks = PostgresLocks(sys.argv[1], "s3://bucket/prefix", lease_s=float(sys.argv[2]))
"""
HOLD = (
    _BEGIN
    + """
with locks.exclusive("library/guide", "run 17", print) as held:
    held("chunks")
    print("held", flush=True)
    sys.stdin.readline()
    try:
        held.check()
        print("held still", flush=True)
    except LostLockError as error:
        print(error, flush=True)
"""
)
COUNT = (
    _BEGIN
    + """
from pathlib import Path
file = Path(sys.argv[3])
for _ in range(100):
    with locks.exclusive("counter", "one who counts", lambda owner: None) as held:
        number = int(file.read_text())
        time.sleep(0.001)
        held.check()
        file.write_text(str(number + 1))
"""
)


@pytest.fixture
def locks(postgres):
    return PostgresLocks(postgres.url, "s3://bucket/prefix", lease_s=LEASE_S)


def nobody_waits(owner: str) -> None:
    pytest.fail(f"it waited for {owner}")


def started(program: str, *arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@contextmanager
def another_holds(url: str) -> Iterator["subprocess.Popen[str]"]:
    """Run a process that holds the lock until it receives a line."""
    process = started(HOLD, url, str(LEASE_S))
    assert process.stdout.readline() == "held\n"
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def seconds_to_take(locks, on_wait: Callable[[str], None] = lambda owner: None) -> float:
    began = time.monotonic()
    with locks.exclusive(KEY, "another run", on_wait) as held:
        held.check()
        return time.monotonic() - began


def test_it_is_held_by_one_at_a_time_and_who_waits_is_shown_its_holder_once(postgres, locks):
    owners: list[str] = []
    with another_holds(postgres.url) as process:
        waiting = threading.Thread(target=seconds_to_take, args=(locks, owners.append))
        waiting.start()
        time.sleep(2 * LEASE_S)  # the heartbeat keeps the lock
        assert waiting.is_alive()
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "held still\n"
        waiting.join(5)

    assert owners == ["run 17: chunks at 127.0.0.1"]
    assert not waiting.is_alive()


def test_locks_of_other_names_and_of_other_deployments_are_others(postgres, locks):
    with (
        locks.exclusive(KEY, "a run", nobody_waits),
        locks.exclusive("library/other", "a run", nobody_waits),
        PostgresLocks(postgres.url, "s3://bucket/another").exclusive(KEY, "a run", nobody_waits),
    ):
        pass


def test_it_is_free_as_soon_as_its_process_is_killed(postgres, locks):
    with another_holds(postgres.url) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()

        assert seconds_to_take(locks) < LEASE_S / 2


def test_a_paused_process_keeps_it_for_no_longer_than_the_lease_and_notices_when_it_wakes(postgres, locks):
    with another_holds(postgres.url) as process:
        process.send_signal(signal.SIGSTOP)
        assert LEASE_S / 2 < seconds_to_take(locks) < 2 * LEASE_S

        process.stdin.write("\n")
        process.stdin.flush()
        process.send_signal(signal.SIGCONT)

        assert process.stdout.readline().startswith(f"lost the lock of {KEY}")


def test_it_is_lost_when_postgres_is_restarted_and_the_next_one_takes_it(postgres, locks):
    with locks.exclusive(KEY, "a run", nobody_waits) as held:
        postgres.restart()

        with pytest.raises(LostLockError, match="Postgres was restarted"):
            held.check()
        held("what a run is doing is shown for as long as it can be")
        assert seconds_to_take(locks) < LEASE_S / 2


def test_who_waits_when_postgres_ends_gets_an_error(postgres, locks):
    def end_postgres(_owner: str) -> None:
        postgres.restart()

    with (
        locks.exclusive(KEY, "a run", nobody_waits),
        pytest.raises(LockError, match="cannot use locks in Postgres"),
        locks.exclusive(KEY, "another run", end_postgres),
    ):
        pass


def test_a_wait_ends_with_an_interrupt(postgres, locks):
    def interrupt(_owner: str) -> None:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()

    with (
        another_holds(postgres.url),
        pytest.raises(KeyboardInterrupt),
        locks.exclusive(KEY, "another run", interrupt),
    ):
        pass


def test_four_processes_lose_no_increment_under_it(postgres, tmp_path: Path):
    counter = tmp_path / "counter"
    counter.write_text("0")

    processes = [started(COUNT, postgres.url, str(LEASE_S), str(counter)) for _ in range(4)]

    assert [process.wait(120) for process in processes] == [0] * 4
    for process in processes:
        process.communicate()
    assert counter.read_text() == "400"


def test_a_server_that_is_not_there_is_reported(postgres, locks):
    postgres.stop()
    try:
        with (
            pytest.raises(LockError, match=r"cannot use locks in Postgres: .*refused"),
            locks.exclusive(KEY, "a run", nobody_waits),
        ):
            pass
    finally:
        postgres.start()


def test_a_lock_is_held_until_its_process_is_gone_or_silent_for_a_lease(postgres, locks):
    assert not locks.is_held(KEY)
    for ends_with in (signal.SIGKILL, signal.SIGSTOP):
        holder = started(HOLD, postgres.url, str(LEASE_S))
        assert holder.stdout.readline() == "held\n"
        time.sleep(1.5 * LEASE_S)  # several heartbeats pass
        assert locks.is_held(KEY)

        holder.send_signal(ends_with)

        time.sleep(1.5 * LEASE_S)
        locks.is_held(KEY)  # ends the session asynchronously
        time.sleep(0.2)
        assert not locks.is_held(KEY)
        holder.kill()
        holder.communicate()


def test_whoever_looks_ends_all_who_are_silent_for_a_lease_and_nobody_else(postgres, locks):
    with another_holds(postgres.url) as process, locks.exclusive("library/other", "a run", nobody_waits) as other:
        process.send_signal(signal.SIGSTOP)
        locks.end_silent()
        assert postgres.holders() == ["docindex a run", "docindex run 17: chunks"]

        time.sleep(1.5 * LEASE_S)
        locks.end_silent()

        other.check()
        time.sleep(0.2)
        assert postgres.holders() == ["docindex a run"]
