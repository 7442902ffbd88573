"""Running git's command line: safely in untrusted repositories, with errors that say what to do.

A folder that was downloaded may bring a `.git` with it that a user prepared. Its settings must not decide which
programs run, and which files outside of the work tree are read: see `safe_options`.
"""

import os
import re
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from contextvars import ContextVar
from operator import itemgetter
from pathlib import Path
from typing import IO

from docindex_dagster.core.errors import NoAnswerError, NoRootError, SourceError
from docindex_dagster.core.files import real_path
from docindex_dagster.core.git_folders import OPTIONS, SETTINGS, common_folder, environment, git_folder, text_of
from docindex_dagster.core.safe_text import command
from docindex_dagster.core.urls import scrub

_READ = 1 << 16  # bytes
# What is no regular file, such as a FIFO in place of a file that git reads, or a disk that does not answer: git would
# wait for it for ever, and do nothing. The slowest command on a large repository prints something sooner.
_LONGEST_SILENCE_S = 600
_LOOK_S = 15  # between two looks at a silent command; one that does nothing from the first to the second is ended
_deadline: ContextVar[float] = ContextVar("docindex_git_deadline", default=float("inf"))  # of time.monotonic
_NO_ROOT = "{} is not the root of a git work tree; name the root, or make it a library"
_DECIDING = re.compile(rb"filter\..*|core\.(attributesfile|excludesfile|worktree)", re.DOTALL)
_OF_THE_REPOSITORY = {b"local", b"worktree"}
_WORK_TREE = b"core.worktree"
_LFS = b"filter.lfs."
_OF_LFS = (b"clean", b"process", b"required", b"smudge")
# What git-lfs itself writes into the settings of a repository.
_HARMLESS = re.compile(rb"lfs\.(repositoryformatversion|.+\.(access|locksverify))", re.DOTALL | re.IGNORECASE)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Let the commands of the block, all together, take no longer; those that run on then are ended."""
    token = _deadline.set(min(_deadline.get(), time.monotonic() + seconds))
    try:
        yield
    finally:
        _deadline.reset(token)


def run(root: bytes, *arguments: str | bytes) -> bytes:
    """Run a git command in the work tree whose root is `root`, and return what it prints.

    Raises:
        SourceError: The folder is missing or is not the root of a work tree, git is not installed, or it failed.
        NoAnswerError: It was silent for too long.
    """
    return b"".join(stream(root, *arguments))


def records(root: bytes, *arguments: str | bytes, lines: Sequence[str] = ()) -> Iterator[bytes]:
    """Yield the NUL-separated records that a command that is given lines prints, as they come.

    Closing the iterator ends the command.

    Raises:
        SourceError: As `run` does.
    """
    pending: list[bytes] = []  # parts of one record, which may be as long as its author liked
    with closing(stream(root, *arguments, lines=lines)) as blocks:
        for block in blocks:
            first, *others = block.split(b"\0")
            pending.append(first)
            if others:
                yield b"".join(pending)
                yield from others[:-1]
                pending = others[-1:]


def stream(root: bytes, *arguments: str | bytes, lines: Sequence[str] = ()) -> Generator[bytes, None, None]:
    """Yield what a command that is given lines prints, in blocks, as they come. Closing the iterator ends the command.

    Raises:
        SourceError: As `run` does, once all blocks are yielded.
    """
    with started(root, *arguments, lines=lines) as blocks:
        yield from blocks


@contextmanager
def started(root: bytes, *arguments: str | bytes, lines: Sequence[str] = ()) -> Iterator[Iterator[bytes]]:
    """Start a command, which goes on while the block does something else; yields what `stream` does.

    Raises:
        SourceError: As `stream` does.
    """
    with _start(root, arguments, lines) as (process, errors):
        yield _checked(_blocks(process, root, arguments), process, errors, root)


def attempt(root: bytes, *arguments: str | bytes) -> bytes | None:
    """Return what a command prints; None where it exits with anything but 0.

    Raises:
        SourceError: As `run` does for anything else.
    """
    with _start(root, arguments) as (process, _):
        output = b"".join(_blocks(process, root, arguments))
    return output if process.returncode == 0 else None


@contextmanager
def _start(
    root: bytes, arguments: tuple[str | bytes, ...], lines: Sequence[str] = ()
) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
    """Start a command in a work tree, as `launch` does, apart from the terminal."""
    folder = os.fsdecode(root)
    if not Path(folder).is_dir():
        raise SourceError(f"{folder} is not a folder; mend its path in docindex.toml or bring it back")
    if not os.path.lexists(os.path.join(root, b".git")):  # noqa: PTH118 bytes
        raise NoRootError(_NO_ROOT.format(folder))
    # Named here, the work tree is not where the repository's settings say that it is.
    here = ("-C", root, "-c", "safe.bareRepository=explicit", "--work-tree=.")
    with launch((*here, *arguments), environment(folder) | SETTINGS, lines, is_apart=True) as process:
        yield process


@contextmanager
def launch(
    arguments: tuple[str | bytes, ...], variables: dict[str, str], lines: Sequence[str] = (), *, is_apart: bool = False
) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
    """Start git, and end it on the way out; with the file that its error messages go to.

    Args:
        arguments: The command.
        variables: Its environment.
        lines: What it reads.
        is_apart: It has a session of its own: no terminal to ask a user on, and what it starts ends with it.

    Raises:
        SourceError: git is not installed.
    """
    # Files, since a pipe that is full while the other end waits would stop both.
    with tempfile.TemporaryFile() as errors, tempfile.TemporaryFile() as given:
        given.writelines(f"{line}\n".encode() for line in lines)
        given.seek(0)
        try:
            process = subprocess.Popen(
                ["git", *OPTIONS, *arguments],
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=variables,
                start_new_session=is_apart,
            )
        except FileNotFoundError as error:
            raise SourceError("git is not installed or not on PATH; install it to index git sources") from error
        with process:
            try:
                yield process, errors
            finally:
                _kill(process, is_apart=is_apart)


def _kill(process: subprocess.Popen[bytes], *, is_apart: bool) -> None:
    if process.returncode is not None:
        return
    if is_apart:  # not reaped yet, so its id is still that of its group
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


def _checked(
    blocks: Iterator[bytes], process: subprocess.Popen[bytes], errors: IO[bytes], root: bytes
) -> Iterator[bytes]:
    yield from blocks
    if process.returncode:
        raise _error(error_lines(errors), os.fsdecode(root))


def _blocks(process: subprocess.Popen[bytes], root: bytes, arguments: Sequence[str | bytes]) -> Iterator[bytes]:
    """Yield what a process prints, as it comes, until it has ended."""
    if process.stdout is None:
        return
    waiting = select.poll()
    waiting.register(process.stdout)
    patience_s, ticks = _patience_s(), None
    ends_at = time.monotonic() + patience_s
    is_idle = False
    while not is_idle:
        left_s = max(0.0, ends_at - time.monotonic())
        if waiting.poll(min(left_s, _LOOK_S) * 1000):
            block = os.read(process.stdout.fileno(), _READ)
            if not block:
                process.wait()
                return
            yield block
            patience_s, ticks = _patience_s(), None
            ends_at = time.monotonic() + patience_s
        elif left_s <= _LOOK_S:
            break
        else:
            before, ticks = ticks, _cpu_ticks(process.pid)
            is_idle = ticks is not None and ticks == before
    silent_s = patience_s - max(0.0, ends_at - time.monotonic())
    raise NoAnswerError(_silence(os.fsdecode(root), _command(arguments), silent_s))


def _cpu_ticks(session: int) -> int | None:
    """Return how long the processes of a session have used a processor; None where the system does not say."""
    ticks = None
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            of_session, *times = itemgetter(3, 11, 12)(file.read_bytes().rpartition(b")")[2].split())
            if int(of_session) == session:
                ticks = (ticks or 0) + sum(map(int, times))
    return ticks


def _patience_s() -> float:
    """How long git may be silent now."""
    return max(0.0, min(_LONGEST_SILENCE_S, _deadline.get() - time.monotonic()))


def _command(arguments: Sequence[str | bytes]) -> str:
    """The name of the command behind git's own options."""
    words = map(os.fsdecode, arguments)
    for word in words:
        if word == "-c":
            next(words)
        elif not word.startswith("-"):
            return word
    return ""


