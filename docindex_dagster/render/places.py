"""Paths of results, as a user can type and open them."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from docindex_dagster.documents.model import page_anchor
from docindex_dagster.search.model import Hit

if TYPE_CHECKING:
    from docindex_dagster.search.matches import Match


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
