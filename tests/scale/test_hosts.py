"""Tests that a host's name, disk and processes are invisible to other hosts and lost together."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.scale.hosts import DISK, Host, host
from tests.scale.processes import CHECKOUT, wait_for

pytestmark = pytest.mark.scale

COUNTER = "i=0; while :; do i=$((i+1)); echo $i > count; sleep 0.02; done"


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Host, Host]]:
    with host(tmp_path, "one") as one, host(tmp_path, "two") as two:
        yield one, two


def output(made: Host, *command: str) -> str:
    done = made.run(command)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def count(made: Host) -> str:
    path = made.folder / "count"
    return path.read_text() if path.exists() else ""


def counted(made: Host) -> int:
    return int(count(made) or 0)  # it may have been stopped while writing


def counts_further(made: Host, last: int) -> bool:
    return counted(made) > last


def test_a_host_has_a_name_and_a_disk_of_its_own(pair):
    one, two = pair

    output(one, "sh", "-c", "echo here > note")

    assert [output(made, "hostname") for made in pair] == ["one", "two"]
    assert output(one, "cat", "note") == "here"
    assert two.run(["cat", "note"]).returncode == 1
    assert output(two, "ls", "/tmp") == "\n".join(sorted({"host", *in_tmp()}))
    assert os.uname().nodename not in {"one", "two"}


def in_tmp() -> set[str]:
    """Return the folders of `/tmp` that contain the programs."""
    folders = (CHECKOUT, Path(sys.prefix), Path(sys.base_prefix))
    return {folder.parts[2] for folder in folders if folder.is_relative_to("/tmp")}


def test_a_host_sees_its_own_processes_alone(pair):
    one, two = pair
    program = one.start("sleeper", ["sleep", "100"])
    wait_for(lambda: [process for process in one.processes() if process.command == "sleep 100"], "it to run")

    assert "sleep 100" in output(one, "sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
    assert "sleep 100" not in output(two, "sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
    assert program.is_running


def test_a_host_can_write_to_no_program(pair):
    one, _ = pair
    for folder in (CHECKOUT, Path(sys.prefix), Path("/usr")):
        assert "Read-only" in one.run(["touch", folder / "x"]).stderr


def test_a_crash_ends_all_that_runs_and_leaves_the_disk(pair):
    one, _ = pair
    one.start("counter", ["sh", "-c", f"setsid sh -c '{COUNTER}'"])
    wait_for(lambda: count(one), "it to count")

    one.crash()

    last = count(one)
    time.sleep(0.1)
    assert count(one) == last
    one.boot()
    assert output(one, "cat", "count") == last.strip()
    one.crash()
    one.wipe()
    one.boot()
    assert one.run(["cat", "count"]).returncode == 1


def test_a_paused_host_goes_on_where_it_was(pair):
    one, _ = pair
    program = one.start("counter", ["sh", "-c", COUNTER])
    for paused in (one, program):
        wait_for(lambda: count(one), "it to count")
        paused.pause()
        last = counted(one)
        time.sleep(0.2)
        assert counted(one) == last
        paused.resume()
        wait_for(partial(counts_further, one, last), "it to go on")


def test_a_killed_program_takes_its_session_along(pair):
    one, _ = pair
    program = one.start("counter", ["sh", "-c", f"sh -c '{COUNTER}' & wait"])
    wait_for(lambda: count(one), "it to count")

    program.kill()

    wait_for(lambda: not [process for process in one.processes() if "count" in process.command], "all to end")
    assert one.is_up


def test_a_host_ends_with_what_started_it(tmp_path):
    code = f"""
import time, pathlib
from tests.scale.hosts import host
with host(pathlib.Path({str(tmp_path)!r}), "orphan") as made:
    made.start("counter", ["sh", "-c", {COUNTER!r}])
    time.sleep(100)
"""
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=CHECKOUT)
    counted = tmp_path / "orphan" / "count"
    wait_for(counted.exists, "it to count")

    parent.send_signal(signal.SIGKILL)
    parent.wait()

    time.sleep(0.5)
    last = counted.read_text()
    time.sleep(0.2)
    assert counted.read_text() == last


def test_a_disk_appears_in_one_place(pair):
    assert [output(made, "pwd") for made in pair] == [str(DISK)] * 2