def _silence(root: str, name: str, seconds: float) -> str:
    return (
        f"git {name} in {root} was ended: it did not answer for {seconds:.3g} seconds; one of the files that git "
        f"reads may be a FIFO ({command('find', root, '-type', 'p')}), or the disk does not answer"
    )


def error_lines(errors: IO[bytes]) -> list[str]:
    """Return what a command reported about its failure, free of secrets and control characters, errors first."""
    errors.seek(0)
    text = scrub(errors.read(_READ).decode("utf-8", "replace"))
    lines = ["".join(char for char in line if char.isprintable()).strip() for line in text.splitlines()]
    return sorted(filter(None, lines), key=lambda line: not line.startswith(("fatal:", "error:")))


def _error(lines: list[str], root: str) -> SourceError:
    everything = "\n".join(lines)
    if "dubious ownership" in everything:
        return SourceError(
            f"{root} belongs to another user, so git refuses it; if you trust that user, run "
            f"{command('git', 'config', '--global', '--add', 'safe.directory', root)}"
        )
    if "not a git repository" in everything or "must be run in a work tree" in everything:
        return NoRootError(_NO_ROOT.format(root))
    return SourceError(f"git cannot read {root}: {lines[0] if lines else 'it failed without a message'}")


def safe_options(root: bytes) -> tuple[bytes, ...]:
    """Return the options under which git reads the files of a work tree, as `git status` does, and runs no programs.

    Filters that the user's own settings name, such as those of git-lfs, stay; those that the repository names do not.

    Raises:
        SourceError: The `.git` of the folder is that of another one, or git cannot read its settings.
    """
    own: dict[bytes, bytes] = {}
    users: dict[bytes, bytes] = {}
    misleads_lfs = False
    fields = run(root, "config", "--show-scope", "--null", "--list").split(b"\0")
    for scope, setting in zip(fields[0::2], fields[1::2], strict=False):
        key, _, value = setting.partition(b"\n")
        if scope in _OF_THE_REPOSITORY:
            misleads_lfs |= _is_for_lfs(key) or any(map(_is_for_lfs, value.split(b"\n")[1:]))
        if _DECIDING.fullmatch(key):
            (own if scope in _OF_THE_REPOSITORY else users)[key] = value
    _check_place(os.fsdecode(root), os.fsdecode(own.pop(_WORK_TREE, b"")))
    # The user's git-lfs runs the extensions that a repository names, and writes where it says.
    if misleads_lfs:
        users = {key: value for key, value in users.items() if not key.startswith(_LFS)}
        own = dict.fromkeys(own.keys() | {_LFS + name for name in _OF_LFS}, b"")
    if any(b"=" in key for key in own):
        raise SourceError(f"{os.fsdecode(root)} has a git filter with '=' in its name; remove it from its settings")
    return tuple(part for key in own for part in (b"-c", b"%b=%b" % (key, users.get(key, b""))))


