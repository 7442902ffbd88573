"""A full disk: only writes that fit are acknowledged, old messages stay, and writing resumes once there is space."""

import pytest

from docindex_dagster.core.errors import FullDiskError
from docindex_dagster.core.layout import Layout
from docindex_dagster.memory.log import open_log
from tests.disks import leave_free, mounted
from tests.memory.logs import DOMAIN, another, message, texts, write
from tests.memory.processes import run

_LONG = 100_000


def text(number: int) -> str:
    return f"{number}:" + "x" * _LONG


@pytest.fixture
def disk(tmp_path):
    with mounted(tmp_path, 8 << 20) as disk:
        yield disk


@pytest.fixture
def log(disk):
    return open_log(Layout(disk / "home"), DOMAIN)


def refused(log, number):
    """Return whether the disk is too full for a message."""
    try:
        write(log, text(number))
    except FullDiskError as error:
        message = str(error)
    else:
        return False
    assert str(log.home.home) in message
    assert "\n" not in message
    return True


@pytest.mark.parametrize("kib", [0, 4, 60, 96, 150, 350])
def test_what_does_not_fit_is_refused_and_leaves_nothing(log, disk, kib):
    write(log, text(0))
    leave_free(disk, kib)
    outcome = {number: refused(log, number) for number in range(1, 8)}
    acknowledged = [text(0), *(text(number) for number, was_refused in outcome.items() if not was_refused)]

    assert any(outcome.values())
    assert texts(log) == acknowledged
    assert another(log).read().flaws == ()
    (disk / "filler").unlink()
    for number in range(1, 8):
        write(log, text(number))
    assert sorted(texts(log)) == [text(number) for number in range(8)]


def test_a_first_message_that_does_not_fit_leaves_no_segment(log, disk):
    leave_free(disk, 40)
    for number in range(3):
        assert refused(log, number)

    assert log.cut().ends == {}
    (disk / "filler").unlink()
    write(log, text(0))
    assert texts(log) == [text(0)]


def test_all_of_a_group_is_refused_or_acknowledged(log, disk):
    write(log, "first")
    leave_free(disk, 150)

    with pytest.raises(FullDiskError):
        log.append([message(text(number)) for number in range(3)])

    assert texts(log) == ["first"]


def test_a_full_disk_keeps_nobody_from_taking_messages_out(log, disk):
    write(log, *(text(number) for number in range(3)))
    leave_free(disk, 0)

    assert len(log.remove(log.cut())) == 1
    assert texts(log) == []
    write(log, text(1))
    assert texts(log) == [text(1)]


def test_a_limit_on_the_size_of_files_is_reported_and_the_log_goes_on_in_another_segment(layout):
    printed = run("fill", layout, "5000")
    acknowledged = [line for line in printed if not line.startswith("LogError")]
    [error] = [line for line in printed if line.startswith("LogError")]

    assert "nothing was acknowledged: [Errno 27] File too large" in error
    assert len(acknowledged) == 99
    log = open_log(layout, DOMAIN)
    assert texts(log) == acknowledged
    assert len(log.cut().ends) == 2
