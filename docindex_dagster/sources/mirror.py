"""The bare clone of a repository: making it, fetching what is new, and finding what is followed in it."""

import re
import shutil
import tempfile
from pathlib import Path

from docindex_dagster.core.errors import SourceError
from docindex_dagster.sources import transfer
from docindex_dagster.sources.disposal import dispose
from docindex_dagster.sources.model import Remote

_HEAD = "refs/docindex/HEAD"  # where the remote's own HEAD leads
_FETCH = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance")
_EVERYTHING = ("--force", "--prune", "--update-head-ok", "--update-shallow", "origin")
_REFS = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
_NO_HEAD = "couldn't find remote ref HEAD"
_UNFINISHED = ".new"
_COMMIT_ID = re.compile(r"[0-9a-f]{7,64}")
_FULL_LENGTHS = {40, 64}


def make(remote: Remote) -> None:
    """Clone, in place of what is there: with links to the objects of a local repository, else without file contents.

    Git fetches contents when they are first checked out. A server that cannot leave them out sends everything.

    Raises:
        SourceError: The remote cannot be cloned.
    """
    folder = remote.repository.parent
    folder.mkdir(parents=True, exist_ok=True)
    # A git whose docindex was killed may still write to the one that it began.
    new = Path(tempfile.mkdtemp(_UNFINISHED, f"{remote.repository.name}.", folder))
    how = "--local" if remote.is_local else "--filter=blob:none"
    arguments = ("clone", "--quiet", "--bare", "--template=", how, "--", remote.url, new.name)
    try:
        transfer.run(folder, *arguments, purpose=f"clone {remote.url}", timeout_s=transfer.limit_s(remote.url))
    except SourceError:
        dispose(new)
        raise
    if (new / "objects/info/alternates").exists():  # borrowed objects go when their owner does
        transfer.run(new, "repack", "-a", "-d", "--quiet", purpose=f"clone {remote.url}")
        dispose(new / "objects/info/alternates")
    dispose(remote.repository)
    new.rename(remote.repository)


def dispose_unfinished(repository: Path) -> None:
    """Remove clones that were begun and never took their place."""
    for left in repository.parent.glob(f"*{_UNFINISHED}"):
        if unfinished(left) == repository:
            shutil.rmtree(left, ignore_errors=True)


def unfinished(folder: Path) -> Path | None:
    """The repository in whose place a clone was to go that is being made, or never was made; None for other folders."""
    name, _, _ = folder.name.removesuffix(_UNFINISHED).rpartition(".")
    return folder.with_name(name) if folder.name.endswith(_UNFINISHED) and name else None


def fetch(remote: Remote) -> None:
    """Make the branches and tags of the clone those of the remote, whatever happened to them there.

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
    """Return the id of the commit that is followed; None where the clone has no such branch, tag or commit."""
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


def pinned(remote: Remote) -> str | None:
    """Return the id of the commit that is followed if it is named by its id, so that it cannot move; None for others.

    An abbreviated id is one that the clone knows; before there is a clone it may as well be a branch.
    """
    if remote.ref is None or not _COMMIT_ID.fullmatch(remote.ref):
        return None
    if len(remote.ref) in _FULL_LENGTHS:
        return remote.ref
    commit = resolve(remote) if remote.repository.is_dir() else None
    return commit if commit and commit.startswith(remote.ref) else None


def has_branches(repository: Path) -> bool:
    """Whether the remote has any branch."""
    return bool(transfer.attempt(repository, "for-each-ref", "--count=1", "refs/heads"))


def fetch_contents(repository: Path, commit: str, history: int) -> None:
    """Fetch at once what the newest commits changed, which git would else ask for one file after another.

    It is a help, not a need: what a server does not give then is left out.
    """
    if not any((repository / "objects/pack").glob("*.promisor")):
        return
    arguments = ("rev-list", "--objects", "--no-object-names", "--missing=print", f"--max-count={history + 1}", commit)
    listed = transfer.attempt(repository, *arguments) or b""
    missing = [line[1:].decode() for line in listed.split(b"\n") if line.startswith(b"?")]
    if missing:
        command = ("-c", "fetch.negotiationAlgorithm=noop", *_FETCH, "--filter=blob:none", "--stdin", "origin")
        transfer.attempt(repository, *command, transports=transfer.EVERYWHERE, lines=missing)


def answers(remote: Remote) -> bool:
    """Whether the remote can be reached now, with no clone in between."""
    arguments = ("ls-remote", "--quiet", "--", remote.url, "HEAD")
    everywhere, limit_s = transfer.EVERYWHERE, transfer.limit_s(remote.url)
    with tempfile.TemporaryDirectory() as folder:  # where no repository's settings count
        return transfer.attempt(Path(folder), *arguments, transports=everywhere, timeout_s=limit_s) is not None


def tidy(repository: Path) -> None:
    """Pack the objects of a clone where git thinks that it is time to."""
    transfer.attempt(repository, "maintenance", "run", "--auto", "--quiet", transports=transfer.EVERYWHERE)


def _commit(repository: Path, revision: str) -> str | None:
    arguments = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    found = transfer.attempt(repository, *arguments)
    return found.decode().strip() if found else None
