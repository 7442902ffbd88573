"""Git command execution: safe in untrusted repositories, with errors that say what to do.

A downloaded folder may contain a `.git` that an attacker prepared. Its settings must not decide which programs run or
which files outside the work tree are read: see `safe_options`.
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

from docindex_dagster.core.errors import GitTimeoutError, NotARepositoryRootError, SourceError
from docindex_dagster.core.files import real_path
from docindex_dagster.core.git_folders import OPTIONS, SETTINGS, common_folder, environment, git_folder, read_git_file
from docindex_dagster.core.safe_text import command
from docindex_dagster.core.urls import scrub

_READ = 1 << 16  # bytes
# Git waits forever on anything that is not a regular file, such as a FIFO in place of a file that it reads, and on a
# disk that does not respond. The slowest command on a large repository prints something sooner.
_MAX_SILENCE_S = 600
_CHECK_INTERVAL_S = 15  # interval between checks of a silent command; it is killed if it used no CPU between two checks
_deadline: ContextVar[float] = ContextVar("docindex_git_deadline", default=float("inf"))  # of time.monotonic
_NO_ROOT = "{} is not the root of a git work tree; use the root, or configure the folder as a library"
_DECIDING = re.compile(rb"filter\..*|core\.(attributesfile|excludesfile|worktree)", re.DOTALL)
_REPOSITORY_SCOPES = {b"local", b"worktree"}
_WORK_TREE = b"core.worktree"
_LFS = b"filter.lfs."
_LFS_KEYS = (b"clean", b"process", b"required", b"smudge")
# Settings that git-lfs itself writes to a repository.
_HARMLESS = re.compile(rb"lfs\.(repositoryformatversion|.+\.(access|locksverify))", re.DOTALL | re.IGNORECASE)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Limit the total time of all commands in the block; a command that exceeds it is killed."""
    token = _deadline.set(min(_deadline.get(), time.monotonic() + seconds))
    try:
        yield
    finally:
        _deadline.reset(token)


def run(root: bytes, *arguments: str | bytes) -> bytes:
    """Run a git command in the work tree whose root is `root`, and return its output.

    Raises:
        SourceError: The folder is missing or is not the root of a work tree, git is not installed, or git failed.
        GitTimeoutError: git was silent for too long.
    """
    return b"".join(stream(root, *arguments))


def records(root: bytes, *arguments: str | bytes, lines: Sequence[str] = ()) -> Iterator[bytes]:
    """Yield the NUL-separated records that a command, whose input is `lines`, prints as they arrive.

    Closing the iterator ends the command.

    Raises:
        SourceError: As `run` does.
    """
    pending: list[bytes] = []  # pieces of one record, which may be arbitrarily long
    with closing(stream(root, *arguments, lines=lines)) as blocks:
        for block in blocks:
            first, *others = block.split(b"\0")
            pending.append(first)
            if others:
                yield b"".join(pending)
                yield from others[:-1]
                pending = others[-1:]


def stream(root: bytes, *arguments: str | bytes, lines: Sequence[str] = ()) -> Generator[bytes, None, None]:
    """Yield the output of a command, whose input is `lines`, in blocks as they arrive.

    Closing the iterator ends the command.

    Raises:
        SourceError: As `run` does, after all blocks.
    """
    with started(root, *arguments, lines=lines) as blocks:
        yield from blocks


@contextmanager
def started(root: bytes, *arguments: str | bytes, lines: Sequence[str] = ()) -> Iterator[Iterator[bytes]]:
    """Start a command that runs while the block does other work; yield the same iterator as `stream`.

    Raises:
        SourceError: As `stream` does.
    """
    with _start(root, arguments, lines) as (process, errors):
        yield _checked(_blocks(process, root, arguments), process, errors, root)


def attempt(root: bytes, *arguments: str | bytes) -> bytes | None:
    """Return the output of a command; None if its exit status is not 0.

    Raises:
        SourceError: As `run` does for other failures.
    """
    with _start(root, arguments) as (process, _):
        output = b"".join(_blocks(process, root, arguments))
    return output if process.returncode == 0 else None


@contextmanager
def _start(
    root: bytes, arguments: tuple[str | bytes, ...], lines: Sequence[str] = ()
) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
    """Start a command in a work tree, as `launch` does, detached from the terminal."""
    folder = os.fsdecode(root)
    if not Path(folder).is_dir():
        raise SourceError(f"{folder} is not a folder; fix its path in docindex.toml or restore it")
    if not os.path.lexists(os.path.join(root, b".git")):  # noqa: PTH118 bytes
        raise NotARepositoryRootError(_NO_ROOT.format(folder))
    # Passing the work tree here overrides the location in the repository's settings.
    here = ("-C", root, "-c", "safe.bareRepository=explicit", "--work-tree=.")
    with launch((*here, *arguments), environment(folder) | SETTINGS, lines, is_detached=True) as process:
        yield process


