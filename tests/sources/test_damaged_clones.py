"""Clones and checkouts that were damaged, edited, or left by a killed process repair themselves."""

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from docindex_dagster.sources.mirror import remove_path
from tests.sources.conftest import Tree
from tests.sources.remotes import Followed, serving

FILES = {"a.md": "one\n", "docs/b.md": "b\n"}


@pytest.fixture
def upstream(repository: Tree) -> Tree:
    for path, text in FILES.items():
        repository.write(path, text)
    repository.commit()
    return repository


@pytest.fixture
def followed(upstream, tmp_path) -> Followed:
    """A repository that was already cloned."""
    followed = Followed(tmp_path / "home", upstream.root.as_uri())
    assert followed.update() == FILES
    return followed


def clone_of(followed: Followed) -> Path:
    return followed.source.remote.repository


def admin(followed: Followed) -> Path:
    (found,) = clone_of(followed).glob("worktrees/*")
    return found


def overwrite(*paths: Path, data: bytes = b"nonsense") -> None:
    assert paths
    for path in paths:
        path.chmod(0o644)
        path.write_bytes(data)


def replace_by_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def replace_by_file(folder: Path) -> None:
    remove_path(folder)
    folder.write_text("nonsense")


def replace_by_link(folder: Path, target: Path) -> None:
    shutil.rmtree(folder)
    target.mkdir()
    (target / "kept.md").write_text("not ours\n")
    folder.symlink_to(target)


CHECKOUT_DAMAGE = {
    "edited": lambda followed: (followed.source.path / "a.md").write_text("edited by hand\n"),
    "deleted file": lambda followed: (followed.source.path / "a.md").unlink(),
    "deleted folder": lambda followed: shutil.rmtree(followed.source.path / "docs"),
    "deleted whole": lambda followed: shutil.rmtree(followed.source.path),
    "added files": lambda followed: (followed.source.path / ".docindexignore").write_text("*\n"),
    "folder in place of a file": lambda followed: replace_by_folder(followed.source.path / "a.md"),
    "link in place of a folder": lambda followed: replace_by_link(followed.source.path / "docs", followed.home / "out"),
    "link in place of all": lambda followed: replace_by_link(followed.source.path, followed.home / "out"),
    "a branch checked out": lambda followed: followed.tree.git("switch", "--quiet", "--create", "mine"),
    "a commit of one's own": lambda followed: followed.tree.commit(),
    "stale lock": lambda followed: (admin(followed) / "index.lock").touch(),
    "stale lock of HEAD": lambda followed: (admin(followed) / "HEAD.lock").touch(),
    "damaged index": lambda followed: overwrite(admin(followed) / "index"),
    "damaged HEAD": lambda followed: overwrite(admin(followed) / "HEAD"),
    "deleted .git": lambda followed: (followed.source.path / ".git").unlink(),
    "damaged .git": lambda followed: overwrite(followed.source.path / ".git"),
    ".git of another": lambda followed: overwrite(followed.source.path / ".git", data=b"gitdir: /nowhere/at/all\n"),
    "unknown to the clone": lambda followed: shutil.rmtree(clone_of(followed) / "worktrees"),
}
CLONE_DAMAGE = {
    "deleted": lambda followed: shutil.rmtree(clone_of(followed)),
    "no objects": lambda followed: shutil.rmtree(clone_of(followed) / "objects"),
    "damaged packs": lambda followed: overwrite(*clone_of(followed).glob("objects/pack/*.pack")),
    "deleted packs": lambda followed: shutil.rmtree(clone_of(followed) / "objects/pack"),
    "damaged configuration": lambda followed: overwrite(clone_of(followed) / "config", data=b"[nonsense"),
    "damaged HEAD": lambda followed: overwrite(clone_of(followed) / "HEAD"),
    "damaged branch": lambda followed: overwrite(clone_of(followed) / "packed-refs"),
    "stale lock": lambda followed: (clone_of(followed) / "packed-refs.lock").touch(),
    "a file": lambda followed: replace_by_file(clone_of(followed)),
    "begun": lambda followed: clone_of(followed).rename(clone_of(followed).with_name("up.git.x.new")),
}


@pytest.mark.parametrize("damage", CHECKOUT_DAMAGE.values(), ids=CHECKOUT_DAMAGE)
def test_a_checkout_comes_out_exactly_at_the_commit(followed, upstream, damage):
    damage(followed)

    assert followed.update() == FILES

    assert followed.tree.git("status", "--porcelain", "--ignored") == ""
    assert followed.head == upstream.git("rev-parse", "HEAD")
    assert (admin(followed) / "HEAD").read_text().strip() == followed.head


@pytest.mark.parametrize("damage", CLONE_DAMAGE.values(), ids=CLONE_DAMAGE)
def test_a_clone_is_mended_or_made_anew(followed, upstream, damage):
    damage(followed)
    upstream.write("new.md", "new\n")
    upstream.commit()

    assert followed.update() == {**FILES, "new.md": "new\n"}

    Tree(clone_of(followed)).git("fsck", "--connectivity-only")
    assert followed.at("main").update() == {**FILES, "new.md": "new\n"}
    assert [place.name for place in clone_of(followed).parent.iterdir()] == ["up.git"]


def test_making_a_clone_anew_is_reported(followed):
    shutil.rmtree(clone_of(followed) / "objects")

    followed.update()

    assert any("is damaged; repairing it" in line for line in followed.reports)


def test_a_link_that_took_the_place_of_a_folder_is_not_followed_when_it_is_removed(followed):
    outside = followed.home / "outside"
    replace_by_link(followed.source.path, outside)

    followed.update()

    assert (outside / "kept.md").read_text() == "not ours\n"


def test_a_damaged_clone_stays_while_the_remote_cannot_be_reached(followed, upstream):
    """The damaged clone may be the only copy left."""
    upstream.root.rename(upstream.root.with_name("away"))
    (admin(followed) / "index.lock").touch()

    with pytest.raises(Exception, match="cannot fetch"):
        followed.update()

    assert followed.files == FILES


def test_a_home_that_was_moved_works_on(followed, tmp_path):
    followed.home.rename(tmp_path / "elsewhere")

    assert Followed(tmp_path / "elsewhere", followed.url).update() == FILES


UPDATE = """
import sys
from pathlib import Path
from tests.sources.remotes import Followed
Followed(Path(sys.argv[1]), sys.argv[2]).update(history=10)
"""


@pytest.mark.parametrize(
    "delay", [0.1, 0.2, *(pytest.param(delay, marks=pytest.mark.kill) for delay in (0.05, 0.15, 0.3))]
)
def test_a_process_that_is_killed_at_any_time_leaves_what_the_next_one_mends(upstream, tmp_path, delay):
    for number in range(300):
        upstream.write(f"many/{number}.md", f"{number}\n" * 20)
    upstream.git("config", "uploadpack.allowFilter", "true")
    upstream.commit()
    with serving(tmp_path) as server:
        followed = Followed(tmp_path / "home", f"{server.url}/repository")
        command = [sys.executable, "-c", UPDATE, str(followed.home), followed.url]
        process = subprocess.Popen(command, cwd=Path(__file__).parents[2], stderr=subprocess.DEVNULL)
        until = time.monotonic() + 30
        while not (followed.home / "repositories").exists() and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()

        assert len(followed.update(history=10)) == 302
        assert followed.tree.git("status", "--porcelain") == ""
