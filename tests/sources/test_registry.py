"""Resolving settings to sources, and user input to a source."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from docindex_dagster.core.errors import SettingsError, SourceError
from docindex_dagster.core.layout import base_key, is_branch
from docindex_dagster.core.settings import Settings, load_settings
from docindex_dagster.sources import config_edits, registry
from tests.sources.conftest import new_repository


def project(tmp_path, text: str, *folders: str) -> Settings:
    for folder in folders:
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "docindex.toml").write_text(text)
    return load_settings(tmp_path)


def test_a_source_is_named_after_its_folder_unless_it_has_a_name(tmp_path):
    text = (
        '[[source]]\nkind = "git"\npath = "service"\n[[source]]\nkind = "library"\npath = "docs"\nname = "handbook"\n'
    )

    found = registry.sources(project(tmp_path, text, "service", "docs"))

    assert {key: source.path for key, source in found.items()} == {
        "git/service": tmp_path / "service",
        "library/handbook": tmp_path / "docs",
    }


@pytest.mark.parametrize("path", ["link", "deep/inner/..", "./deep/.", "{root}/deep"])
def test_the_name_is_that_of_the_folder_where_a_path_is_not_plain(tmp_path, path):
    (tmp_path / "link").symlink_to("deep")
    text = f'[[source]]\nkind = "library"\npath = "{path.format(root=tmp_path)}"\n'

    assert list(registry.sources(project(tmp_path, text, "deep/inner"))) == ["library/deep"]


@pytest.mark.parametrize(
    ("path", "home", "left_out"),
    [
        (".", "index", ("/index/",)),
        ("code/..", "code/[index]", ("/code/\\[index\\]/",)),
        ("code", "index", ()),
        ("code", "code-index/home", ()),
        ("code", "code", ()),
        (".", ".docindex", ()),
        (".", ".docindex/0123456789abcdef0123456789abcdef", ()),
    ],
    ids=[
        *("below", "below a path with dots", "beside", "beside, with the same beginning", "the same"),
        *("never entered", "below a folder that is never entered"),
    ],
)
def test_an_index_that_lies_in_a_source_is_no_part_of_it(tmp_path, monkeypatch, path, home, left_out):
    monkeypatch.setenv("DOCINDEX_HOME", home)
    text = f'[[source]]\nkind = "library"\nname = "one"\npath = "{path}"\n'

    assert registry.sources(project(tmp_path, text, "code"))["library/one"].exclude == left_out


def test_each_visible_child_of_a_declared_folder_is_a_library(tmp_path):
    text = '[[source]]\nkind = "library"\npath = "raw/{library}"\n'

    found = registry.sources(project(tmp_path, text, "raw/b", "raw/a", "raw/.hidden", "raw/with space", "raw/x...y"))

    assert list(found) == ["library/a", "library/b", "library/with space", "library/x%2E%2E%2Ey"]


def test_an_edit_writes_where_a_link_points_and_keeps_the_link(tmp_path):
    project(tmp_path, "", "project", "dotfiles", "a")
    kept, link = tmp_path / "dotfiles" / "index.toml", tmp_path / "project" / "docindex.toml"
    kept.touch(mode=0o600)
    link.symlink_to("../dotfiles/index.toml")

    assert config_edits.declare(link.parent, str(tmp_path / "a")) == ["library/a"]

    assert link.readlink() == Path("../dotfiles/index.toml")
    assert "library" in kept.read_text()
    assert kept.stat().st_mode & 0o777 == 0o600


def test_two_sources_of_one_name_are_refused(tmp_path):
    text = '[[source]]\nkind = "git"\npath = "a/x"\n[[source]]\nkind = "git"\npath = "b/x"\n'

    with pytest.raises(SettingsError, match="two sources have the key git/x") as raised:
        registry.sources(project(tmp_path, text, "a/x", "b/x"))

    assert f"`docindex source add {tmp_path}/b/x --name NAME`" in str(raised.value)


def test_a_name_alone_is_enough_where_it_is_unique(tmp_path):
    text = '[[source]]\nkind = "git"\npath = "x"\n[[source]]\nkind = "library"\npath = "x/docs"\nname = "x"\n'
    settings = project(tmp_path, text, "x/docs")

    assert registry.find(settings, "git/x").kind == "git"
    with pytest.raises(SourceError, match="git/x or library/x"):
        registry.find(settings, "x")
    with pytest.raises(SourceError, match="known sources: git/x, library/x"):
        registry.find(settings, "y")


def test_a_path_belongs_to_the_innermost_source_around_it(tmp_path):
    text = '[[source]]\nkind = "git"\npath = "x"\n[[source]]\nkind = "library"\npath = "x/docs"\n'
    settings = project(tmp_path, text, "x/docs")

    assert registry.source_containing(settings, tmp_path / "x/docs/a.md").key == "library/docs"
    assert registry.source_containing(settings, tmp_path / "x/a.py").key == "git/x"
    assert registry.source_containing(settings, tmp_path) is None


def test_a_refused_edit_leaves_the_file_as_it_was(tmp_path):
    settings = project(tmp_path, '# ours\n[[source]]\nkind = "git"\npath = "x"\n', "x")
    before = settings.config_file.read_text()

    with pytest.raises(SettingsError, match="two sources"):
        config_edits.add(tmp_path, {"kind": "git", "path": "x"})

    assert settings.config_file.read_text() == before


def test_removing_a_source_keeps_comments_and_other_sources(tmp_path):
    text = '# ours\n[[source]] # first\nkind = "git"\npath = "x"\n\n[[source]] # second\nkind = "git"\npath = "y"\n'
    project(tmp_path, text, "x", "y")
    config_edits.use(tmp_path, "git/x")

    assert config_edits.remove(tmp_path, "git/x")

    settings = load_settings(tmp_path)
    assert list(registry.sources(settings)) == ["git/y"]
    assert settings.search.default_source is None
    assert "# ours" in settings.config_file.read_text()
    assert "# second" in settings.config_file.read_text()


def test_one_child_of_a_declared_folder_cannot_be_removed_alone(tmp_path):
    project(tmp_path, '[[source]]\nkind = "library"\npath = "raw/{library}"\n', "raw/a", "raw/b")

    with pytest.raises(SourceError, match="together with others"):
        config_edits.remove(tmp_path, "library/a")


def test_the_libraries_of_a_declared_folder_are_removed_together(tmp_path):
    text = '[[source]]\nkind = "library"\npath = "raw/{library}"\n[search]\ndefault_source = "library/a"\n'
    settings = project(tmp_path, text, "raw/a", "raw/b", "c")
    config_edits.declare(tmp_path, str(tmp_path / "c"))
    with pytest.raises(SourceError, match=r"docindex source remove 'raw/\{library\}'"):
        config_edits.remove(tmp_path, "library/a")
    assert [child.key for child in registry.children(settings, tmp_path / "raw")] == ["library/a", "library/b"]
    assert registry.children(settings, tmp_path) is None

    config_edits.remove_children(tmp_path, tmp_path / "raw")

    settings = load_settings(tmp_path)
    assert list(registry.sources(settings)) == ["library/c"]
    assert settings.search.default_source is None


def test_what_is_not_there_is_not_called_a_folder(tmp_path):
    (tmp_path / "page.md").write_text("# Page\n")

    with pytest.raises(SourceError, match=f"{tmp_path}/nosuch.h not found"):
        config_edits.declare(tmp_path, str(tmp_path / "nosuch.h"))
    with pytest.raises(SourceError, match=r"page.md is a file; use its folder"):
        config_edits.declare(tmp_path, str(tmp_path / "page.md"))


def test_adding_removing_and_adding_again_leaves_a_file_that_can_be_read(tmp_path):
    settings = project(tmp_path, "# ours\n", "a", "b")
    config_edits.declare(tmp_path, str(tmp_path / "a"))
    config_edits.remove(tmp_path, "library/a")

    assert config_edits.declare(tmp_path, str(tmp_path / "b")) == ["library/b"]

    assert list(registry.sources(load_settings(tmp_path))) == ["library/b"]
    assert "# ours" in settings.config_file.read_text()


def test_sources_written_as_an_inline_array_can_be_added_to(tmp_path):
    project(tmp_path, 'source = [{ kind = "library", path = "a" }]\n[search]\ntop_k = 3\n', "a", "b")

    assert config_edits.declare(tmp_path, str(tmp_path / "b")) == ["library/b"]

    assert list(registry.sources(load_settings(tmp_path))) == ["library/a", "library/b"]
    assert load_settings(tmp_path).search.top_k == 3


def test_concurrent_edits_lose_nothing(tmp_path):
    names = [f"lib{number}" for number in range(12)]
    project(tmp_path, "", *names)

    with ThreadPoolExecutor(max_workers=6) as pool:
        list(pool.map(lambda name: config_edits.declare(tmp_path, str(tmp_path / name)), names))

    assert {source.name for source in registry.sources(load_settings(tmp_path)).values()} == set(names)


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_declared_folder_of_folders_is_one_whether_or_not_it_ends_in_a_slash(tmp_path, slash):
    project(tmp_path, f'[[source]]\nkind = "library"\npath = "raw/{{library}}{slash}"\n', "raw/a", "raw/b")

    with pytest.raises(SourceError, match="together with others"):
        config_edits.remove(tmp_path, "library/a")
    assert list(registry.sources(load_settings(tmp_path))) == ["library/a", "library/b"]


def test_a_bare_repository_is_no_source(tmp_path, git):
    git(tmp_path, "init", "-q", "--bare", "bare")

    with pytest.raises(SourceError, match="bare git repository"):
        config_edits.declare(tmp_path, str(tmp_path / "bare"))


def followed(settings: Settings) -> dict[str, tuple[str, str | None]]:
    """Return the URL and ref that each source follows, by key."""
    return {
        key: (source.remote.url, source.remote.ref)
        for key, source in registry.sources(settings).items()
        if source.remote is not None
    }


def test_a_url_and_its_branches_are_sources_that_share_a_clone(tmp_path):
    text = '[[source]]\nkind = "git"\nurl = "https://example.org/flask.git"\nbranches = ["dev", "feature/x"]\n'
    settings = project(tmp_path, text)

    found = registry.sources(settings)

    url = "https://example.org/flask.git"
    assert followed(settings) == {
        "git/flask": (url, None),
        "git/flask@dev": (url, "dev"),
        "git/flask@feature/x": (url, "feature/x"),
    }
    assert {source.remote.repository for source in found.values()} == {settings.home / "repositories/flask.git"}
    assert len({source.path for source in found.values()}) == 3
    assert all(source.path.parent == settings.home / "checkouts" for source in found.values())
    assert {base_key(key) for key in found} == {"git/flask"}
    assert [key for key in found if is_branch(key)] == ["git/flask@dev", "git/flask@feature/x"]


def test_a_folder_is_read_as_it_stands_and_its_branches_from_a_clone(tmp_path):
    text = '[[source]]\nkind = "git"\npath = "x"\nbranches = ["dev"]\n'
    text += '[[source]]\nkind = "git"\npath = "y"\nbranch = "v1"\n'
    settings = project(tmp_path, text, "x", "y")

    assert registry.sources(settings)["git/x"].path == tmp_path / "x"
    assert followed(settings) == {"git/x@dev": (str(tmp_path / "x"), "dev"), "git/y": (str(tmp_path / "y"), "v1")}


def test_an_at_sign_in_the_name_of_a_folder_does_not_make_it_a_branch(tmp_path):
    text = '[[source]]\nkind = "git"\npath = "a@b"\n[[source]]\nkind = "git"\nurl = "https://example.org/@c"\n'

    assert list(registry.sources(project(tmp_path, text, "a@b"))) == ["git/a%40b", "git/%40c"]


def test_a_name_that_tries_to_leave_the_home_stays_in_it(tmp_path):
    text = '[[source]]\nkind = "git"\nurl = "https://example.org/x/.."\n'
    text += '[[source]]\nkind = "git"\nurl = "file:///..../.git"\n'
    settings = project(tmp_path, text)

    for source in registry.sources(settings).values():
        for place in (source.path, source.remote.repository):
            assert Path(os.path.normpath(place)).is_relative_to(settings.home)
            assert Path(os.path.normpath(place)).parent.name in {"repositories", "checkouts"}


URL = "https://example.org/flask.git"


def test_a_branch_of_a_declared_repository_goes_to_its_table_and_out_of_it_again(tmp_path):
    project(tmp_path, "# ours\n")
    assert config_edits.declare(tmp_path, URL, submodules=True) == ["git/flask"]
    assert config_edits.declare(tmp_path, URL, branch="dev") == ["git/flask@dev"]
    assert config_edits.declare(tmp_path, URL, branch="feature/x") == ["git/flask@feature/x"]
    text = (tmp_path / "docindex.toml").read_text()
    assert text.count("[[source]]") == 1
    assert 'branches = ["dev", "feature/x"]' in text

    with pytest.raises(SourceError, match="remove git/flask@dev and git/flask@feature/x first"):
        config_edits.remove(tmp_path, "git/flask")
    for key in ("git/flask@feature/x", "git/flask@dev", "git/flask"):
        assert config_edits.remove(tmp_path, key)

    assert list(registry.sources(load_settings(tmp_path))) == []
    assert "# ours" in (tmp_path / "docindex.toml").read_text()


def test_the_first_branch_of_a_repository_is_the_one_that_its_source_follows(tmp_path):
    assert config_edits.declare(tmp_path, URL, branch="dev", name="mine") == ["git/mine"]

    assert followed(load_settings(tmp_path)) == {"git/mine": (URL, "dev")}


def test_a_branch_that_is_followed_already_is_refused(tmp_path):
    config_edits.declare(tmp_path, URL, branch="dev")

    with pytest.raises(SourceError, match="already declared"):
        config_edits.declare(tmp_path, URL, branch="dev")


@pytest.mark.parametrize("place", ["ext::sh -c x", "https://ada:s3cret@example.org/x", "git://example.org/x"])
def test_a_url_that_git_must_not_see_is_not_declared(tmp_path, place):
    with pytest.raises(SettingsError, match="the URL ") as caught:
        config_edits.declare(tmp_path, place)

    assert "s3cret" not in str(caught.value)
    assert not (tmp_path / "docindex.toml").exists()


@pytest.fixture
def work_trees(tmp_path, git) -> Path:
    """A repository `service` with linked worktrees next to it, one on a branch and one detached."""
    (tmp_path / "service").mkdir()
    git(tmp_path / "service", "init", "-q")
    git(tmp_path / "service", "commit", "-q", "--allow-empty", "-m", "first")
    git(tmp_path / "service", "worktree", "add", "-q", "-b", "feature/x", "../service-feature")
    git(tmp_path / "service", "worktree", "add", "-q", "--detach", "../service-old")
    return Path(tmp_path)


def test_a_linked_work_tree_of_a_declared_repository_is_named_by_its_branch(work_trees, git):
    head = git(work_trees / "service", "rev-parse", "HEAD")
    config_edits.declare(work_trees, str(work_trees / "service"), name="api")

    assert config_edits.declare(work_trees, str(work_trees / "service-feature")) == ["git/api@feature/x"]
    assert config_edits.declare(work_trees, str(work_trees / "service-old")) == [f"git/api@{head[:10]}"]

    assert registry.sources(load_settings(work_trees))["git/api@feature/x"].path == work_trees / "service-feature"
    assert config_edits.remove(work_trees, "git/api@feature/x")


def test_a_work_tree_of_no_declared_repository_has_a_name_of_its_own(work_trees):
    assert config_edits.declare(work_trees, str(work_trees / "service-feature")) == ["git/service-feature"]


def test_a_branch_of_a_folder_is_added_to_its_table(work_trees):
    config_edits.declare(work_trees, str(work_trees / "service"))

    assert config_edits.declare(work_trees, str(work_trees / "service"), branch="feature/x") == [
        "git/service@feature/x"
    ]
    assert config_edits.remove(work_trees, "git/service@feature/x")


def test_a_branch_of_a_bare_repository_can_be_followed(tmp_path, git):
    git(tmp_path, "init", "-q", "--bare", "bare.git")

    assert config_edits.declare(tmp_path, str(tmp_path / "bare.git"), branch="main", name="bare") == ["git/bare"]


def test_linked_work_trees_in_a_folder_of_libraries_are_no_libraries_beside_the_main_one(tmp_path):
    settings = project(tmp_path, '[[source]]\nkind = "library"\npath = "all/{library}"\n', "all")
    shop = new_repository(tmp_path / "all/shop")
    shop.commit()
    shop.git("worktree", "add", "--quiet", "--detach", "../alpha")
    assert list(registry.sources(settings)) == ["library/shop"]

    (tmp_path / "all/shop").rename(tmp_path / "shop")
    assert list(registry.sources(settings)) == ["library/alpha"]


@pytest.mark.parametrize(
    ("path", "source", "name"),
    [
        ("x/.github/ci.yml", "git/x", ".github/ci.yml"),
        ("x/.hidden.md", "git/x", ".hidden.md"),
        ("x/..y/z.md", "git/x", "..y/z.md"),
        ("x/a%41.md", "git/x", "a%2541.md"),
        ("x", "git/x", ""),
        ("x/.", "git/x", ""),
        ("real/docs/a.md", "library/docs", "a.md"),
        ("link/docs/a.md", "library/docs", "a.md"),
        ("again/a.md", "library/docs", "a.md"),
        ("x/away.md", "git/x", "away.md"),
        ("again/away.md", "library/docs", "away.md"),
    ],
)
def test_a_path_has_one_name_in_its_source_whichever_links_lead_to_it(tmp_path, path, source, name):
    text = '[[source]]\nkind = "git"\npath = "x"\n[[source]]\nkind = "library"\npath = "link/docs"\n'
    settings = project(tmp_path, text, "x", "real/docs", "elsewhere")
    for link, target in {"link": "real", "again": "real/docs", "x/away.md": "/nowhere"}.items():
        (tmp_path / link).symlink_to(target)
    (tmp_path / "real/docs/away.md").symlink_to("/nowhere")

    found = registry.locate_path(settings, tmp_path / path)

    assert (found[0].key, found[1]) == (source, name)


def test_circular_links_are_in_no_source(tmp_path):
    settings = project(tmp_path, '[[source]]\nkind = "git"\npath = "x"\n', "x")
    (tmp_path / "circle").symlink_to("circle")

    assert registry.locate_path(settings, tmp_path / "circle" / "a.md") is None
    assert registry.locate_path(settings, Path("a\0b")) is None
