"""Running git in docindex's own clones and checkouts, also across the network.

Their settings are ours. Credentials come by git's own means: credential helpers, ssh, GIT_ASKPASS and the like.
"""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from docindex_dagster.core.errors import NoAnswerError, SourceError
from docindex_dagster.core.git_folders import environment
from docindex_dagster.sources import git

NETWORK = "https:http:ssh"
EVERYWHERE = f"{NETWORK}:file"

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
    command, is_apart = (*_OPTIONS, "-C", str(folder), *arguments), timeout_s is not None
    with git.launch(command, variables, lines, is_apart=is_apart) as (process, errors):
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
