"""A file is replaced, created and removed only while it holds what was read, on systems with and without exchanges."""

import errno
import os
import sys

import pytest

from docindex_dagster.agents import compare_and_swap
from docindex_dagster.agents.compare_and_swap import swap


@pytest.fixture(params=["exchange", "no exchange"])
def file(request, tmp_path, monkeypatch):
    if request.param == "no exchange":
        monkeypatch.setattr(compare_and_swap, "_rename_exchange", lambda: None)
        monkeypatch.setattr(os, "link", refuse)
    return tmp_path / "a.json"


def refuse(*_):
    raise OSError(errno.EPERM, "no links here")


@pytest.mark.parametrize("expected", [None, b"read"])
@pytest.mark.parametrize("data", [None, b"new"])
def test_it_is_replaced_if_it_holds_what_was_read(file, expected, data):
    if expected is not None:
        file.write_bytes(expected)
        assert swap(file, expected, data)
        assert (file.read_bytes() if file.exists() else None) == data
    elif data is not None:
        assert swap(file, expected, data)
        assert file.read_bytes() == data
    assert {path.name for path in file.parent.iterdir()} <= {"a.json"}


@pytest.mark.parametrize("expected", [None, b"read"])
@pytest.mark.parametrize("data", [None, b"new"])
def test_it_is_left_as_it_is_if_it_holds_something_else(file, expected, data):
    file.write_bytes(b"of another program")

    assert not swap(file, expected, data)
    assert file.read_bytes() == b"of another program"
    assert [path.name for path in file.parent.iterdir()] == ["a.json"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who has a file open")
@pytest.mark.parametrize("data", [None, b"new"])
def test_it_is_left_as_it_is_while_a_program_has_it_open_for_writing(file, data):
    file.write_bytes(b"read")
    with file.open("r+b") as writer:
        assert not swap(file, b"read", data)
        writer.write(b"done")

    assert file.read_bytes() == b"done"
    assert swap(file, b"done", data)


def test_a_file_that_is_gone_is_not_made_again(file):
    assert not swap(file, b"read", b"new")
    assert not file.exists()


@pytest.mark.parametrize("data", [None, b"new"])
def test_an_edit_right_after_the_comparison_is_put_back(tmp_path, monkeypatch, data):
    file, check, other = tmp_path / "a.json", compare_and_swap._check, tmp_path / "other"
    file.write_bytes(b"read")
    other.write_bytes(b"of another program")

    def check_and_edit(path, expected):
        check(path, expected)
        if other.exists():
            other.replace(file)

    monkeypatch.setattr(compare_and_swap, "_check", check_and_edit)
    if data is not None and compare_and_swap._rename_exchange() is None:
        pytest.skip("the C library has no renameat2")

    assert not swap(file, b"read", data)
    assert file.read_bytes() == b"of another program"
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
