"""The git folders of a work tree: what they borrow from elsewhere, what their index tracks, and how git reads them."""

import os
import stat
import subprocess
import time
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from pathlib import Path

from docindex_dagster.core.errors import SourceError
from docindex_dagster.core.files import real_path, stamp

# A repository's own settings must not run programs, read files elsewhere, nor change what is printed.
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
    # An object that is missing is not fetched: the repository's settings say from where, and by which program.
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_NO_LAZY_FETCH": "1",
    # The history is what was committed, whatever this clone puts in its place.
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": "/dev/null",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
}
_KEPT = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH")
_ANSWER_S = 10  # for git to answer; a FIFO in the place of its index never does
_LONGEST_TEXT = 1 << 16  # bytes; a path
_MAX_AGE_S = 10.0  # of a look at a repository, which takes some milliseconds for 10,000 branches
_UNSEARCHED = ("logs", "objects/pack")  # as loose objects are: who links to one of those has to know its hash
_OF_GIT = ("HEAD", "objects")  # one of them is in each git folder
_looked_at: dict[Path, tuple[float, list[Path]]] = {}


def environment(folder: str, kept: Collection[str] = _KEPT) -> dict[str, str]:
    """Return an environment in which git sees this folder alone, whatever hook or shell docindex is run from."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in kept}
    return inherited | {"LC_ALL": "C", "GIT_CEILING_DIRECTORIES": str(Path(folder).resolve().parent)}


def git_folder(root: Path) -> Path:
    """Return the folder that the `.git` of a work tree is or leads to.

    Raises:
        SourceError: The file is longer than a path.
    """
    entry = root / ".git"
    return root / text_of(entry).removeprefix("gitdir: ") if entry.is_file() else entry


def common_folder(root: Path) -> Path:
    """Return the folder that all work trees of a repository have in common, without links.

    Raises:
        SourceError: A file that names it is longer than a path.
    """
    folder = git_folder(root)
    return real_path(folder / text_of(folder / "commondir"))


def earlier_work_tree(tree: Path, within: Path, is_entered: Callable[[Path], bool]) -> Path | None:
    """Return the work tree in a folder that comes before a further one of the same repository, if there is one.

    The main work tree is the first. Only work trees that a repository itself lists count.

    Args:
        tree: the root of a work tree.
        within: the folder in which the other one has to lie.
        is_entered: whether a path relative to it is one that counts.
    """
    if not (tree / ".git").is_file():
        return None
    try:
        root, folder, common = tree.resolve(), within.resolve(), common_folder(tree)
        further = _linked_work_trees(common, stamp(common / "worktrees"))
    except (OSError, ValueError, RuntimeError, SourceError):  # it leads to a cycle, or is not a path
        return None
    if root not in further:
        return None
    trees = [*([common.parent] if common.name == ".git" else ()), *further]
    others = (other.relative_to(folder) for other in trees[: trees.index(root)] if other.is_relative_to(folder))
    return next((other for other in others if os.path.lexists(folder / other / ".git") and is_entered(other)), None)


@lru_cache(maxsize=64)
def _linked_work_trees(common: Path, _: tuple[int, ...] | None) -> tuple[Path, ...]:
    """Return the roots of the further work trees of a repository, in order; kept until the folder's stamp changes."""
    if not (common / "worktrees").is_dir():
        return ()
    return tuple(sorted(Path(text_of(one / "gitdir")).parent.resolve() for one in (common / "worktrees").iterdir()))


def text_of(file: Path) -> str:
    """Return the text of one of git's small files; empty where there is none. Never blocks on a FIFO.

    Raises:
        SourceError: It is longer than a path, of which git would read all, or holds a NUL byte, at which git stops.
    """
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return ""
    with os.fdopen(descriptor, "rb") as opened:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return ""
        # Git takes white space for a part of the path.
        text = opened.read(_LONGEST_TEXT + 1)
    if len(text) > _LONGEST_TEXT:
        raise SourceError(f"{file} is longer than a path")
    if b"\0" in text:
        raise SourceError(f"{file} holds a NUL byte, which no path does")
    return os.fsdecode(text).rstrip("\r\n")


def borrowed(root: Path) -> list[Path]:
    """List what a repository in a folder takes from elsewhere: links in its git folders, and lists of other stores.

    Git makes no links there, and one that stays inside may lead to a folder with further ones. The git folders may lie
    outside of `root`, where an attacker may have prepared them as well; `root` may be a bare repository.

    Raises:
        SourceError: One of its files is longer than a path, or one of its folders cannot be listed.
    """
    now = time.monotonic()
    at, found = _looked_at.get(root, (-_MAX_AGE_S, []))
    if now - at >= _MAX_AGE_S:
        found = list(_borrowed_now(root))
        _looked_at[root] = (now, found)
    return found


def _borrowed_now(root: Path) -> Iterator[Path]:
    entry = root / ".git"
    if entry.is_symlink():
        yield entry
    is_bare = not entry.exists() and os.path.lexists(root / "HEAD")
    if is_bare and os.path.lexists(common := root / "commondir"):
        yield common
    if not (is_bare or entry.exists()) or (is_bare and not os.path.lexists(root / "refs")):
        return
    for top in {root} if is_bare else {real_path(git_folder(root)), common_folder(root)}:
        if not any(os.path.lexists(top / name) for name in _OF_GIT):
            continue
        if os.path.lexists(alternates := top / "objects" / "info" / "alternates"):
            yield alternates
        yield from _links_in(top)


def _links_in(top: Path) -> Iterator[Path]:
    folders = [str(top)]
    unsearched = {f"{top}/{name}" for name in _UNSEARCHED}
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(folder) as entries:
                found = list(entries)
        except PermissionError as error:
            raise SourceError(f"cannot list {folder}, where links may lead elsewhere; make it readable") from error
        except OSError:
            continue
        # The folders of loose objects are too many. Of git-lfs there are two levels, and it writes into both.
        is_objects = folder == f"{top}/objects" or folder[: -len("/ab")] == f"{top}/lfs/objects"
        for entry in found:
            if entry.is_symlink():
                yield Path(entry.path)
            elif entry.is_dir() and entry.path not in unsearched and not (is_objects and len(entry.name) == len("ab")):
                folders.append(entry.path)


def is_tracked(folder: Path) -> bool:
    """Whether a work tree around a folder tracks it, a link in its place, or files below it, or git cannot tell.

    Every work tree counts: a pull of an outer one writes into a nested repository that it takes for plain files.
    """
    place = folder.parent.resolve() / folder.name
    try:
        indexes = [(top, stamp(git_folder(top) / "index")) for top in place.parents if (top / ".git").exists()]
    except SourceError:
        return True
    return any(_is_tracked(top, str(place.relative_to(top)), index) for top, index in indexes if index is not None)


@lru_cache(maxsize=16)
def _is_tracked(top: Path, name: str, _index: tuple[int, ...]) -> bool:
    # Named like this, git reads the repository of another user as well, such as root's around all of a disk.
    here = ("--git-dir=.git", "--work-tree=.")
    command = ("git", *OPTIONS, *here, "ls-files", "-z", "--", f":(top,literal,icase){name}")
    try:
        found = subprocess.run(
            command,
            cwd=top,
            env=environment(str(top)) | SETTINGS,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_ANSWER_S,
            check=False,
        )
    except FileNotFoundError:
        return False
    except subprocess.TimeoutExpired:
        return True
    return bool(found.returncode or found.stdout)
