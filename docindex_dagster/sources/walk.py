"""Walking a library's folder."""

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from docindex_dagster.core import git_folders
from docindex_dagster.core.errors import SourceError
from docindex_dagster.sources import noise
from docindex_dagster.sources.entries import Entry, error_reason, folder_entry, state_reason
from docindex_dagster.sources.paths import join, path_to_name
from docindex_dagster.sources.rules import PathRules, Pruned, Scope


def walk(rules: PathRules, top: bytes = b"") -> Iterator[Entry]:
    """Yield the files below the root in no order, and one entry for each folder that is not entered.

    Below `top` alone, a folder whose name ends in a slash, where it is given.

    Names are bytes, so that any name survives. Links are reported and never followed, so that a cycle ends.

    Raises:
        SourceError: The root cannot be listed.
    """
    folders = [top]
    while folders:
        folder = folders.pop()
        scope = rules.scope(folder)
        if isinstance(scope, Pruned):
            yield folder_entry(scope.path, scope.reason)
            continue
        try:
            with os.scandir(join(rules.root, folder)) as listing:
                children = list(listing)
                if folder and (reason := _work_tree_reason(rules, folder, children)):
                    yield folder_entry(folder, reason)
                    continue
                for child in children:
                    if noise.is_version_control(child.name):
                        continue
                    if child.is_dir(follow_symlinks=False):
                        folders.append(folder + child.name + b"/")
                    elif (entry := file_entry(rules, scope, folder + child.name)) is not None:
                        yield entry
        except OSError as error:
            if not folder:
                raise SourceError(_unusable(rules.root, error)) from error
            yield folder_entry(folder, error_reason(error))


def _work_tree_reason(rules: PathRules, folder: bytes, children: Iterable[os.DirEntry[bytes]]) -> str | None:
    """Why a folder is skipped because it is a further work tree of a repository of which the source has another one."""
    if not any(child.name == b".git" and child.is_file(follow_symlinks=False) for child in children):
        return None
    if rules.is_named(folder):
        return None
    source = Path(os.fsdecode(rules.root))
    other = git_folders.earlier_work_tree(
        source / os.fsdecode(folder),
        source,
        lambda place: isinstance(rules.scope(b"" if place == Path() else os.fsencode(place) + b"/"), Scope),
    )
    if other is None:
        return None
    return f"work-tree: a further one of the repository at {path_to_name(os.fsencode(other))}, which is indexed"


def file_entry(rules: PathRules, scope: Scope, path: bytes) -> Entry | None:
    """Return what the file system and the rules say of a file; None where no file is there (any more)."""
    try:
        found = os.lstat(join(rules.root, path))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return Entry(path, 0, 0, error_reason(error))
    if stat.S_ISDIR(found.st_mode):
        return None
    reason = rules.file_reason(scope, path[len(scope.path) :]) or state_reason(rules.root, path, found.st_mode)
    return Entry(path, found.st_size, found.st_mtime_ns, reason)


def _unusable(root: bytes, error: OSError) -> str:
    return f"{os.fsdecode(root)} cannot be listed ({error.strerror}); mend its path in docindex.toml or bring it back"
