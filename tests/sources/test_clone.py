"""Following remote repositories: whatever happens to a branch, the checkout matches the remote."""

import stat
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from docindex_dagster.core.errors import SourceError
from docindex_dagster.sources import clone
from docindex_dagster.sources.changes import fingerprint
from docindex_dagster.sources.commits import read_commits
from docindex_dagster.sources.discovery import discover
from tests.sources.conftest import Tree, rows
from tests.sources.remotes import Followed, serving

MAIN = "refs/heads/main"


@pytest.fixture
def upstream(repository: Tree) -> Tree:
    """A repository with two commits on `main`, a branch and a tag, whose server supports partial clones."""
    repository.git("config", "uploadpack.allowFilter", "true")
    repository.write("a.md", "one\n")
    repository.commit("first")
    repository.git("tag", "v1")
    repository.git("branch", "feature/x")
    repository.write("a.md", "second\n")
    repository.write("docs/b.md", "b\n")
    repository.commit("second")
    return repository


@pytest.fixture(params=["file", "path", "http", "ssh"])
def followed(request, upstream, tmp_path, monkeypatch) -> Iterator[Followed]:
    """The upstream repository, reached in each supported way."""
    home, root = tmp_path / "home", upstream.root
    if request.param == "http":
        with serving(tmp_path) as server:
            yield Followed(home, f"{server.url}/repository")
        return
    if request.param == "ssh":
        local = tmp_path / "local-ssh"  # runs ssh's remote command locally
        local.write_text('#!/bin/sh\nfor last; do :; done\nexec sh -c "$last"\n')
        local.chmod(0o755)
        monkeypatch.setenv("GIT_SSH_COMMAND", str(local))
        monkeypatch.setenv("GIT_SSH_VARIANT", "ssh")
    yield Followed(
        home, {"file": root.as_uri(), "path": str(root), "ssh": f"ssh://ada@example.org{root}"}[request.param]
    )


def test_a_clone_holds_the_files_of_the_remotes_own_branch(followed, upstream):
    assert followed.update() == {"a.md": "second\n", "docs/b.md": "b\n"}
    assert followed.head == upstream.git("rev-parse", MAIN)


def test_new_commits_arrive_and_files_that_stay_are_not_written(followed, upstream):
    followed.update()
    before = (followed.source.path / "docs/b.md").stat().st_mtime_ns
    upstream.write("a.md", "the third\n")
    upstream.commit()

    assert followed.update() == {"a.md": "the third\n", "docs/b.md": "b\n"}
    assert (followed.source.path / "docs/b.md").stat().st_mtime_ns == before


def test_branches_tags_and_commits_are_followed_side_by_side_from_one_clone(followed, upstream):
    first = upstream.git("rev-parse", "v1")

    for ref in ("feature/x", "v1", first, first[:10]):
        assert followed.at(ref).update() == {"a.md": "one\n"}
    assert followed.update()["a.md"] == "second\n"

    assert [place.name for place in (followed.home / "repositories").iterdir()] == ["up.git"]


def test_a_branch_that_was_pushed_by_force_is_followed(followed, upstream):
    followed.update()
    upstream.write("a.md", "rewritten\n")
    upstream.git("commit", "--quiet", "--all", "--amend", "--message", "other")

    assert followed.update()["a.md"] == "rewritten\n"


def test_a_moved_tag_is_followed(followed, upstream):
    followed.at("v1").update()
    upstream.git("tag", "--force", "--annotate", "--message", "moved", "v1", MAIN)

    assert followed.at("v1").update()["a.md"] == "second\n"


def test_another_default_branch_is_followed(followed, upstream):
    followed.update()
    upstream.git("switch", "--quiet", "--create", "trunk")
    upstream.git("branch", "--quiet", "--delete", "--force", "main")
    upstream.write("a.md", "trunk\n")
    upstream.commit()

    assert followed.update()["a.md"] == "trunk\n"


def test_a_branch_that_is_gone_is_an_error_that_says_so_and_the_files_stay(followed, upstream):
    gone = followed.at("feature/x")
    gone.update()
    upstream.git("branch", "--delete", "--force", "feature/x")

    with pytest.raises(SourceError, match=r"has no branch, tag or commit 'feature/x'.*git/up@feature/x"):
        gone.update()

    assert gone.files == {"a.md": "one\n"}


