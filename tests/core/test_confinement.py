"""Confined homes reject symlinks, and folders are listed without following symlinks."""

import os
from pathlib import Path

import pytest

from docindex_dagster.core import confinement, locks
from docindex_dagster.core.access import writable_home
from docindex_dagster.core.errors import AccessError, LinkError
from docindex_dagster.core.files import append
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import load_settings
from tests.privileges import as_ordinary_user


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / ".docindex"
    (home / "stores/tantivy/00000001").mkdir(parents=True)
    (home / "catalog.json").write_text("[]")
    return home


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    outside = tmp_path / "projects"
    (outside / "precious").mkdir(parents=True)
    (outside / "private.txt").write_text("private")
    return outside


def test_a_home_without_links_is_opened(home):
    Layout(home)


def test_the_error_names_the_link_and_what_to_do(home, outside):
    (home / "stores/graph").symlink_to(outside)

    with pytest.raises(LinkError) as caught:
        Layout(home)

    assert str(caught.value) == (
        f"{home}/stores/graph is a symbolic link, and docindex follows none inside its home; remove it, or delete "
        f"{home} and run `docindex index`"
    )


@pytest.mark.parametrize("target", ["nowhere", ".", "catalog.json"])
def test_a_link_is_refused_wherever_it_leads(home, target):
    (home / "link").symlink_to(target)

    with pytest.raises(LinkError):
        Layout(home)


@pytest.mark.parametrize("is_parent", [False, True])
def test_the_path_of_the_home_may_contain_links(home, tmp_path, is_parent):
    link = tmp_path / "link"
    link.symlink_to(tmp_path if is_parent else home)

    layout = Layout(link / home.name if is_parent else link)

    layout.prepare()
    assert layout.entries(layout.tantivy) == [layout.tantivy / "00000001"]


@pytest.mark.parametrize("place", ["checkouts/git%2Ftool/docs/link", "repositories/tool.git/objects/0a/link"])
def test_what_git_keeps_is_not_scanned(home, outside, place):
    (home / place).parent.mkdir(parents=True)
    (home / place).symlink_to(outside)

    Layout(home)


@pytest.mark.parametrize(
    "place", ["checkouts", "checkouts/git%2Ftool", "repositories", "repositories/tool.git", "repositories/x.git/config"]
)
def test_the_folders_of_git_are_no_links_themselves(home, outside, place):
    (home / place).parent.mkdir(parents=True, exist_ok=True)
    (home / place).symlink_to(outside)

    with pytest.raises(LinkError):
        Layout(home)


def test_git_may_try_out_links_as_it_makes_a_repository(home):
    repository = home / "repositories/tool.git.x.new"
    repository.mkdir(parents=True)
    (repository / "tA3b5C9").symlink_to("testing")

    Layout(home)


def test_a_link_that_comes_later_is_found_by_whoever_writes(tmp_path, home, outside):
    settings = load_settings(tmp_path)
    Layout(home)
    (home / "stores/graph").symlink_to(outside)

    with pytest.raises(LinkError), writable_home(settings):
        pass


def test_a_link_that_comes_later_is_found_by_whoever_reads_after_a_while(home, outside):
    Layout(home)
    (home / "stores/graph").symlink_to(outside)

    confinement.check(home, max_age_s=60)
    with pytest.raises(LinkError):
        confinement.check(home, max_age_s=0)


def test_nothing_is_made_where_a_dangling_link_leads(tmp_path, outside):
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitignore").symlink_to(outside / "new")

    with pytest.raises(LinkError):
        Layout(home)
    assert not (outside / "new").exists()


def test_a_folder_that_can_be_entered_but_not_listed_is_refused(home):
    (home / "stores").chmod(0o300)
    try:
        with as_ordinary_user(), pytest.raises(AccessError, match="cannot list"):
            Layout(home)
    finally:
        (home / "stores").chmod(0o700)


@pytest.mark.parametrize("linked", ["stores", "stores/tantivy"])
def test_no_folder_is_listed_through_a_link(home, outside, linked):
    layout = Layout(home)
    (outside / "tantivy").mkdir()
    (home / linked).rename(home.parent / "moved")
    (home / linked).symlink_to(outside)

    with pytest.raises(LinkError, match=linked):
        layout.entries(layout.tantivy)


@pytest.mark.parametrize("folder", ["missing", "missing/below", "catalog.json", "catalog.json/below"])
def test_a_folder_that_does_not_exist_has_no_entries(home, folder):
    layout = Layout(home)

    assert layout.entries(home / folder) == []


def test_the_home_of_a_domain_is_no_link(home, outside):
    layout = Layout(home)
    layout.memory.symlink_to(outside)

    with pytest.raises(LinkError):
        layout.domain("memory/main")


def test_nothing_is_appended_through_a_link(home, outside):
    link = home / "feedback.jsonl"
    link.symlink_to(outside / "private.txt")

    with pytest.raises(LinkError):
        append(link, b"line\n", 0o600)
    assert (outside / "private.txt").read_text() == "private"


def test_a_lock_is_no_link(home, outside):
    link = home / "watch.lock"
    link.symlink_to(outside / "private.txt")

    with pytest.raises(LinkError), locks.exclusive_if_free(link, "us"):
        pass
    assert locks.holder(link) is None
    assert (outside / "private.txt").read_text() == "private"


def test_no_descriptor_stays_open(home, outside):
    layout = Layout(home)
    layout.packs.symlink_to(outside)
    before = len(os.listdir("/dev/fd"))  # noqa: PTH208 the length alone

    for folder in (layout.tantivy, layout.rows):
        layout.entries(folder)
    with pytest.raises(LinkError):
        layout.entries(layout.packs)

    assert len(os.listdir("/dev/fd")) == before  # noqa: PTH208 the length alone
