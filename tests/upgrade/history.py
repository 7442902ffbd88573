"""Earlier versions of this project from its git history."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

_VERSIONS = 3
_BACK = (50, 200, 400)  # commits before this one


class NoHistoryError(Exception):
    """No earlier version is available; the message says how to get one."""


def number(environment: Mapping[str, str] = os.environ) -> int:
    """Return the number of older versions to test, without reading the history."""
    return len(_named(environment)) or _VERSIONS


def older(root: Path, environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return the commits or tags whose indexes are upgraded.

    Raises:
        NoHistoryError: the history is missing or too short.
    """
    if named := _named(environment):
        return named
    # Without this check, git would look for a repository in the parent folders.
    if not (root / ".git").exists():
        raise NoHistoryError(f"{root} is no clone: there is no history to take older versions from")
    if git(root, "rev-parse", "--is-shallow-repository").strip() == b"true":
        raise NoHistoryError(f"{root} is a shallow clone, without older versions: git fetch --unshallow --tags")
    tags = git(root, "tag", "--list", "v[0-9]*", "--sort=-version:refname", "--no-contains", "HEAD").decode().split()
    commits = int(git(root, "rev-list", "--count", "--first-parent", "HEAD"))
    found = [*tags, *(f"HEAD~{back}" for back in _BACK if back < commits)][:_VERSIONS]
    if len(found) < _VERSIONS:
        raise NoHistoryError(
            f"the history of {root} has {len(found)} older versions, of {_VERSIONS}: "
            "name commits in DOCINDEX_TEST_COMMITS"
        )
    return found


def git(root: Path, *arguments: str) -> bytes:
    """Return the output of a command."""
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True).stdout


def _named(environment: Mapping[str, str]) -> list[str]:
    return environment.get("DOCINDEX_TEST_COMMITS", "").split()
