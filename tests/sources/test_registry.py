"""From settings to sources, and from what a user types to a source."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from docindex_dagster.errors import SettingsError, SourceError
from docindex_dagster.settings import Settings, load_settings
from docindex_dagster.sources import edit, registry


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


def test_each_visible_child_of_a_declared_folder_is_a_library(tmp_path):
    text = '[[source]]\nkind = "library"\npath = "raw/{library}"\n'

    found = registry.sources(project(tmp_path, text, "raw/b", "raw/a", "raw/.hidden", "raw/with space", "raw/x...y"))

    assert list(found) == ["library/a", "library/b", "library/with space", "library/x%2E%2E%2Ey"]


def test_two_sources_of_one_name_are_refused(tmp_path):
    text = '[[source]]\nkind = "git"\npath = "a/x"\n[[source]]\nkind = "git"\npath = "b/x"\n'

    with pytest.raises(SettingsError, match="two sources are named git/x"):
        registry.sources(project(tmp_path, text, "a/x", "b/x"))


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

    assert registry.containing(settings, tmp_path / "x/docs/a.md").key == "library/docs"
    assert registry.containing(settings, tmp_path / "x/a.py").key == "git/x"
    assert registry.containing(settings, tmp_path) is None


def test_a_refused_edit_leaves_the_file_as_it_was(tmp_path):
    settings = project(tmp_path, '# ours\n[[source]]\nkind = "git"\npath = "x"\n', "x")
    before = settings.config_file.read_text()

    with pytest.raises(SettingsError, match="two sources"):
        edit.add(tmp_path, {"kind": "git", "path": "x"})

    assert settings.config_file.read_text() == before


def test_removing_a_source_keeps_comments_and_other_sources(tmp_path):
    text = '# ours\n[[source]] # first\nkind = "git"\npath = "x"\n\n[[source]] # second\nkind = "git"\npath = "y"\n'
    project(tmp_path, text, "x", "y")
    edit.use(tmp_path, "git/x")

    assert edit.remove(tmp_path, "git/x")

    settings = load_settings(tmp_path)
    assert list(registry.sources(settings)) == ["git/y"]
    assert settings.search.default_source is None
    assert "# ours" in settings.config_file.read_text()
    assert "# second" in settings.config_file.read_text()


def test_one_child_of_a_declared_folder_cannot_be_removed_alone(tmp_path):
    project(tmp_path, '[[source]]\nkind = "library"\npath = "raw/{library}"\n', "raw/a", "raw/b")

    with pytest.raises(SourceError, match="together with others"):
        edit.remove(tmp_path, "library/a")


def test_adding_removing_and_adding_again_leaves_a_file_that_can_be_read(tmp_path):
    settings = project(tmp_path, "# ours\n", "a", "b")
    edit.declare(tmp_path, str(tmp_path / "a"))
    edit.remove(tmp_path, "library/a")

    assert edit.declare(tmp_path, str(tmp_path / "b")) == ["library/b"]

    assert list(registry.sources(load_settings(tmp_path))) == ["library/b"]
    assert "# ours" in settings.config_file.read_text()


def test_sources_written_as_an_inline_array_can_be_added_to(tmp_path):
    project(tmp_path, 'source = [{ kind = "library", path = "a" }]\n[search]\ntop_k = 3\n', "a", "b")

    assert edit.declare(tmp_path, str(tmp_path / "b")) == ["library/b"]

    assert list(registry.sources(load_settings(tmp_path))) == ["library/a", "library/b"]
    assert load_settings(tmp_path).search.top_k == 3


def test_edits_at_once_lose_nothing(tmp_path):
    names = [f"lib{number}" for number in range(12)]
    project(tmp_path, "", *names)

    with ThreadPoolExecutor(max_workers=6) as pool:
        list(pool.map(lambda name: edit.declare(tmp_path, str(tmp_path / name)), names))

    assert {source.name for source in registry.sources(load_settings(tmp_path)).values()} == set(names)


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_declared_folder_of_folders_is_one_whether_or_not_it_ends_in_a_slash(tmp_path, slash):
    project(tmp_path, f'[[source]]\nkind = "library"\npath = "raw/{{library}}{slash}"\n', "raw/a", "raw/b")

    with pytest.raises(SourceError, match="together with others"):
        edit.remove(tmp_path, "library/a")
    assert list(registry.sources(load_settings(tmp_path))) == ["library/a", "library/b"]


def test_a_bare_repository_is_no_source(tmp_path, git):
    git(tmp_path, "init", "-q", "--bare", "bare")

    with pytest.raises(SourceError, match="bare git repository"):
        edit.declare(tmp_path, str(tmp_path / "bare"))