def _is_for_lfs(setting: bytes) -> bool:
    """Whether git-lfs would obey a setting, or a line of one: it reads what git lists line by line."""
    return setting.strip().lower().startswith(b"lfs.") and not _HARMLESS.fullmatch(setting.partition(b"=")[0])


def _check_place(root: str, work_tree: str) -> None:
    """Refuse a `.git` that leads to a repository which does not know this folder, or that git finds elsewhere.

    What lies in the folder itself, its author could have prepared.
    """
    real, entry = os.path.realpath(root), Path(root, ".git")
    folder, common = git_folder(Path(root)), common_folder(Path(root))
    place = real_path(folder)
    if place.is_relative_to(real):
        is_own = common.is_relative_to(real)
    else:
        back = text_of(folder / "gitdir")
        leads_back = (str((folder / back).parent) if back else "", str(folder / work_tree) if work_tree else "")
        is_own = real in map(os.path.realpath, filter(None, leads_back))
    if not is_own:
        raise SourceError(
            f"{root}/.git leads to {folder}, which is not the repository of this folder; if it is meant to be, say "
            f"so there: {command('git', 'config', '--file', folder / 'config', 'core.worktree', real)}"
        )
    is_plain = not entry.is_symlink() and entry.is_dir() and not os.path.lexists(entry / "commondir")
    if is_plain and os.pathsep not in real:  # which would separate the folders that git does not leave
        return
    is_listed = place.is_relative_to(real) or common == place or common / "worktrees" == place.parent
    if not (is_listed and _finds(root, place, common)):
        raise SourceError(
            f"{root}/.git leads to {folder}, but git uses another repository: it is not the repository of this folder; "
            "remove it, and clone again"
        )


def _finds(root: str, folder: Path, common: Path) -> bool:
    """Whether git itself finds these folders: a path such as `/proc/self/cwd` means others to it."""
    found = run(os.fsencode(root), "rev-parse", "--absolute-git-dir", "--git-common-dir")
    expected = os.fsencode(folder) + b"\n"
    theirs = os.path.realpath(os.path.join(os.fsencode(root), found[len(expected) : -1]))  # noqa: PTH118 bytes
    return found.startswith(expected) and theirs == os.fsencode(common)
