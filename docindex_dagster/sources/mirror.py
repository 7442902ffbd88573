"""The bare clone of a repository: create, fetch, resolve the followed ref, and remove.

`remote_heads` asks remotes for the current commits of followed refs without fetching anything.
"""

import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from docindex_dagster.core.errors import SourceError
from docindex_dagster.core.urls import scrub
from docindex_dagster.sources import git, transfer
from docindex_dagster.sources.model import Remote, Source

_HEAD = "refs/docindex/HEAD"  # a copy of the remote's HEAD
_FETCH = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance")
_EVERYTHING = ("--force", "--prune", "--update-head-ok", "--update-shallow", "origin")
_REFS = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
_NO_HEAD = "couldn't find remote ref HEAD"
_UNFINISHED = ".new"
_COMMIT_ID = re.compile(r"[0-9a-f]{7,64}")
_FULL_LENGTHS = {40, 64}
_WORKERS = 8  # remotes queried concurrently
_PATIENCE_S = 600  # longer than git holds a lock for a write
_PROCESSES = Path("/proc")


def remote_heads(remotes: Mapping[str, Remote], timeout_s: float) -> dict[str, str | SourceError | None]:
    """Return the current commit ids of the followed refs, querying several remotes concurrently.

    The value is None for a branch or tag that the remote does not have. It is an error for a remote that is unreachable
    or exceeds the timeout. A ref that is a commit id never moves, so its remote is not queried.
    """
    ids = {key: _pinned(remote) for key, remote in remotes.items()}
    refs: dict[str, list[str | None]] = {}
    for key, remote in remotes.items():
        if ids[key] is None:
            refs.setdefault(remote.url, []).append(remote.ref)
    with ThreadPoolExecutor(_WORKERS) as pool:
        answers = {url: pool.submit(_query, url, names, timeout_s) for url, names in refs.items()}
    return {key: ids[key] or _result(answers[remote.url], remote.ref) for key, remote in remotes.items()}


def checked_out(source: Source) -> str | None:
    """Return the id of the commit that a followed repository's checkout is at; None if there is no checkout yet.

    Raises:
        SourceError: git is not installed.
    """
    if not (source.path / ".git").exists():
        return None
    found = git.attempt(os.fsencode(source.path), "rev-parse", "--verify", "--quiet", "HEAD")
    return found.decode().strip() if found else None


def _result(ids: Future[dict[str, str]], ref: str | None) -> str | SourceError | None:
    try:
        return _followed(ids.result(), ref)
    except SourceError as error:
        return error


def _query(url: str, refs: Iterable[str | None], timeout_s: float) -> dict[str, str]:
    """Return the ids that a remote has for the followed refs, by ref name."""
    names = dict.fromkeys(name for ref in refs for name in _names_of(ref))
    with tempfile.TemporaryDirectory() as folder:  # outside any repository, so that no local settings apply
        command = ("ls-remote", "--quiet", "--", url, *names)
        output = transfer.run(Path(folder), *command, purpose=f"check {scrub(url)} for updates", timeout_s=timeout_s)
    lines = (line.split("\t", 1) for line in output.decode("utf-8", "replace").splitlines())
    return {name: identity for identity, name in lines}


def _followed(ids: Mapping[str, str], ref: str | None) -> str | None:
    return next((ids[name] for name in _names_of(ref) if name in ids), None)


def _names_of(ref: str | None) -> tuple[str, ...]:
    """Return the full names that a ref may stand for, in order of preference: branch, peeled tag, plain tag."""
    return ("HEAD",) if ref is None else (f"refs/heads/{ref}", f"refs/tags/{ref}^{{}}", f"refs/tags/{ref}")


def clone(remote: Remote) -> None:
    """Clone the remote, replacing any existing clone.

    Objects of a local repository are hard-linked; other remotes are cloned without file contents, which git fetches on
    the first checkout. A server without support for partial clones sends everything.

    Raises:
        SourceError: The remote cannot be cloned.
    """
    folder = remote.repository.parent
    folder.mkdir(parents=True, exist_ok=True)
    # A git process whose docindex was killed may still write to its unfinished clone.
    new = Path(tempfile.mkdtemp(_UNFINISHED, f"{remote.repository.name}.", folder))
    mode = "--local" if remote.is_local else "--filter=blob:none"
    arguments = ("clone", "--quiet", "--bare", "--template=", mode, "--", remote.url, new.name)
    try:
        transfer.run(folder, *arguments, purpose=f"clone {remote.url}", timeout_s=transfer.limit_s(remote.url))
    except SourceError:
        remove_path(new)
        raise
    if (new / "objects/info/alternates").exists():  # borrowed objects disappear with their owner
        transfer.run(new, "repack", "-a", "-d", "--quiet", purpose=f"clone {remote.url}")
        remove_path(new / "objects/info/alternates")
    remove_path(remote.repository)
    new.rename(remote.repository)


def remove_unfinished(repository: Path) -> None:
    """Remove clones that were started but never finished."""
    for folder in repository.parent.glob(f"*{_UNFINISHED}"):
        if unfinished(folder) == repository:
            shutil.rmtree(folder, ignore_errors=True)


def unfinished(folder: Path) -> Path | None:
    """Return the repository that an unfinished clone was to become; None for other folders."""
    name, _, _ = folder.name.removesuffix(_UNFINISHED).rpartition(".")
    return folder.with_name(name) if folder.name.endswith(_UNFINISHED) and name else None


