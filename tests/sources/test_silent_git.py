"""Working trees that make git hang: docindex kills git, and its callers continue."""

import errno
import os
import signal
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from docindex_dagster.core import git_folders
from docindex_dagster.core.errors import GitTimeoutError
from docindex_dagster.sources import git
from docindex_dagster.sources.changes import fingerprint
from docindex_dagster.sources.commits import read_commits
from docindex_dagster.sources.discovery import discover
from docindex_dagster.sources.history import shallow_end, touched_between
from docindex_dagster.sources.transfer import submodule_failures
from tests.sources.conftest import Tree
from tests.sources.remotes import Followed

PATIENCE_S = 0.2
READ_BY_GIT = (
    *(".gitignore", ".git/HEAD", ".git/config", ".git/index", ".git/info/exclude", ".git/packed-refs", ".git/shallow"),
    *(".git/commondir", ".git/refs/heads/main", ".git/objects/info/alternates", ".git/objects/info/commit-graph"),
)


def fifo(tree: Tree, path: str) -> Path:
    """Replace a file with a FIFO that nobody writes to."""
    place = tree.root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    os.mkfifo(place)
    return place


def answer(place: Path) -> None:
    """Unblock a process that waits for a FIFO."""
    with suppress(BrokenPipeError):  # git closes anything but regular files before reading
        place.write_bytes(b"*.tmp\n")


def is_waited_for(place: Path) -> bool:
    """Return whether a process has opened, or is opening, a FIFO for reading."""
    try:
        os.close(os.open(place, os.O_WRONLY | os.O_NONBLOCK))
    except OSError as error:
        return error.errno != errno.ENXIO
    return True


def await_end_of_commands_on(folder: Path, patience_s: float = 10) -> None:
    """Wait until no command names a folder, since killed child processes exit slightly later than their parent."""
    deadline = time.monotonic() + patience_s
    while subprocess.run(["pgrep", "-f", str(folder)], check=False, stdout=subprocess.DEVNULL).returncode == 0:
        assert time.monotonic() < deadline, f"a command on {folder} goes on"
        time.sleep(0.01)


@pytest.fixture
def tree(repository: Tree) -> Tree:
    repository.write("a.md")
    repository.write("b.py", "def b():\n    return 1\n")
    repository.commit()
    return repository


@pytest.mark.parametrize("path", READ_BY_GIT)
def test_a_fifo_in_place_of_a_file_that_git_reads_is_not_waited_for(tree, path):
    place = fifo(tree, path)

    with git.within(PATIENCE_S), pytest.raises(GitTimeoutError, match=f"git .* in {tree.root} was killed"):
        fingerprint(tree.source())

    assert not is_waited_for(place)


def test_nor_one_that_settings_include(tree):
    place = fifo(tree, "anything")
    tree.git("config", "include.path", str(place))

    with git.within(PATIENCE_S), pytest.raises(GitTimeoutError, match=f"find {tree.root} -type p"):
        discover(tree.source())

    assert not is_waited_for(place)


def test_nor_one_that_decides_how_changes_are_reported(tree):
    fifo(tree, ".gitattributes")

    with git.within(PATIENCE_S), pytest.raises(GitTimeoutError):
        read_commits(tree.source(), tree.git("rev-parse", "HEAD"), None, 10)


def test_silence_is_no_answer_that_other_commands_are_asked_after(tree):
    old = tree.git("rev-parse", "HEAD")
    new = tree.commit()
    fifo(tree, ".git/shallow")

    with git.within(PATIENCE_S), pytest.raises(GitTimeoutError):
        touched_between(os.fsencode(tree.root), old, new)


def test_each_command_has_its_limit_without_being_given_one(tree, monkeypatch):
    monkeypatch.setattr(git, "_MAX_SILENCE_S", PATIENCE_S)
    fifo(tree, ".git/index")

    with pytest.raises(GitTimeoutError, match=f"no output for {PATIENCE_S} seconds"):
        fingerprint(tree.source())


def test_a_command_that_does_nothing_is_ended_long_before_its_limit(tree, monkeypatch):
    monkeypatch.setattr(git, "_CHECK_INTERVAL_S", PATIENCE_S)
    place = fifo(tree, ".git/index")

    with git.within(600), pytest.raises(GitTimeoutError, match="no output for"):
        fingerprint(tree.source())

    assert not is_waited_for(place)


@pytest.mark.parametrize("ticks", [None, iter(range(10_000))])
def test_a_silent_command_that_works_is_not_ended(tree, monkeypatch, ticks):
    monkeypatch.setattr(git, "_CHECK_INTERVAL_S", 0.01)
    monkeypatch.setattr(git, "_cpu_ticks", lambda _session: ticks if ticks is None else next(ticks))
    place = fifo(tree, ".gitignore")
    writer = threading.Timer(PATIENCE_S, answer, [place])

    writer.start()
    assert fingerprint(tree.source())
    writer.join()


def test_the_commands_of_a_block_share_its_time_and_an_inner_block_gets_no_more(tree):
    fifo(tree, ".git/index")

    with git.within(PATIENCE_S):
        with git.within(60), pytest.raises(GitTimeoutError) as silent:
            fingerprint(tree.source())
        assert "for 60 seconds" not in str(silent.value)
        with pytest.raises(GitTimeoutError, match="for 0 seconds"):
            fingerprint(tree.source())


def test_ctrl_c_ends_git_and_the_wait_for_it(tree):
    place = fifo(tree, ".gitignore")
    interrupt = threading.Timer(PATIENCE_S, signal.pthread_kill, [threading.get_ident(), signal.SIGINT])

    interrupt.start()
    with git.within(60), pytest.raises(KeyboardInterrupt):
        fingerprint(tree.source())

    assert not is_waited_for(place)


def test_what_is_read_without_git_is_no_fifo_either(tree):
    root = os.fsencode(tree.root)
    for name in ("HEAD", "commondir", "shallow", "docindex-submodules"):
        fifo(tree, f".git/{name}")

    assert git_folders.read_git_file(tree.root / ".git/HEAD") == ""
    assert git_folders.common_folder(tree.root) == tree.root / ".git"
    assert shallow_end(root) == b""
    assert submodule_failures(root) == {}


@pytest.mark.parametrize("name", [".gitignore", ".docindexignore", "a.md"])
def test_a_fifo_in_a_library_is_no_file(library, name):
    library.write("b.md")
    fifo(library, name)

    assert library.indexed() == {"b.md"}


@pytest.mark.parametrize("as_url", [False, True])
def test_a_clone_of_a_folder_that_is_waited_for_ends(tree, tmp_path, monkeypatch, as_url):
    monkeypatch.setattr("docindex_dagster.sources.transfer._MAX_LOCAL_S", PATIENCE_S)
    place = fifo(tree, ".git/packed-refs")
    followed = Followed(tmp_path / "home", tree.root.as_uri() if as_url else str(tree.root))

    with pytest.raises(GitTimeoutError, match=r"cannot clone .*: timed out after"):
        followed.update()

    await_end_of_commands_on(tree.root)
    assert not is_waited_for(place)