def test_a_branch_may_take_the_place_of_a_folder_of_branches(followed, upstream):
    followed.at("feature/x").update()
    upstream.git("branch", "--delete", "--force", "feature/x")
    upstream.git("branch", "feature", MAIN)

    assert followed.at("feature").update()["a.md"] == "second\n"


def test_a_commit_that_no_branch_leads_to_is_fetched_by_its_id(followed, upstream):
    upstream.git("switch", "--quiet", "--detach")
    upstream.write("a.md", "loose\n")
    loose = upstream.commit()
    upstream.git("switch", "--quiet", "main")

    assert followed.at(loose).update()["a.md"] == "loose\n"


def test_an_empty_repository_has_no_files_until_its_first_commit(tmp_path, repository):
    followed = Followed(tmp_path / "home", repository.root.as_uri())

    assert followed.update() == {}
    assert discover(followed.source).num_rows == 0
    repository.write("a.md")
    repository.commit()
    assert set(followed.update()) == {"a.md"}


def test_a_head_that_leads_nowhere_is_an_error_that_says_what_to_do(tmp_path, upstream):
    upstream.git("symbolic-ref", "HEAD", "refs/heads/nowhere")

    with pytest.raises(SourceError, match=r"points to no commit; set the branch: branch ="):
        Followed(tmp_path / "home", upstream.root.as_uri()).update()


def test_another_url_is_followed_with_the_same_clone(tmp_path, upstream):
    followed = Followed(tmp_path / "home", upstream.root.as_uri())
    followed.update()
    upstream.root.rename(tmp_path / "moved")

    moved = Followed(followed.home, (tmp_path / "moved").as_uri())

    assert moved.update()["a.md"] == "second\n"
    assert moved.reports == []


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/up", "file:///nowhere/up"])
def test_a_remote_that_cannot_be_reached_is_one_line_and_changes_nothing(tmp_path, upstream, url):
    followed = Followed(tmp_path / "home", upstream.root.as_uri())
    files = followed.update()

    with pytest.raises(SourceError, match="cannot fetch") as caught:
        Followed(followed.home, url).update()

    assert len(str(caught.value).splitlines()) == 1
    assert followed.files == files


def test_a_remote_that_lost_objects_is_not_cloned_again_and_again(tmp_path, upstream):
    followed = Followed(tmp_path / "home", upstream.root.as_uri())
    blob = upstream.git("rev-parse", "HEAD:a.md")
    (upstream.root / ".git/objects" / blob[:2] / blob[2:]).unlink()

    with pytest.raises(SourceError, match="not our ref"):
        followed.update()

    assert followed.reports == []


def test_a_clone_of_a_path_borrows_nothing(tmp_path, upstream):
    """This includes a repository that itself borrows objects."""
    subprocess.run(["git", "clone", "--quiet", "--shared", upstream.root, tmp_path / "sharing"], check=True)
    followed = Followed(tmp_path / "home", str(tmp_path / "sharing"))
    followed.update()

    repository = followed.source.remote.repository
    assert not (repository / "objects/info/alternates").exists()
    subprocess.run(["git", "-C", repository, "fsck", "--connectivity-only"], check=True, capture_output=True)


def test_a_clone_of_a_path_links_its_objects(tmp_path, upstream):
    upstream.git("repack", "-a", "-d", "--quiet")
    followed = Followed(tmp_path / "home", str(upstream.root))
    followed.update()

    (pack,) = followed.source.remote.repository.glob("objects/pack/*.pack")
    assert pack.stat().st_nlink == 2


def test_contents_of_old_commits_are_left_out_until_history_needs_them_and_then_come_at_once(tmp_path, upstream):
    for number in range(5):
        upstream.write("a.md", f"{number}\n" * (50 + number))
        upstream.commit(str(number))
    with serving(tmp_path) as server:
        followed = Followed(tmp_path / "home", f"{server.url}/repository")

        followed.update()
        assert len(missing(followed)) == 6
        before = len(server.requests)
        followed.update(history=3)

        assert len(missing(followed)) == 3
        # One fetch for new commits and one for contents, each after a capability request.
        assert len(server.requests) - before <= 5
    found = read_commits(followed.source, followed.head, None, 3)
    assert [row["insertions"] for row in found.to_pylist()] == [54, 53, 52]


def missing(followed: Followed) -> list[str]:
    listed = Tree(followed.source.remote.repository).git("rev-list", "--objects", "--all", "--missing=print")
    return [line for line in listed.splitlines() if line.startswith("?")]