def fetch(remote: Remote) -> None:
    """Make the branches and tags of the clone match the remote, whatever happened to them there.

    Raises:
        SourceError: The remote cannot be reached, or the clone is damaged.
    """
    known = transfer.attempt(remote.repository, "config", "--get", "remote.origin.url")
    if known is None or known.decode("utf-8", "replace").rstrip("\n") != remote.url:
        arguments = ("config", "--replace-all", "remote.origin.url", remote.url)
        transfer.run(remote.repository, *arguments, purpose=f"follow {remote.url}")
    purpose, limit_s = f"fetch {remote.url}", transfer.limit_s(remote.url)
    command = (*_FETCH, *_EVERYTHING, *_REFS)
    try:
        transfer.run(remote.repository, *command, f"+HEAD:{_HEAD}", purpose=purpose, timeout_s=limit_s)
    except SourceError as error:
        if _NO_HEAD not in str(error):
            raise
        transfer.run(remote.repository, *command, purpose=purpose, timeout_s=limit_s)
        transfer.run(remote.repository, "update-ref", "-d", _HEAD, purpose=purpose)


def resolve(remote: Remote) -> str | None:
    """Return the id of the followed commit; None if the clone has no such branch, tag or commit."""
    if remote.ref is None:
        return _commit(remote.repository, _HEAD)
    for name in (f"refs/heads/{remote.ref}", f"refs/tags/{remote.ref}"):
        if found := _commit(remote.repository, name):
            return found
    if not _COMMIT_ID.fullmatch(remote.ref):
        return None
    if len(remote.ref) in _FULL_LENGTHS and _commit(remote.repository, remote.ref) is None:
        transfer.attempt(remote.repository, *_FETCH, "origin", remote.ref, transports=transfer.EVERYWHERE)
    return _commit(remote.repository, remote.ref)


def _pinned(remote: Remote) -> str | None:
    """Return the id of the followed commit if the ref is a commit id, which cannot move; None for other refs.

    An abbreviated id must be known to the clone; before there is a clone, it could also be a branch name.
    """
    if remote.ref is None or not _COMMIT_ID.fullmatch(remote.ref):
        return None
    if len(remote.ref) in _FULL_LENGTHS:
        return remote.ref
    commit = resolve(remote) if remote.repository.is_dir() else None
    return commit if commit and commit.startswith(remote.ref) else None


def has_branches(repository: Path) -> bool:
    """Return whether the remote has any branch."""
    return bool(transfer.attempt(repository, "for-each-ref", "--count=1", "refs/heads"))


def fetch_contents(repository: Path, commit: str, history: int) -> None:
    """Fetch all contents that the newest commits changed in one request; git would request them file by file.

    This is only an optimization: contents that a server does not send are skipped.
    """
    if not any((repository / "objects/pack").glob("*.promisor")):
        return
    arguments = ("rev-list", "--objects", "--no-object-names", "--missing=print", f"--max-count={history + 1}", commit)
    listed = transfer.attempt(repository, *arguments) or b""
    missing = [line[1:].decode() for line in listed.split(b"\n") if line.startswith(b"?")]
    if missing:
        command = ("-c", "fetch.negotiationAlgorithm=noop", *_FETCH, "--filter=blob:none", "--stdin", "origin")
        transfer.attempt(repository, *command, transports=transfer.EVERYWHERE, lines=missing)


def is_reachable(remote: Remote) -> bool:
    """Return whether the remote is reachable now, without using a clone."""
    arguments = ("ls-remote", "--quiet", "--", remote.url, "HEAD")
    everywhere, limit_s = transfer.EVERYWHERE, transfer.limit_s(remote.url)
    with tempfile.TemporaryDirectory() as folder:  # outside any repository, so that no local settings apply
        return transfer.attempt(Path(folder), *arguments, transports=everywhere, timeout_s=limit_s) is not None


def run_maintenance(repository: Path) -> None:
    """Let git pack the objects of a clone if it considers that worthwhile."""
    transfer.attempt(repository, "maintenance", "run", "--auto", "--quiet", transports=transfer.EVERYWHERE)


def _commit(repository: Path, revision: str) -> str | None:
    arguments = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    found = transfer.attempt(repository, *arguments)
    return found.decode().strip() if found else None


def remove_path(path: Path) -> None:
    """Remove a folder, file or symlink if it exists. The target of a symlink is left alone."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def remove_locks(repository: Path, checkout: Path) -> None:
    """Remove the lock files of a clone and its checkouts once no git process that outlived docindex works there.

    The caller holds the lock that excludes other docindex processes.
    """
    locks = list(_locks(repository))
    deadline = time.monotonic() + _PATIENCE_S
    while locks and _git_works_in((repository, checkout)) and time.monotonic() < deadline:
        time.sleep(0.1)
    for lock in locks:
        lock.unlink(missing_ok=True)


def _locks(repository: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(repository):
        if "objects" in folders:
            folders.remove("objects")
        yield from (Path(folder, name) for name in files if name.endswith(".lock"))


def _git_works_in(folders: tuple[Path, ...]) -> bool:
    """Return whether a git process has its working directory in one of the folders, as far as the system reports it."""
    roots = [folder.resolve() for folder in folders]
    return any(any(folder.is_relative_to(root) for root in roots) for folder in _folders_of_git())


def _folders_of_git() -> Iterator[Path]:
    for process in _PROCESSES.glob("[0-9]*"):
        try:
            if (process / "comm").read_text(encoding="utf-8", errors="replace").startswith("git"):
                yield (process / "cwd").readlink()
        except OSError:  # the process has ended or belongs to another user
            continue
