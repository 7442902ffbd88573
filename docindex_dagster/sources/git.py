"""Running git's command line: safely in repositories that nobody vouches for, with errors that say what to do."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO

from docindex_dagster.errors import SourceError
from docindex_dagster.urls import scrub

# A repository's own settings must not run programs, nor change what is printed.
_OPTIONS = (
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.quotePath=false"),
    *("-c", "log.showSignature=false"),
    *("-c", "log.showRoot=true"),
    *("-c", "submodule.recurse=false"),
)
_SETTINGS = {
    # An object that is missing is not fetched: the repository's settings say from where, and by which program.
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_NO_LAZY_FETCH": "1",
    # The history is what was committed, whatever this clone puts in its place.
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": "/dev/null",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
}
KEPT = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH")
_READ = 1 << 16  # bytes
_NO_ROOT = "{} is not the root of a git work tree; name the root, or make it a library"


def run(root: bytes, *arguments: str | bytes) -> bytes:
    """Run a git command in the work tree whose root is `root`, and return what it prints.

    Raises:
        SourceError: The folder is missing or is not the root of a work tree, git is not installed, or it failed.
    """
    with _start(root, arguments) as (process, errors):
        output, _ = process.communicate()
        _check(process, errors, root)
    return output


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
    with _start(root, arguments, lines) as (process, errors):
        yield from _blocks(process)
        process.wait()
        _check(process, errors, root)


def attempt(root: bytes, *arguments: str | bytes) -> bytes | None:
    """Return what a command prints; None where it exits with anything but 0."""
    with _start(root, arguments) as (process, _):
        output, _ = process.communicate()
    return output if process.returncode == 0 else None


@contextmanager
def _start(
    root: bytes, arguments: tuple[str | bytes, ...], lines: Sequence[str] = ()
) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
    """Start a command in a work tree, as `launch` does."""
    folder = os.fsdecode(root)
    if not Path(folder).is_dir():
        raise SourceError(f"{folder} is not a folder; mend its path in docindex.toml or bring it back")
    if not os.path.lexists(os.path.join(root, b".git")):  # noqa: PTH118 bytes
        raise SourceError(_NO_ROOT.format(folder))
    # Named here, the work tree is not where the repository's settings say that it is.
    with launch(("-C", root, "--work-tree=.", *arguments), environment(folder) | _SETTINGS, lines) as started:
        yield started


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
                ["git", *_OPTIONS, *arguments],
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


def environment(folder: str, kept: Collection[str] = KEPT) -> dict[str, str]:
    """Return an environment in which git sees this folder alone, whatever hook or shell docindex is run from."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in kept}
    return inherited | {"LC_ALL": "C", "GIT_CEILING_DIRECTORIES": str(Path(folder).resolve().parent)}


def _blocks(process: subprocess.Popen[bytes]) -> Iterator[bytes]:
    """Yield what a process prints, as it comes."""
    if process.stdout is not None:
        while block := os.read(process.stdout.fileno(), _READ):
            yield block


def _check(process: subprocess.Popen[bytes], errors: IO[bytes], root: bytes) -> None:
    if process.returncode:
        raise SourceError(_explain(error_lines(errors), os.fsdecode(root)))


def error_lines(errors: IO[bytes]) -> list[str]:
    """Return what a command said about its failure, free of secrets and control characters, errors first."""
    errors.seek(0)
    text = scrub(errors.read(_READ).decode("utf-8", "replace"))
    lines = ["".join(char for char in line if char.isprintable()).strip() for line in text.splitlines()]
    return sorted(filter(None, lines), key=lambda line: not line.startswith(("fatal:", "error:")))


def _explain(lines: list[str], root: str) -> str:
    everything = "\n".join(lines)
    if "dubious ownership" in everything:
        return f"{root} belongs to another user, so git refuses it: git config --global --add safe.directory {root}"
    if "not a git repository" in everything or "must be run in a work tree" in everything:
        return _NO_ROOT.format(root)
    return f"git cannot read {root}: {lines[0] if lines else 'it failed without a message'}"