def test_a_server_that_leaves_nothing_out_gives_everything(tmp_path, upstream):
    upstream.git("config", "uploadpack.allowFilter", "false")
    followed = Followed(tmp_path / "home", upstream.root.as_uri())

    assert followed.update(history=10)["a.md"] == "second\n"
    assert missing(followed) == []


def test_discovery_and_the_fingerprint_read_a_checkout_like_any_work_tree(followed, upstream):
    assert fingerprint(followed.source) == fingerprint(followed.source)  # before the checkout exists
    before = fingerprint(followed.source)
    followed.update()
    after = fingerprint(followed.source)

    found = rows(discover(followed.source))

    assert {path: row["is_uncommitted"] for path, row in found.items()} == {"a.md": False, "docs/b.md": False}
    assert found["a.md"]["commit"] == upstream.git("rev-parse", MAIN)
    assert before != after
    assert fingerprint(followed.source) == after


def test_removing_a_branch_keeps_the_clone_while_another_needs_it(followed):
    followed.update()
    followed.at("feature/x").update()

    clone.remove(followed.layout, "git/up@feature/x", followed.reports.append)
    assert not followed.at("feature/x").source.path.exists()
    assert followed.update()["a.md"] == "second\n"
    clone.remove(followed.layout, "git/up", followed.reports.append)

    assert [*(followed.home / "repositories").iterdir(), *(followed.home / "checkouts").iterdir()] == []


def test_removing_a_library_of_the_same_name_touches_no_clone(tmp_path, upstream):
    followed = Followed(tmp_path / "home", upstream.root.as_uri())
    followed.update()

    clone.remove(followed.layout, "library/up", followed.reports.append)

    assert followed.files


def askpass(folder: Path, password: str) -> str:
    script = folder / "askpass"
    script.write_text(f'#!/bin/sh\ncase "$1" in User*) echo ada;; *) echo {password};; esac\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return str(script)


def test_credentials_come_by_gits_own_means_and_stay_out_of_files_and_messages(tmp_path, upstream, monkeypatch):
    with serving(tmp_path, password="s3cret") as server:
        followed = Followed(tmp_path / "home", f"{server.url}/repository")
        with pytest.raises(SourceError, match=r"could not read Username.*credential helper"):
            followed.update()
        monkeypatch.setenv("GIT_ASKPASS", askpass(tmp_path, "wr0ng"))
        with pytest.raises(SourceError, match="Authentication failed") as caught:
            followed.update()
        assert "wr0ng" not in str(caught.value)

        monkeypatch.setenv("GIT_ASKPASS", askpass(tmp_path, "s3cret"))
        assert followed.update(history=2)["a.md"] == "second\n"
        monkeypatch.delenv("GIT_ASKPASS")
        store = tmp_path / "store"
        store.write_text(server.url.replace("://", "://ada:s3cret@") + "\n")
        user = tmp_path / "gitconfig"
        user.write_text(f"[credential]\n\thelper = store --file {store}\n")
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(user))
        upstream.write("a.md", "the third\n")
        upstream.commit()
        assert followed.update()["a.md"] == "the third\n"
    assert holding(followed.home, b"s3cret") == []


def test_a_token_that_the_users_settings_put_into_urls_is_neither_stored_nor_shown(tmp_path, upstream, monkeypatch):
    with serving(tmp_path, password="s3cret") as server:
        user = tmp_path / "gitconfig"
        with_token = server.url.replace("://", "://ada:s3cret@")
        user.write_text(f'[url "{with_token}/"]\n\tinsteadOf = https://git.example.org/\n')
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(user))
        followed = Followed(tmp_path / "home", "https://git.example.org/repository")

        assert followed.update(history=2)["a.md"] == "second\n"

        with pytest.raises(SourceError) as caught:
            Followed(tmp_path / "other", "https://git.example.org/none").update()
    assert "s3cret" not in str(caught.value)
    assert holding(followed.home, b"s3cret") == []


def holding(folder: Path, secret: bytes) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and secret in path.read_bytes()]


def test_branches_of_one_repository_can_be_fetched_concurrently(followed):
    wanted = [followed.at(ref) for ref in (None, "feature/x", "v1", "main")]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(Followed.update, wanted))

    assert [files["a.md"] for files in found] == ["second\n", "one\n", "one\n", "second\n"]
