"""Where the remotes of followed repositories stand now, asked without fetching anything."""

import os
import tempfile
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from docindex_dagster.core.errors import SourceError
from docindex_dagster.core.urls import scrub
from docindex_dagster.sources import git, mirror, transfer
from docindex_dagster.sources.model import Remote, Source


def head(remote: Remote, timeout_s: float) -> str | None:
    """Return the id of the commit that is followed, as the remote has it now; None where it has no such branch or tag.

    A commit that is followed by its id never moves: no remote is asked.

    Raises:
        SourceError: The remote cannot be reached, or took longer than the time-out.
    """
    return mirror.pinned(remote) or _followed(_ask(remote.url, [remote.ref], timeout_s), remote.ref)


def heads(remotes: Mapping[str, Remote], timeout_s: float, workers: int = 8) -> dict[str, str | SourceError | None]:
    """Return what `head` says of each remote, or the error that it raises. Several are asked at once, each URL once."""
    pinned = {key: mirror.pinned(remote) for key, remote in remotes.items()}
    refs: dict[str, list[str | None]] = {}
    for key, remote in remotes.items():
        if pinned[key] is None:
            refs.setdefault(remote.url, []).append(remote.ref)
    with ThreadPoolExecutor(workers) as pool:
        answers = {url: pool.submit(_ask, url, asked, timeout_s) for url, asked in refs.items()}
    return {key: pinned[key] or _answer(answers[remote.url], remote.ref) for key, remote in remotes.items()}


def checked_out(source: Source) -> str | None:
    """Return the id of the commit that the checkout of a followed repository is at; None where there is none yet.

    Raises:
        SourceError: git is not installed.
    """
    if not (source.path / ".git").exists():
        return None
    found = git.attempt(os.fsencode(source.path), "rev-parse", "--verify", "--quiet", "HEAD")
    return found.decode().strip() if found else None


def _answer(asked: Future[dict[str, str]], ref: str | None) -> str | SourceError | None:
    try:
        return _followed(asked.result(), ref)
    except SourceError as error:
        return error


def _ask(url: str, refs: Iterable[str | None], timeout_s: float) -> dict[str, str]:
    """Return the ids that a remote has under the names of what is followed."""
    names = dict.fromkeys(name for ref in refs for name in _names(ref))
    with tempfile.TemporaryDirectory() as folder:  # where no repository's settings count
        command = ("ls-remote", "--quiet", "--", url, *names)
        output = transfer.run(Path(folder), *command, purpose=f"ask {scrub(url)} for news", timeout_s=timeout_s)
    lines = (line.split("\t", 1) for line in output.decode("utf-8", "replace").splitlines())
    return {name: identity for identity, name in lines}


def _followed(ids: Mapping[str, str], ref: str | None) -> str | None:
    return next((ids[name] for name in _names(ref) if name in ids), None)


def _names(ref: str | None) -> tuple[str, ...]:
    """What may be followed under a name, the first that is there: a branch, what a tag stands for, a plain tag."""
    return ("HEAD",) if ref is None else (f"refs/heads/{ref}", f"refs/tags/{ref}^{{}}", f"refs/tags/{ref}")
