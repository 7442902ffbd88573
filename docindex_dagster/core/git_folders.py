"""Git folders of a working tree: external references in them, tracked files, and a safe environment for git."""

import os
import re
import stat
import subprocess
import time
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from pathlib import Path

from docindex_dagster.core.errors import SourceError
from docindex_dagster.core.files import real_path, stamp

# A repository's own config must not run programs, read files elsewhere or change git's output.
OPTIONS = (
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.quotePath=false"),
    *("-c", "diff.orderFile=/dev/null"),
    *("-c", "log.showSignature=false"),
    *("-c", "log.showRoot=true"),
    *("-c", "mailmap.file=/dev/null"),
    *("-c", "submodule.recurse=false"),
)
SETTINGS = {
    # Missing objects are not fetched, since the repository's config decides from where and with which program.
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_NO_LAZY_FETCH": "1",
    # The history is the committed one, without the replacements and grafts of this clone.
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": "/dev/null",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
}
_KEPT = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH")
_TIMEOUT_S = 10  # for git; if a FIFO replaces its index, git never returns
_MAX_TEXT_BYTES = 1 << 16  # enough for a path
_MAX_AGE_S = 10.0  # of a cached scan, which takes a few milliseconds for 10,000 branches
_UNSCANNED = ("logs", "objects/pack")  # like loose objects: to use a symlink there, an attacker must know a hash
_GIT_FOLDER_ENTRIES = ("HEAD", "objects")  # each git folder has at least one of them
_MAX_CONFIG_BYTES = 16 << 20  # a branch takes a hundred bytes
_INCLUDE = re.compile(rb"\[\s*include", re.IGNORECASE)
_INCLUDE_KEYS = r"^include(if\..*)?\.path$"
_scans: dict[Path, tuple[float, list[Path]]] = {}


def environment(folder: str, kept: Collection[str] = _KEPT) -> dict[str, str]:
    """Return an environment in which git sees only this folder, even if docindex runs from a git hook."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in kept}
    return inherited | {"LC_ALL": "C", "GIT_CEILING_DIRECTORIES": str(Path(folder).resolve().parent)}


def git_folder(root: Path) -> Path:
    """Return the git folder of a working tree, which `.git` is or points to.

    Raises:
        SourceError: The `.git` file is longer than a path.
    """
    entry = root / ".git"
    return root / read_git_file(entry).removeprefix("gitdir: ") if entry.is_file() else entry


def common_folder(root: Path) -> Path:
    """Return the git folder that all worktrees of a repository share, with symlinks resolved.

    Raises:
        SourceError: A file that names it is longer than a path.
    """
    folder = git_folder(root)
    return real_path(folder / read_git_file(folder / "commondir"))


def preceding_worktree(tree: Path, within: Path, is_entered: Callable[[Path], bool]) -> Path | None:
    """Return the first worktree below a folder that precedes a linked worktree of the same repository, or None.

    The main worktree comes first. Only worktrees that the repository itself lists count.

    Args:
        tree: The root of the linked worktree.
        within: The folder that must contain the earlier worktree.
        is_entered: Whether a path relative to that folder is considered.
    """
    if not (tree / ".git").is_file():
        return None
    try:
        root, folder, common = tree.resolve(), within.resolve(), common_folder(tree)
        linked = _linked_work_trees(common, stamp(common / "worktrees"))
    except (OSError, ValueError, RuntimeError, SourceError):  # a symlink cycle, or not a path
        return None
    if root not in linked:
        return None
    trees = [*([common.parent] if common.name == ".git" else ()), *linked]
    others = (other.relative_to(folder) for other in trees[: trees.index(root)] if other.is_relative_to(folder))
    return next((other for other in others if os.path.lexists(folder / other / ".git") and is_entered(other)), None)


@lru_cache(maxsize=64)
def _linked_work_trees(common: Path, _: tuple[int, ...] | None) -> tuple[Path, ...]:
    """Return the roots of a repository's linked worktrees, sorted; cached until the folder's stamp changes."""
    if not (common / "worktrees").is_dir():
        return ()
    return tuple(
        sorted(Path(read_git_file(entry / "gitdir")).parent.resolve() for entry in (common / "worktrees").iterdir())
    )


def read_git_file(file: Path) -> str:
    """Return the text of one of git's small files; empty if it does not exist. Never blocks on a FIFO.

    Raises:
        SourceError: The file is longer than a path, all of which git would read, or contains a NUL byte, where git
            stops reading.
    """
    text = _read(file, _MAX_TEXT_BYTES)
    if b"\0" in text:
        raise SourceError(f"invalid git file {file}: contains a NUL byte")
    return os.fsdecode(text).rstrip("\r\n")  # git treats other whitespace as part of the path


def _read(file: Path, most: int) -> bytes:
    """Return the content of a file; empty if it is missing or not a regular file. Never blocks on a FIFO."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return b""
    with os.fdopen(descriptor, "rb") as opened:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return b""
        data = opened.read(most + 1)
    if len(data) > most:
        raise SourceError(f"invalid git file {file}: longer than {most:,} bytes")
    return data


