"""The history of a git source, materialized by Dagster."""

from dataclasses import replace

import dagster as dg
import pytest

from docindex_dagster.core import tables
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import load_settings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.runner.run import index
from docindex_dagster.search.engine import search
from docindex_dagster.search.filters import Filters
from docindex_dagster.sources import registry
from docindex_dagster.status import catalog
from docindex_dagster.stores.doctor import examine
from docindex_dagster.stores.generation import read_generation
from docindex_dagster.stores.reader import open_reader
from tests.defs.conftest import CODE, CONFIG, KEY

GIT = "git/sums"


@pytest.fixture
def repository(project, git):
    """Add a git source with two commits to the project."""
    folder = project.root / "sums"
    folder.mkdir()
    git(folder, "init", "-q")
    for text in (CODE, CODE.replace("Add", "Sum up")):
        (folder / "sums.py").write_text(text)
        git(folder, "add", ".")
        git(folder, "commit", "-qm", "Describe the green sum")
    (project.root / "docindex.toml").write_text(CONFIG + '[[source]]\nkind = "git"\npath = "sums"\n')
    return folder


def numbers(result: dg.ExecuteInProcessResult, asset: str) -> dict[str, object]:
    events = [event.step_materialization_data.materialization for event in result.get_asset_materialization_events()]
    (found,) = (item for item in events if item.asset_key.to_user_string() == asset)
    return {name: value.value for name, value in found.metadata.items()}


def test_commits_are_materialised_published_and_searched_only_when_asked_for(project, repository):
    result = project.index(GIT)

    assert result.success
    assert all(check.passed for check in result.get_asset_check_evaluations())
    found = numbers(result, "commits")
    assert (found["added"], found["reused"], found["all_commits"], found["branches"]) == (2, 0, 2, 1)
    assert numbers(result, "chunks")["files"] == 1
    reader = open_reader(project.layout)
    assert {hit.path for hit in search(reader, "green sum", StaticEmbedder)} == {"sums.py"}
    commits = search(reader, "green sum", StaticEmbedder, filters=Filters(source_types=("commit",)))
    assert len(commits) == 2
    assert {hit.chunk_type for hit in commits} == {"message"}
    assert list(examine(project.layout)) == []


def test_the_catalogue_counts_commits_apart_and_has_the_figures_of_the_repository(project, repository, git):
    git(repository, "tag", "v1")
    result = project.index(GIT)
    project.index(KEY)

    library, of_git = sorted(catalog.entries(project.layout), key=lambda entry: entry.source, reverse=True)

    assert (of_git.files, of_git.commits, of_git.languages) == (1, 2, {"python": of_git.chunks - 2})
    head = git(repository, "rev-parse", "HEAD").strip()
    assert of_git.repository.latest_commit == head
    assert (of_git.repository.commits, of_git.repository.branches, of_git.repository.tags) == (2, 1, 1)
    assert (library.commits, library.repository) == (0, None)
    assert head[:8] in numbers(result, "index_catalog")["contents"]


def test_a_run_without_new_commits_writes_nothing_and_a_new_tag_reaches_the_catalogue(project, repository, git):
    project.index(GIT)
    file = project.layout.table("commits", GIT)
    before = file.stat().st_mtime_ns

    again = project.index(GIT)
    assert (numbers(again, "commits")["reused"], numbers(again, "commits")["table_rewritten"]) == (2, False)
    assert file.stat().st_mtime_ns == before
    git(repository, "tag", "v1")
    project.index(GIT)

    (entry,) = catalog.entries(project.layout)
    assert entry.repository.tags == 1


def test_history_can_be_shorter_or_switched_off(project, repository):
    settings = (project.root / "docindex.toml").read_text()
    for wanted in (1, 0):
        (project.root / "docindex.toml").write_text(f"{settings}[history]\ncommits = {wanted}\n")
        assert project.index(GIT).success
        assert tables.read(project.layout.table("commits", GIT)).num_rows == wanted
        assert catalog.entries(project.layout)[0].commits == wanted


def test_a_repository_without_commits_is_indexed(project, git):
    folder = project.root / "sums"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "sums.py").write_text(CODE)
    (project.root / "docindex.toml").write_text(CONFIG + '[[source]]\nkind = "git"\npath = "sums"\n')

    assert project.index(GIT).success
    assert catalog.entries(project.layout)[0].commits == 0


def test_every_commit_counts_whether_or_not_a_file_that_is_indexed_changed(project, repository, git):
    project.index(GIT)
    git(repository, "commit", "-q", "--allow-empty", "-m", "Release the blue sum")
    (repository / "dist").mkdir()
    (repository / "dist" / "bundle.js").write_text("x = 1\n")
    git(repository, "add", "--force", ".")
    git(repository, "commit", "-qm", "Bundle it")

    project.index(GIT)

    published = read_generation(project.layout).sources[GIT]
    assert published.revision == git(repository, "rev-parse", "HEAD").strip()
    assert published.commits == 4


def test_a_run_of_dagster_and_one_of_the_library_publish_the_same(project, repository, git, tmp_path):
    config = project.root / "docindex.toml"
    steps = {
        "the first run": lambda: None,
        "an edit": lambda: (repository / "sums.py").write_text(CODE * 2),
        "a commit": lambda: git(repository, "commit", "-qam", "Twice"),
        "an empty commit": lambda: git(repository, "commit", "-q", "--allow-empty", "-m", "Empty"),
        "a setting": lambda: config.write_text(config.read_text() + 'version = "7"\n'),
        "a reset": lambda: git(repository, "reset", "-q", "--hard", "HEAD~2"),
    }
    for name, step in steps.items():
        step()
        assert project.index(GIT).success
        settings = load_settings(project.root)
        elsewhere = settings.model_copy(update={"home": tmp_path / name})
        index(elsewhere, registry.sources(settings)[GIT], StaticEmbedder())
        by_dagster, by_library = (
            read_generation(Layout(home)).sources[GIT] for home in (settings.home, elsewhere.home)
        )
        assert replace(by_dagster, changed_at="") == replace(by_library, changed_at=""), name
