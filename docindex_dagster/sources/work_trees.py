"""Linked work trees of git: which sources a folder has in a work tree of its own."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from docindex_dagster.core.git_folders import common_folder
from docindex_dagster.core.settings import Settings
from docindex_dagster.sources import registry


@dataclass(frozen=True, slots=True)
class LinkedTree:
    """A linked work tree around a folder, and the sources that are in another work tree of its repository.

    Attributes:
        root: the folder of the work tree.
        own: by the key of a source in another work tree, the key of the same folder in this one; "" where no source
            declares that.
    """

    root: Path
    own: Mapping[str, str]


def linked_tree(settings: Settings, folder: Path) -> LinkedTree | None:
    """Return the linked work tree around a folder; None where there is none, or no source is in another one.

    Raises:
        SettingsError: as `registry.sources`.
    """
    root = registry.work_tree(folder.resolve())
    if root is None or not (root / ".git").is_file():
        return None
    common = common_folder(root)
    declared = [source for source in registry.sources(settings).values() if source.remote is None]
    by_folder = {source.path.resolve(): source.key for source in declared}
    own = {}
    for path, key in by_folder.items():
        other = registry.work_tree(path)
        if other is not None and other != root and common_folder(other) == common:
            own[key] = by_folder.get(root / path.relative_to(other), "")
    return LinkedTree(root, own) if own else None