def external_references(root: Path, max_age_s: float = _MAX_AGE_S) -> list[Path]:
    """List the external references of a repository: symlinks in its git folders, alternates, and included configs.

    Git creates no symlinks there, and one that points inside may lead to a folder with more of them. The git folders
    may be outside `root`, where an attacker may also have prepared them. `root` may be a bare repository.

    Raises:
        SourceError: One of its files is longer than a path, or one of its folders cannot be listed.
    """
    now = time.monotonic()
    scanned_at, found = _scans.get(root, (-_MAX_AGE_S, []))
    if now - scanned_at >= max_age_s:
        found = list(_external_references(root))
        _scans[root] = (now, found)
    return found


def _external_references(root: Path) -> Iterator[Path]:
    entry = root / ".git"
    if entry.is_symlink():
        yield entry
    is_bare = not entry.exists() and os.path.lexists(root / "HEAD")
    if is_bare and os.path.lexists(common := root / "commondir"):
        yield common
    if not (is_bare or entry.exists()) or (is_bare and not os.path.lexists(root / "refs")):
        return
    for top in {root} if is_bare else {real_path(git_folder(root)), common_folder(root)}:
        if not any(os.path.lexists(top / name) for name in _GIT_FOLDER_ENTRIES):
            continue
        yield from _alternates(top / "objects", set())
        yield from _includes(root, top)
        yield from _symlinks_in(top)


def _alternates(objects: Path, seen: set[Path]) -> Iterator[Path]:
    """Yield the file that lists from where a folder of objects borrows, and what it lists, also indirectly.

    So a decision to trust a repository covers these folders, not only the name of the file.
    """
    alternates = objects / "info" / "alternates"
    if not os.path.lexists(alternates):
        return
    yield alternates
    lines = _read(alternates, _MAX_TEXT_BYTES).splitlines()
    for lender in (real_path(objects / os.fsdecode(line.replace(b"\0", b""))) for line in lines if line):
        if lender not in seen:
            seen.add(lender)
            yield lender
            yield from _alternates(lender, seen)


def _includes(root: Path, top: Path) -> Iterator[Path]:
    """Yield the files outside a repository that the configs of one of its git folders include.

    Git reads them, and an error of git names an invalid one. A config that git cannot parse counts as well.
    """
    within = (root.resolve(), top)
    configs = [top / "config", top / "config.worktree"]
    seen: set[Path] = set()
    while configs:
        config = configs.pop()
        if config in seen or not _INCLUDE.search(_read(config, _MAX_CONFIG_BYTES)):
            continue
        seen.add(config)
        included = _included(config)
        if included is None:
            yield config
            continue
        for file in included:
            if any(file.is_relative_to(folder) for folder in within):
                configs.append(file)
            else:
                yield file


def _included(config: Path) -> list[Path] | None:
    """Return the files that a config includes under any condition, resolved; None if git cannot parse it."""
    command = ("git", "config", "--file", str(config), "--no-includes", "--null", "--get-regexp", _INCLUDE_KEYS)
    try:
        found = subprocess.run(
            command,
            cwd="/",
            env=environment("/") | SETTINGS,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    values = (os.fsdecode(record.partition(b"\n")[2]) for record in found.stdout.split(b"\0")[:-1])
    # Git replaces prefixes such as `%(prefix)/` and `:(optional)`, so such a path may lead anywhere.
    return [real_path((Path("/") if value[:1] in {"%", ":"} else config.parent) / _expanded(value)) for value in values]


def _expanded(path: str) -> str:
    return os.path.expanduser(path)  # noqa: PTH111 leaves paths alone that it cannot expand


def _symlinks_in(top: Path) -> Iterator[Path]:
    folders = [str(top)]
    unscanned = {f"{top}/{name}" for name in _UNSCANNED}
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(folder) as entries:
                found = list(entries)
        except PermissionError as error:
            raise SourceError(f"cannot list {folder}, which may contain symbolic links; make it readable") from error
        except OSError:
            continue
        # There are too many folders of loose objects. git-lfs has two levels of them, and writes to both.
        is_objects = folder == f"{top}/objects" or folder[: -len("/ab")] == f"{top}/lfs/objects"
        for entry in found:
            if entry.is_symlink():
                yield Path(entry.path)
            elif entry.is_dir() and entry.path not in unscanned and not (is_objects and len(entry.name) == len("ab")):
                folders.append(entry.path)


def is_tracked(folder: Path) -> bool:
    """Return whether a surrounding working tree tracks a folder, a symlink at its path, or files below it.

    True if git cannot tell. Every surrounding working tree counts: a pull in an outer one writes into a nested
    repository that it tracks as plain files.
    """
    path = folder.parent.resolve() / folder.name
    try:
        indexes = [(top, stamp(git_folder(top) / "index")) for top in path.parents if (top / ".git").exists()]
    except SourceError:
        return True
    return any(_is_tracked(top, str(path.relative_to(top)), index) for top, index in indexes if index is not None)


@lru_cache(maxsize=16)
def _is_tracked(top: Path, name: str, _index: tuple[int, ...]) -> bool:
    # With explicit paths, git also reads another user's repository, such as root's around the whole disk.
    paths = ("--git-dir=.git", "--work-tree=.")
    command = ("git", *OPTIONS, *paths, "ls-files", "-z", "--", f":(top,literal,icase){name}")
    try:
        found = subprocess.run(
            command,
            cwd=top,
            env=environment(str(top)) | SETTINGS,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError:
        return False
    except subprocess.TimeoutExpired:
        return True
    return bool(found.returncode or found.stdout)
