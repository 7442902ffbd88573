"""Git commands in docindex's own clones and checkouts, including network transfers.

docindex controls the settings of these repositories. Credentials come from git's own sources: credential helpers, ssh,
GIT_ASKPASS and similar. Submodules of a checkout are fetched if this is safe and works; otherwise the reason is
recorded.
"""

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from docindex_dagster.core.errors import GitTimeoutError, SourceError
from docindex_dagster.core.files import atomic_write
from docindex_dagster.core.git_folders import environment, git_folder
from docindex_dagster.sources import git
from docindex_dagster.sources.paths import read_regular

_NETWORK = "https:http:ssh"
EVERYWHERE = f"{_NETWORK}:file"
_OPTIONS = (
    *("-c", "clone.defaultRemoteName=origin"),
    *("-c", "core.preferSymlinkRefs=false"),  # a home contains no links
    *("-c", "gc.autoDetach=false"),  # a background process would collide with the next run
    *("-c", "http.lowSpeedLimit=1"),  # bytes per second over lowSpeedTime seconds: give up on a dead server
    *("-c", "http.lowSpeedTime=60"),
    *("-c", "safe.bareRepository=all"),
)
# Variables that users set so that git can authenticate or find a server.
_KEPT_VARIABLES = ("GIT_ASKPASS", "GIT_CONFIG_", "GIT_EXEC_PATH", "GIT_HTTP_", "GIT_PROXY_", "GIT_SSH", "GIT_SSL_")
_SETTINGS = {"GIT_TERMINAL_PROMPT": "0", "GIT_LFS_SKIP_SMUDGE": "1"}
_NO_REASON = ("fatal: Could not read from remote repository.", "warning:", "Cloning into", "hint:")
# Longer than the largest repositories take, locally and over a network.
_MAX_LOCAL_S, _MAX_S = 60 * 60, 12 * 60 * 60
_REFUSED = ("could not read Username", "could not read Password", "Authentication failed", "Permission denied (")
_NOTE = "docindex-submodules"
_MAX_NOTE_BYTES = 1 << 20
_GITLINK = b"160000 "
# Never read local paths, which any author may write into a .gitmodules; submodules do not need them.
_UPDATE_SUBMODULES = (
    *("-c", "protocol.file.allow=never"),
    *("submodule", "update", "--quiet", "--init", "--recursive", "--force", "--depth=1"),
)


def run(
    folder: Path,
    *arguments: str | bytes,
    purpose: str,
    transports: str = EVERYWHERE,
    lines: Sequence[str] = (),
    timeout_s: float | None = None,
) -> bytes:
    """Run a git command in a folder, with `lines` as its input, and return its output.

    Args:
        folder: A clone, a checkout, or the folder in which to create one.
        arguments: The command.
        purpose: What the command does, such as `fetch URL`, for the error "cannot PURPOSE".
        transports: The transports for reaching other repositories, in the format of `GIT_ALLOW_PROTOCOL`.
        lines: The input of the command.
        timeout_s: Time limit; the command is then killed with all its child processes, and cannot prompt. With None,
            the limit is half a day, and ssh may prompt for a passphrase on the terminal.

    Raises:
        SourceError: The command failed, or git is not installed.
        GitTimeoutError: The command took too long.
    """
    kept = [name for name in os.environ if name.startswith(_KEPT_VARIABLES)]
    variables = environment(str(folder), kept) | _SETTINGS | {"GIT_ALLOW_PROTOCOL": transports}
    command, is_detached = (*_OPTIONS, "-C", str(folder), *arguments), timeout_s is not None
    with git.launch(command, variables, lines, is_detached=is_detached) as (process, errors):
        try:
            output, _ = process.communicate(timeout=timeout_s or _MAX_S)
        except subprocess.TimeoutExpired as error:
            raise GitTimeoutError(f"cannot {purpose}: timed out after {error.timeout:g} seconds") from error
        if process.returncode:
            raise SourceError(f"cannot {purpose}: {_reason(git.error_lines(errors), purpose)}")
    return output


def limit_s(url: str) -> float | None:
    """Return the `timeout_s` for copying a repository: a local one may be slow to read, but needs no network."""
    return _MAX_LOCAL_S if url.startswith(("/", "file:")) else None


def attempt(
    folder: Path,
    *arguments: str | bytes,
    transports: str = "",
    lines: Sequence[str] = (),
    timeout_s: float | None = None,
) -> bytes | None:
    """Return the output of a command; None if it failed. Without transports, it contacts no other repository."""
    try:
        return run(folder, *arguments, purpose="query git", transports=transports, lines=lines, timeout_s=timeout_s)
    except SourceError:
        return None


def _reason(lines: Sequence[str], purpose: str) -> str:
    reason = next((line for line in lines if not line.startswith(_NO_REASON)), "git failed without a message")
    if any(message in line for line in lines for message in _REFUSED):
        reason += "; set up a git credential helper or an ssh key with access"
    elif purpose.startswith(("clone ", "fetch ")) and "fatal: " in reason:
        reason += "; check the address and whether the server responds"
    return reason


def update_submodules(checkout: Path, report: Callable[[str], None]) -> None:
    """Fetch the submodules of a checkout at their recorded commits; report those that cannot be fetched.

    Raises:
        SourceError: git cannot list them. GitTimeoutError: git takes too long to list them.
    """
    paths = _submodules(checkout)
    if paths:
        attempt(checkout, "submodule", "sync", "--quiet", "--recursive")
    failures: dict[bytes, str] = {}
    for path in paths:
        name = os.fsdecode(path)
        arguments = (*_UPDATE_SUBMODULES, "--", path)
        try:
            run(checkout, *arguments, purpose=f"fetch submodule {name}", transports=_NETWORK)
        except SourceError as error:
            failures[path] = " ".join(str(error).split())
            report(failures[path])
    with atomic_write(git_folder(checkout) / _NOTE) as temporary:
        temporary.write_bytes(b"".join(b"%b\0%b\0" % (path, reason.encode()) for path, reason in failures.items()))


def submodule_failures(root: bytes) -> dict[bytes, str]:
    """Return why submodules of a checkout could not be fetched, by path; empty for other work trees."""
    try:
        fields = read_regular(git_folder(Path(os.fsdecode(root))) / _NOTE, _MAX_NOTE_BYTES).split(b"\0")
    except OSError:
        return {}
    return {path: reason.decode("utf-8", "replace") for path, reason in zip(fields[0::2], fields[1::2], strict=False)}


def _submodules(checkout: Path) -> list[bytes]:
    listed = run(checkout, "ls-files", "-z", "--stage", purpose=f"read {checkout}").split(b"\0")
    return [line.partition(b"\t")[2] for line in listed if line.startswith(_GITLINK)]
