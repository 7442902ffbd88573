"""The user's editor, opened at a result."""

import os
import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from docindex_dagster.core.errors import QueryError, SettingsError
from docindex_dagster.search.model import Hit

if TYPE_CHECKING:
    from docindex_dagster.search.matches import Match

# How editors take a line: by the name of the program.
_PLUS = frozenset({"vi", "vim", "nvim", "view", "gvim", "emacs", "emacsclient", "nano", "micro", "kak", "joe", "ne"})
_GOTO = frozenset({"code", "code-insiders", "codium", "cursor", "windsurf"})
_COLON = frozenset({"subl", "zed", "hx", "helix", "atom"})


def open_in_editor(result: "Hit | Match") -> None:
    """Start the user's editor at a result, and wait for it.

    Raises:
        SettingsError: neither VISUAL nor EDITOR names an editor that can be started.
        QueryError: the result is no file, or none that an editor shows.
    """
    if result.page is not None:
        raise QueryError(f"{result.path} is no text: open page {result.page} of {result.file} in a viewer")
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise SettingsError("set VISUAL or EDITOR to the editor that shall open results")
    if result.file is None:
        raise QueryError(f"{result.path} is no file that could be opened; `docindex show` shows it")
    try:
        command = _command(shlex.split(editor), result.file, result.line)
        subprocess.run(command, check=False)
    except (OSError, ValueError) as error:
        raise SettingsError(f"the editor {editor!r} cannot be started: {error}; set VISUAL or EDITOR") from error


def _command(editor: list[str], file: str, line: int) -> list[str]:
    """The arguments that open a file, given from the root, at a line."""
    name = Path(editor[0]).name.removesuffix(".exe") if editor else ""
    if name in _PLUS:
        return [*editor, f"+{line}", file]
    if name in _GOTO:
        return [*editor, "--goto", f"{file}:{line}"]
    return [*editor, f"{file}:{line}" if name in _COLON else file]
