"""Querying the heads of remotes: real repositories by file URL and HTTP, and a server that never answers."""

import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from docindex_dagster.core.errors import SourceError
from docindex_dagster.sources.mirror import checked_out, remote_heads
from docindex_dagster.sources.model import Remote
from tests.sources.conftest import Tree
from tests.sources.remotes import Followed, serving

PATIENCE_S = 30


@pytest.fixture
def upstream(repository: Tree) -> Tree:
    """A repository with two commits on `main`; `old` and the tags `light` and `heavy` point to the first."""
    repository.commit("first")
    repository.git("branch", "old")
    repository.git("tag", "light")
    repository.git("tag", "--annotate", "--message", "the first", "heavy")
    repository.commit("second")
    return repository


@pytest.fixture
def bare(upstream: Tree, tmp_path: Path) -> Tree:
    upstream.git("clone", "--quiet", "--bare", str(upstream.root), str(tmp_path / "bare.git"))
    return Tree(tmp_path / "bare.git", "git")


@pytest.fixture
def remote(bare, tmp_path):
    def at(ref: str | None = None, url: str = bare.root.as_uri()) -> Remote:
        return Remote(url, ref, tmp_path / "home" / "clone.git")

    return at


@dataclass(frozen=True, slots=True)
class Mute:
    """A server that accepts connections and never answers."""

    listener: socket.socket

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.listener.getsockname()[1]}/mute"

    def is_left_alone(self) -> bool:
        """Return whether the first client has disconnected."""
        connection, _ = self.listener.accept()
        with connection:
            connection.settimeout(5)
            while connection.recv(1 << 16):
                pass
        return True


@pytest.fixture
def mute() -> Iterator[Mute]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield Mute(listener)


def head(remote: Remote, timeout_s: float) -> str | None:
    answer = remote_heads({"one": remote}, timeout_s)["one"]
    if isinstance(answer, SourceError):
        raise answer
    return answer


def followed_head(followed: Followed) -> str | None:
    assert followed.source.remote is not None
    return head(followed.source.remote, PATIENCE_S)


def test_it_is_the_commit_that_the_remotes_head_leads_to(remote, bare):
    assert head(remote(), PATIENCE_S) == bare.git("rev-parse", "HEAD")
    bare.git("symbolic-ref", "HEAD", "refs/heads/old")
    assert head(remote(), PATIENCE_S) == bare.git("rev-parse", "old")


@pytest.mark.parametrize("ref", ["old", "light", "heavy"])
def test_a_branch_or_tag_is_the_commit_that_it_stands_for(remote, bare, ref):
    assert head(remote(ref), PATIENCE_S) == bare.git("rev-parse", "main~1")


def test_a_branch_goes_before_a_tag_of_its_name(remote, bare):
    bare.git("tag", "old", "main")
    assert head(remote("old"), PATIENCE_S) == bare.git("rev-parse", "refs/heads/old")


def test_a_name_is_no_part_of_another(remote, bare):
    bare.git("branch", "team/refs/heads/topic", "main")
    bare.git("branch", "topic/HEAD", "main")
    assert head(remote("topic"), PATIENCE_S) is None
    assert head(remote("top*"), PATIENCE_S) is None


def test_there_is_none_without_such_a_branch_or_any_commit(remote, tmp_path):
    assert head(remote("gone"), PATIENCE_S) is None
    Tree(tmp_path).git("init", "--quiet", "--bare", str(tmp_path / "empty.git"))
    assert head(remote(url=(tmp_path / "empty.git").as_uri()), PATIENCE_S) is None


@pytest.mark.parametrize("url", ["file:///nowhere", "https://localhost:1/x"])
def test_nobody_is_asked_about_a_commit_that_is_named_by_its_id(remote, bare, url):
    commit = bare.git("rev-parse", "old")
    assert head(remote(commit, url), PATIENCE_S) == commit


def test_an_abbreviated_id_is_what_the_clone_knows_it_for(upstream, tmp_path):
    commit = upstream.git("rev-parse", "old")
    followed = Followed(tmp_path / "home", str(upstream.root), commit[:10])
    assert followed_head(followed) is None  # it could be a branch name
    followed.update()
    upstream.root.rename(tmp_path / "moved")
    assert followed_head(followed) == commit == checked_out(followed.source)


def test_a_branch_that_looks_like_an_id_moves(upstream, tmp_path):
    upstream.git("branch", "20240229", "old")
    followed = Followed(tmp_path / "home", str(upstream.root), "20240229")
    followed.update()
    upstream.git("branch", "--force", "20240229", "main")
    assert followed_head(followed) == upstream.git("rev-parse", "main")


def test_it_differs_from_what_is_checked_out_until_the_checkout_is_brought_up(upstream, tmp_path):
    followed = Followed(tmp_path / "home", str(upstream.root))
    assert checked_out(followed.source) is None
    followed.update()
    assert checked_out(followed.source) == followed_head(followed)
    upstream.commit("third")
    assert checked_out(followed.source) != followed_head(followed)
    followed.update()
    assert checked_out(followed.source) == followed_head(followed)


def test_a_remote_that_cannot_be_reached_is_an_error_of_one_line_without_secrets(remote):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(SourceError, match=r"^cannot check http://127\.0\.0\.1:.*Failed to connect") as caught:
        head(remote(url=f"http://ada:s3cret@127.0.0.1:{port}/x"), PATIENCE_S)
    assert "s3cret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_remote_that_does_not_answer_is_given_up_and_no_program_goes_on_asking(remote, mute):
    started = time.monotonic()
    with pytest.raises(SourceError, match=r"cannot check http://.* timed out after 0\.5 seconds"):
        head(remote(url=mute.url), 0.5)
    assert time.monotonic() - started < 5
    assert mute.is_left_alone()


def test_several_are_asked_concurrently_and_one_that_fails_fails_alone(remote, bare, mute):
    asked = {f"mute {number}": remote(url=f"{mute.url}{number}") for number in range(4)}
    asked |= {"main": remote(), "old": remote("old"), "gone": remote("gone"), "id": remote("a" * 40, mute.url)}
    started = time.monotonic()
    found = remote_heads(asked, 2)
    assert time.monotonic() - started < 6
    assert list(found) == list(asked)
    assert all(isinstance(found.pop(f"mute {number}"), SourceError) for number in range(4))
    main, old = bare.git("rev-parse", "main", "old").split()
    assert found == {"main": main, "old": old, "gone": None, "id": "a" * 40}


def test_a_repository_of_which_several_branches_are_followed_is_asked_once(remote, bare, tmp_path):
    with serving(tmp_path) as server:
        url = f"{server.url}/bare.git"
        head(remote(url=url), PATIENCE_S)
        once, server.requests = server.requests, []
        found = remote_heads(
            {"main": remote(url=url), "old": remote("old", url), "tag": remote("heavy", url)}, PATIENCE_S
        )
    assert server.requests == once
    assert set(found.values()) == set(bare.git("rev-parse", "main", "old").split())