@contextmanager
def launch(
    arguments: tuple[str | bytes, ...],
    variables: dict[str, str],
    lines: Sequence[str] = (),
    *,
    is_detached: bool = False,
) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
    """Start git and kill it on exit; yield the process and the file that receives its error messages.

    Args:
        arguments: The command.
        variables: Its environment.
        lines: Its standard input.
        is_detached: Start it in its own session: it has no terminal to prompt on, and its child processes end with it.

    Raises:
        SourceError: git is not installed.
    """
    # Files rather than pipes: a full pipe whose reader is waiting would deadlock both sides.
    with tempfile.TemporaryFile() as errors, tempfile.TemporaryFile() as stdin:
        stdin.writelines(f"{line}\n".encode() for line in lines)
        stdin.seek(0)
        try:
            process = subprocess.Popen(
                ["git", *OPTIONS, *arguments],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=variables,
                start_new_session=is_detached,
            )
        except FileNotFoundError as error:
            raise SourceError("git is not installed or not on PATH; install it to index git sources") from error
        with process:
            try:
                yield process, errors
            finally:
                _kill(process, is_detached=is_detached)


def _kill(process: subprocess.Popen[bytes], *, is_detached: bool) -> None:
    if process.returncode is not None:
        return
    if is_detached:  # not reaped yet, so its process id is still the group id
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
    """Yield the output of a process as it arrives, until the process has ended."""
    if process.stdout is None:
        return
    waiting = select.poll()
    waiting.register(process.stdout)
    patience_s, ticks = _patience_s(), None
    ends_at = time.monotonic() + patience_s
    is_idle = False
    while not is_idle:
        remaining_s = max(0.0, ends_at - time.monotonic())
        if waiting.poll(min(remaining_s, _CHECK_INTERVAL_S) * 1000):
            block = os.read(process.stdout.fileno(), _READ)
            if not block:
                process.wait()
                return
            yield block
            patience_s, ticks = _patience_s(), None
            ends_at = time.monotonic() + patience_s
        elif remaining_s <= _CHECK_INTERVAL_S:
            break
        else:
            before, ticks = ticks, _cpu_ticks(process.pid)
            is_idle = ticks is not None and ticks == before
    silent_s = patience_s - max(0.0, ends_at - time.monotonic())
    raise GitTimeoutError(_silence_message(os.fsdecode(root), _command(arguments), silent_s))


def _cpu_ticks(session: int) -> int | None:
    """Return the CPU time of all processes in a session, in clock ticks; None if the system does not report it."""
    ticks = None
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # the process has ended
            of_session, *times = itemgetter(3, 11, 12)(file.read_bytes().rpartition(b")")[2].split())
            if int(of_session) == session:
                ticks = (ticks or 0) + sum(map(int, times))
    return ticks


def _patience_s() -> float:
    """Return how long git may be silent from now on."""
    return max(0.0, min(_MAX_SILENCE_S, _deadline.get() - time.monotonic()))


def _command(arguments: Sequence[str | bytes]) -> str:
    """Return the name of the command after git's own options."""
    words = map(os.fsdecode, arguments)
    for word in words:
        if word == "-c":
            next(words)
        elif not word.startswith("-"):
            return word
    return ""


def _silence_message(root: str, name: str, seconds: float) -> str:
    return (
        f"git {name} in {root} was killed: no output for {seconds:.3g} seconds; one of the files that git reads may be "
        f"a FIFO ({command('find', root, '-type', 'p')}), or the disk does not respond"
    )


def error_lines(errors: IO[bytes]) -> list[str]:
    """Return the error messages of a command without secrets and control characters, errors first."""
    errors.seek(0)
    text = scrub(errors.read(_READ).decode("utf-8", "replace"))
    lines = ["".join(char for char in line if char.isprintable()).strip() for line in text.splitlines()]
    return sorted(filter(None, lines), key=lambda line: not line.startswith(("fatal:", "error:")))


