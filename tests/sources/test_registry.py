"""From settings to sources, and from what a user types to a source."""

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
