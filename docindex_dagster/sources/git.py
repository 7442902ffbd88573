"""Running git's command line: safely in repositories that nobody vouches for, with errors that say what to do."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from docindex_dagster.errors import SourceError

# A repository's own settings must not run programs, nor change what is printed.
_OPTIONS = (
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.quotePath=false"),
    *("-c", "log.showSignature=false"),
)
_SETTINGS = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_KEPT = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH")
_READ = 1 << 16  # bytes


def run(root: bytes, *arguments: str | bytes) -> bytes:
    """Run a git command in the work tree whose root is `root`, and return what it prints.

    Raises:
        SourceError: The folder is missing or is not the root of a work tree, git is not installed, or it failed.
    """
    with _start(root, arguments) as (process, errors):
        output, _ = process.communicate()
        _check(process, errors, root)
    return output


def records(root: bytes, *arguments: str | bytes) -> Iterator[bytes]:
    """Yield the NUL-separated records that a command prints, as they come. Closing the iterator ends the command.

    Raises:
        SourceError: As `run` does.
    """
    with _start(root, arguments) as (process, errors):
        pending = b""
        for block in _blocks(process):
            *complete, pending = (pending + block).split(b"\0")
            yield from complete
        process.wait()
        _check(process, errors, root)


def attempt(root: bytes, *arguments: str | bytes) -> bytes | None:
    """Return what a command prints; None where it exits with anything but 0."""
    with _start(root, arguments) as (process, _):
        output, _ = process.communicate()
    return output if process.returncode == 0 else None


@contextmanager
def _start(root: bytes, arguments: tuple[str | bytes, ...]) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
    """Start a command, and end it on the way out; with the file that its error messages go to."""
    if not Path(os.fsdecode(root)).is_dir():
        raise SourceError(f"{os.fsdecode(root)} is not a folder; mend its path in docindex.toml or bring it back")
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                ["git", *_OPTIONS, "-C", root, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=_environment(root),
            )
        except FileNotFoundError as error:
            raise SourceError("git is not installed or not on PATH; install it to index git sources") from error
        with process:
            try:
                yield process, errors
            finally:
                process.kill()


def _environment(root: bytes) -> dict[str, str]:
    """Return an environment in which git sees this repository alone, whatever hook or shell docindex is run from."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in _KEPT}
    above = Path(os.fsdecode(root)).resolve().parent
    return inherited | _SETTINGS | {"GIT_CEILING_DIRECTORIES": str(above)}


def _blocks(process: subprocess.Popen[bytes]) -> Iterator[bytes]:
    """Yield what a process prints, as it comes."""
    if process.stdout is not None:
        while block := os.read(process.stdout.fileno(), _READ):
            yield block


def _check(process: subprocess.Popen[bytes], errors: IO[bytes], root: bytes) -> None:
    if process.returncode:
        errors.seek(0)
        raise SourceError(_explain(errors.read(_READ).decode("utf-8", "replace"), os.fsdecode(root)))


def _explain(errors: str, root: str) -> str:
    if "dubious ownership" in errors:
        return f"{root} belongs to another user, so git refuses it: git config --global --add safe.directory {root}"
    if "not a git repository" in errors or "must be run in a work tree" in errors:
        return f"{root} is not the root of a git work tree; name the root, or make it a library"
    lines = [line for line in errors.splitlines() if line.startswith(("fatal:", "error:"))] or errors.splitlines()
    return f"git cannot read {root}: {lines[0] if lines else 'it failed without a message'}"