def _error(lines: list[str], root: str) -> SourceError:
    output = "\n".join(lines)
    if "dubious ownership" in output:
        return SourceError(
            f"{root} belongs to another user, so git refuses it; if you trust that user, run "
            f"{command('git', 'config', '--global', '--add', 'safe.directory', root)}"
        )
    if "not a git repository" in output or "must be run in a work tree" in output:
        return NotARepositoryRootError(_NO_ROOT.format(root))
    return SourceError(f"git cannot read {root}: {lines[0] if lines else 'it failed without a message'}")


def safe_options(root: bytes) -> tuple[bytes, ...]:
    """Return the options under which git reads the files of a work tree, as `git status` does, and runs no programs.

    Filters from the user's own settings, such as git-lfs, stay enabled; filters from the repository do not.

    Raises:
        SourceError: The `.git` of the folder belongs to another folder, or git cannot read its settings.
    """
    own: dict[bytes, bytes] = {}
    users: dict[bytes, bytes] = {}
    misleads_lfs = False
    try:
        fields = run(root, "config", "--show-scope", "--null", "--list").split(b"\0")
    except NotARepositoryRootError:
        _check_git_folder(os.fsdecode(root), "")  # the same error, whether or not `.git` points to a repository
        raise
    for scope, setting in zip(fields[0::2], fields[1::2], strict=False):
        key, _, value = setting.partition(b"\n")
        if scope in _REPOSITORY_SCOPES:
            misleads_lfs |= _is_for_lfs(key) or any(map(_is_for_lfs, value.split(b"\n")[1:]))
        if _DECIDING.fullmatch(key):
            (own if scope in _REPOSITORY_SCOPES else users)[key] = value
    _check_git_folder(os.fsdecode(root), os.fsdecode(own.pop(_WORK_TREE, b"")))
    # The user's git-lfs would run extensions that the repository names, and write where the repository says.
    if misleads_lfs:
        users = {key: value for key, value in users.items() if not key.startswith(_LFS)}
        own = dict.fromkeys(own.keys() | {_LFS + name for name in _LFS_KEYS}, b"")
    if any(b"=" in key for key in own):
        raise SourceError(f"{os.fsdecode(root)} has a git filter with '=' in its name; remove it from its git settings")
    return tuple(part for key in own for part in (b"-c", b"%b=%b" % (key, users.get(key, b""))))


def _is_for_lfs(setting: bytes) -> bool:
    """Return whether git-lfs would obey a setting, or one line of it: git-lfs parses git's listing line by line."""
    return setting.strip().lower().startswith(b"lfs.") and not _HARMLESS.fullmatch(setting.partition(b"=")[0])


def _check_git_folder(root: str, work_tree: str) -> None:
    """Refuse a `.git` that points to a repository that does not know this folder, or that git resolves differently.

    A repository inside the folder itself could have been prepared by the folder's author.
    """
    real, entry = os.path.realpath(root), Path(root, ".git")
    folder, common = git_folder(Path(root)), common_folder(Path(root))
    real_folder = real_path(folder)
    if real_folder.is_relative_to(real):
        is_own = common.is_relative_to(real)
    else:
        back = read_git_file(folder / "gitdir")
        back_links = (str((folder / back).parent) if back else "", str(folder / work_tree) if work_tree else "")
        is_own = real in map(os.path.realpath, filter(None, back_links))
    if not is_own:
        raise SourceError(
            f"{root}/.git points to {folder}, which is not the repository of this folder; if this is intended, run "
            f"{command('git', 'config', '--file', folder / 'config', 'core.worktree', real)}; to ignore it, run "
            "`docindex source add . --kind library` in that folder"
        )
    is_plain = not entry.is_symlink() and entry.is_dir() and not os.path.lexists(entry / "commondir")
    if is_plain and os.pathsep not in real:  # it would split the list of folders that git must not leave
        return
    is_listed = real_folder.is_relative_to(real) or common == real_folder or common / "worktrees" == real_folder.parent
    if not (is_listed and _git_finds(root, real_folder, common)):
        raise SourceError(
            f"{root}/.git points to {folder}, but git uses another repository, which does not belong to this folder; "
            "remove it and clone again"
        )


def _git_finds(root: str, folder: Path, common: Path) -> bool:
    """Return whether git itself finds these folders: it resolves a path such as `/proc/self/cwd` differently."""
    found = run(os.fsencode(root), "rev-parse", "--absolute-git-dir", "--git-common-dir")
    expected = os.fsencode(folder) + b"\n"
    theirs = os.path.realpath(os.path.join(os.fsencode(root), found[len(expected) : -1]))  # noqa: PTH118 bytes
    return found.startswith(expected) and theirs == os.fsencode(common)
