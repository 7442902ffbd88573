"""The index of a git work tree, as far as it says whether git tracks a folder or files below it."""

import os
import subprocess
from functools import lru_cache
from pathlib import Path

from docindex_dagster.core.files import stamp
from docindex_dagster.core.git_folders import git_folder

_LONGEST_S = 10  # for git to answer; a FIFO in the place of its index never does


def is_tracked(folder: Path) -> bool:
    """Whether git tracks a folder, a link in its place, or files below it, in the innermost work tree around it.

    False where git cannot read the work tree, since it then cannot change it either.
    """
    top = next((parent for parent in folder.parents if (parent / ".git").exists()), None)
    if top is None:
        return False
    return _is_tracked(top, str(folder.relative_to(top)), stamp(git_folder(top) / "index"))


@lru_cache(maxsize=16)
def _is_tracked(top: Path, name: str, _stamp: tuple[int, ...] | None) -> bool:
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    options = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
    command = ("git", *options, "--work-tree=.", "ls-files", "-z", "--", f":(top,literal,icase){name}")
    try:
        found = subprocess.run(
            command,
            cwd=top,
            env=own | {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LONGEST_S,
            check=False,
        )
    except FileNotFoundError:
        return False
    except subprocess.TimeoutExpired:
        return True
    return bool(found.stdout)
