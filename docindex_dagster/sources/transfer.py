"""Running git in docindex's own clones and checkouts, also across the network.

Their settings are ours. Credentials come by git's own means: credential helpers, ssh, GIT_ASKPASS and the like. The
submodules of a checkout are fetched where that is safe and works, else noted with the reason.
"""

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from docindex_dagster.core.errors import NoAnswerError, SourceError
from docindex_dagster.core.files import replacing
from docindex_dagster.core.git_folders import environment, git_folder
from docindex_dagster.sources import git
from docindex_dagster.sources.paths import read_regular

_NETWORK = "https:http:ssh"
EVERYWHERE = f"{_NETWORK}:file"
_OPTIONS = (
    *("-c", "clone.defaultRemoteName=origin"),
    *("-c", "core.preferSymlinkRefs=false"),  # a home contains no links
    *("-c", "gc.autoDetach=false"),  # what runs on would meet the next run
    *("-c", "http.lowSpeedLimit=1"),  # bytes a second, over so many seconds: a server that died is given up
    *("-c", "http.lowSpeedTime=60"),
    *("-c", "safe.bareRepository=all"),
)
# What users give git to prove who they are, or to find the way.
_KEPT = ("GIT_ASKPASS", "GIT_CONFIG_", "GIT_EXEC_PATH", "GIT_HTTP_", "GIT_PROXY_", "GIT_SSH", "GIT_SSL_")
_SETTINGS = {"GIT_TERMINAL_PROMPT": "0", "GIT_LFS_SKIP_SMUDGE": "1"}
_NO_REASON = ("fatal: Could not read from remote repository.", "warning:", "Cloning into", "hint:")
# Longer than the largest repositories take, on this machine and over a network.
_LONGEST_HERE_S, _LONGEST_S = 60 * 60, 12 * 60 * 60
_REFUSED = ("could not read Username", "could not read Password", "Authentication failed", "Permission denied (")
_NOTE = "docindex-submodules"
_LONGEST_NOTE = 1 << 20  # bytes
_GITLINK = b"160000 "
# A path on this machine, which any author may write into a .gitmodules, is never read; no other repository's is needed.
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
    """Run a git command that is given lines in a folder, and return what it prints.

    Args:
        folder: A clone, a checkout, or the folder in which one is to be made.
        arguments: The command.
        purpose: What it is for, such as `fetch URL`, to say in an error that it cannot be done.
        transports: What may be used to reach other repositories, as `GIT_ALLOW_PROTOCOL` writes it.
        lines: What the command reads.
        timeout_s: How long it may take; it then ends with every program that it started, and gets no answer to a
            prompt. With None it may take half a day, and ssh may ask for a passphrase on the terminal.

    Raises:
        SourceError: It failed, or git is not installed.
        NoAnswerError: It took too long.
    """
    kept = [name for name in os.environ if name.startswith(_KEPT)]
    variables = environment(str(folder), kept) | _SETTINGS | {"GIT_ALLOW_PROTOCOL": transports}
    command, is_detached = (*_OPTIONS, "-C", str(folder), *arguments), timeout_s is not None
    with git.launch(command, variables, lines, is_detached=is_detached) as (process, errors):
        try:
            output, _ = process.communicate(timeout=timeout_s or _LONGEST_S)
        except subprocess.TimeoutExpired as error:
            raise NoAnswerError(f"cannot {purpose}: no answer within {error.timeout:g} seconds") from error
        if process.returncode:
            raise SourceError(f"cannot {purpose}: {_reason(git.error_lines(errors), purpose)}")
    return output


def limit_s(url: str) -> float | None:
    """The `timeout_s` for copying a repository: one on this machine may be slow to read, but needs no network."""
    return _LONGEST_HERE_S if url.startswith(("/", "file:")) else None


def attempt(
    folder: Path,
    *arguments: str | bytes,
    transports: str = "",
    lines: Sequence[str] = (),
    timeout_s: float | None = None,
) -> bytes | None:
    """Return what a command prints; None where it failed. Without transports it looks nowhere else."""
    try:
        return run(folder, *arguments, purpose="ask git", transports=transports, lines=lines, timeout_s=timeout_s)
    except SourceError:
        return None


def _reason(lines: Sequence[str], purpose: str) -> str:
    reason = next((line for line in lines if not line.startswith(_NO_REASON)), "git failed without a reason")
    if any(sign in line for line in lines for sign in _REFUSED):
        reason += "; give git a credential helper or an ssh key that opens it"
    elif purpose.startswith(("clone ", "fetch ")) and "fatal: " in reason:
        reason += "; see whether its address is right and its server answers"
    return reason


def update_submodules(checkout: Path, report: Callable[[str], None]) -> None:
    """Fetch the submodules of a checkout at the commits that it names; one that cannot be fetched is reported.

    Raises:
        SourceError: git cannot list them.
        NoAnswerError: it takes too long to.
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
    with replacing(git_folder(checkout) / _NOTE) as temporary:
        temporary.write_bytes(b"".join(b"%b\0%b\0" % (path, reason.encode()) for path, reason in failures.items()))


def submodule_failures(root: bytes) -> dict[bytes, str]:
    """Why submodules of a checkout, by path, could not be fetched; empty for other work trees."""
    try:
        fields = read_regular(git_folder(Path(os.fsdecode(root))) / _NOTE, _LONGEST_NOTE).split(b"\0")
    except OSError:
        return {}
    return {path: reason.decode("utf-8", "replace") for path, reason in zip(fields[0::2], fields[1::2], strict=False)}


def _submodules(checkout: Path) -> list[bytes]:
    listed = run(checkout, "ls-files", "-z", "--stage", purpose=f"read {checkout}").split(b"\0")
    return [line.partition(b"\t")[2] for line in listed if line.startswith(_GITLINK)]
