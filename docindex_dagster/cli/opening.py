"""Where results are, as a user can open them: paths from the working directory, links, and the user's editor."""

import os
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from docindex_dagster.core.errors import QueryError, SettingsError
from docindex_dagster.documents.model import page_anchor
from docindex_dagster.search.model import Hit

if TYPE_CHECKING:
    from docindex_dagster.search.matches import Match

# How editors take a line: by the name of the program.
_PLUS = frozenset({"vi", "vim", "nvim", "view", "gvim", "emacs", "emacsclient", "nano", "micro", "kak", "joe", "ne"})
_GOTO = frozenset({"code", "code-insiders", "codium", "cursor", "windsurf"})
_COLON = frozenset({"subl", "zed", "hx", "helix", "atom"})


@dataclass(frozen=True, slots=True)
class Place:
    """Where a chunk or the evidence of an edge is: as a result of a search, without what was found."""

    source: str
    path: str
    line: int | None
    file: str | None  # where the file is on disk
    page: int | None = None


def shown_path(result: "Hit | Match | Place", home: Path) -> tuple[str, str]:
    """The path of a result as it can be typed here, and its source where the path does not lead there.

    It begins at the working directory where the file is below it or both are in the folder of its source, else at the
    root. A commit, and a file of a clone that the index keeps in its `home`, are named by their source.
    """
    file = result.file
    if file is None or Path(file).is_relative_to(home):
        return result.path, result.source
    here, of_source = Path.cwd(), file.removesuffix(result.path)
    is_near = Path(file).is_relative_to(here) or (of_source != file and here.is_relative_to(of_source))
    return (os.path.relpath(file, here) if is_near else file), ""


def link(result: "Hit | Match | Place") -> str | None:
    """The URL of the file of a result."""
    if result.file is None:
        return None
    anchor = "" if result.page is None else f"#{page_anchor(result.page)}"
    return Path(result.file).as_uri() + anchor


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
