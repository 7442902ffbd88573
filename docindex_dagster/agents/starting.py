"""How an agent starts `docindex mcp`: by which command, and for which project."""

import os
import shutil
import sys
from pathlib import Path

from docindex_dagster.agents.catalogue import Scope, Server
from docindex_dagster.agents.entries import ROOT_VARIABLE
from docindex_dagster.core.errors import AgentError
from docindex_dagster.core.installation import DISTRIBUTION, is_of_uvx

_PROGRAM = "docindex"
_ARGUMENTS = ("mcp", "--watch")


def server_for(scope: Scope, root: str, command: tuple[str, ...] | None = None) -> Server:
    """The server that an entry describes.

    Args:
        scope: a file of a project is shared, so that it names no path of this machine unless it has to.
        root: the project that it serves, as the agent reads it; empty for that of the folder where it is started.
        command: how `docindex` is called; None to find out.

    Raises:
        AgentError: a path has bytes that are no UTF-8, which no agent could read.
    """
    program, *arguments = command or own_command(is_shared=scope == "project")
    for text in (program, *arguments, root):
        if not _is_utf8(text):
            raise AgentError(f"{text!r} is no UTF-8, so that no agent could read it")
    return Server(program, (*arguments, *_ARGUMENTS), {ROOT_VARIABLE: root} if root else {})


def own_command(*, is_shared: bool) -> tuple[str, ...]:
    """How to call this program: by its name where that is shared and on the PATH for good, else by its path.

    Where `uvx` runs it, by that: the path would be gone with uv's cache.
    """
    if is_of_uvx(Path(sys.prefix)):
        return ("uvx", "--from", DISTRIBUTION, _PROGRAM)
    own = Path(sys.executable).with_name(_PROGRAM)
    found = shutil.which(_PROGRAM)
    is_ours = found is not None and own.exists() and own.samefile(found)
    if found is not None and is_ours and not _is_for_now(Path(found)):
        return (_PROGRAM,) if is_shared else (os.path.abspath(found),)  # noqa: PTH100 a link stays one
    # Agents start it in a checkout: without -P, Python would import modules from there.
    return (str(own),) if own.exists() else (sys.executable, "-P", "-m", "docindex_dagster.cli")


def _is_for_now(program: Path) -> bool:
    """Whether it is on the PATH since an environment is active in this shell."""
    active = os.environ.get("VIRTUAL_ENV") or os.environ.get("CONDA_PREFIX")
    return bool(active) and program.is_relative_to(str(active))


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
