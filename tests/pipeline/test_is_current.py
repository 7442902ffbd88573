"""Staleness checks: whether the index matches the current files and settings."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from docindex_dagster.core import events, tables
from docindex_dagster.core.errors import SourceError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import CONFIG_NAME, Settings, load_settings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.pipeline.up_to_date import is_current
from docindex_dagster.runner.run import index
from docindex_dagster.sources import registry
from docindex_dagster.sources.changes import fingerprint
from docindex_dagster.sources.discovery import discover
from docindex_dagster.sources.model import Source
from docindex_dagster.stores.publish import Publication, withdraw

LONG_AGO_S = 1_600_000_000


@dataclass(slots=True)
class Project:
    """A project with one source, the folder `files`."""

    root: Path
    git: Callable[..., str]
    kind: str
    options: dict[str, str] = field(default_factory=dict)  # options of the source, as TOML
    sections: str = ""

    @property
    def files(self) -> Path:
        return self.root / "files"

    @property
    def settings(self) -> Settings:
        place = {"followed": f'url = "{self.files.as_uri()}"'}.get(self.kind, 'path = "files"')
        kind = "library" if self.kind == "library" else "git"
        options = "\n".join(f"{key} = {value}" for key, value in self.options.items())
        text = f'[[source]]\nkind = "{kind}"\n{place}\n{options}\n{self.sections}\n'
        (self.root / CONFIG_NAME).write_text(text)
        return load_settings(self.root)

    @property
    def source(self) -> Source:
        return next(iter(registry.sources(self.settings).values()))

    @property
    def layout(self) -> Layout:
        return Layout(self.settings.home)

    @property
    def is_current(self) -> bool:
        return is_current(self.settings, self.source)

    def index(self) -> Publication:
        return index(self.settings, self.source, StaticEmbedder())

    def write(self, name: str, text: str) -> None:
        """Write a file with an old timestamp derived from its text."""
        file = self.files / name
        file.write_text(text)
        os.utime(file, (LONG_AGO_S, LONG_AGO_S + sum(text.encode())))

    def commit(self) -> None:
        self.git(self.files, "add", "--all")
        self.git(self.files, "commit", "--quiet", "--allow-empty", "--message", "change")


def make(root: Path, git: Callable[..., str], kind: str) -> Project:
    project = Project(root, git, kind)
    project.files.mkdir()
    project.write("a.md", "# One\n\nThe first page.\n")
    if kind != "library":
        git(project.files, "init", "--quiet")
        project.commit()
    project.index()
    return project


@pytest.fixture(params=["library", "git"])
def project(request, tmp_path, git) -> Project:
    """Index a folder, either a library or a work tree."""
    return make(tmp_path, git, request.param)


@pytest.fixture
def library(tmp_path, git) -> Project:
    return make(tmp_path, git, "library")


@pytest.fixture
def repository(tmp_path, git) -> Project:
    return make(tmp_path, git, "git")


@pytest.fixture
def followed(tmp_path, git) -> Project:
    return make(tmp_path, git, "followed")


def test_it_is_when_it_was_just_made(project):
    assert project.is_current
    project.index()
    assert project.is_current


def test_it_is_not_before_anything_is_indexed(tmp_path, git):
    project = Project(tmp_path, git, "library")
    project.files.mkdir()
    assert not project.is_current


@pytest.mark.parametrize(
    "change",
    [
        lambda project: project.write("a.md", "# Two\n\nThe second page.\n"),
        lambda project: project.write("b.md", "# Two\n\nThe second page.\n"),
        lambda project: (project.files / "a.md").unlink(),
        lambda project: project.write(".docindexignore", "a.md\n"),
    ],
    ids=["edited", "added", "removed", "other rules"],
)
def test_it_is_not_when_a_file_changed_until_it_is_indexed_again(project, change):
    change(project)
    assert not project.is_current
    project.index()
    assert project.is_current


def test_it_is_not_after_a_commit_even_an_empty_one(repository):
    for options in ({}, {"version": '"7"'}):
        repository.options = options
        repository.index()
        repository.commit()
        assert not repository.is_current
        repository.index()
        assert repository.is_current


SETTINGS: dict[str, dict[str, Any]] = {
    "excluded files": {"options": {"exclude": '["b.md"]'}},
    "a version": {"options": {"version": '"7"'}},
    "sizes of files": {"sections": "[discovery]\nmax_file_bytes = 5"},
    "sizes of chunks": {"sections": "[chunking]\ntarget_tokens = 200"},
    "no graph": {"sections": "[graph]\nenabled = false"},
}


@pytest.mark.parametrize("values", SETTINGS.values(), ids=SETTINGS)
def test_it_is_not_under_other_settings(project, values):
    for name, value in values.items():
        setattr(project, name, value)
    assert not project.is_current
    project.index()
    assert project.is_current


def test_how_much_history_is_wanted_counts_where_there_is_some(project):
    if project.kind == "git":
        project.commit()
    project.index()
    project.sections = "[history]\ncommits = 1"
    assert project.is_current is (project.kind == "library")
    project.index()
    assert project.is_current


def test_settings_that_change_no_row_do_not_count(project):
    project.sections = "[search]\ntop_k = 3\n[chunking]\nworkers = 1"
    assert project.is_current


def test_it_is_not_after_a_stage_was_killed(project):
    """The tables are newer than the published index."""
    project.write("a.md", "# Two\n\nThe second page.\n")
    table = discover(project.source)
    tables.write(
        project.layout.table("discovered_files", project.source.key), tables.stamp(table, tables.data_version(table))
    )
    assert not project.is_current


@pytest.mark.parametrize("asset", ["discovered_files", "commits", "chunks", "embeddings"])
def test_it_is_not_without_its_tables(project, asset):
    project.layout.table(asset, project.source.key).unlink()
    assert not project.is_current


def test_it_is_not_after_a_look_at_single_files(project):
    place = project.layout.table("discovered_files", project.source.key)
    table = discover(project.source, tables.read(place), only=["a.md"])
    tables.write(place, tables.stamp(table, tables.data_version(table)))
    assert not project.is_current
    project.index()
    assert project.is_current


def test_it_is_not_when_the_source_was_taken_out(project):
    withdraw(project.layout, project.source.key)
    assert not project.is_current


def test_a_file_that_was_only_touched_leaves_the_same_index_current_once_it_was_looked_at(library):
    before = library.layout.current.read_bytes()
    os.utime(library.files / "a.md", (LONG_AGO_S, LONG_AGO_S + 9))
    assert not library.is_current
    library.index()
    assert library.is_current
    assert library.layout.current.read_bytes() == before


def test_a_file_that_is_dated_in_the_future_leaves_the_index_current_until_it_changes(project):
    a_year_ahead = time.time() + 365 * 24 * 3600
    os.utime(project.files / "a.md", (a_year_ahead, a_year_ahead))
    project.index()
    assert project.is_current
    project.write("a.md", "# Two\n\nThe second page.\n")
    assert not project.is_current


def test_a_file_that_is_written_as_it_is_indexed_is_looked_at_again(repository):
    os.utime(repository.files / "a.md", (time.time() + 50, time.time() + 50))
    repository.index()
    assert not repository.is_current


def test_a_file_that_is_emptied_as_it_is_indexed_costs_itself_alone_until_the_next_run(project):
    project.write("b.md", "# Two\n\nThe second page.\n")
    project.write("c.md", "# Three\n\nThe third page.\n")
    notices = list[str]()

    def listen(event: events.Event) -> None:
        if isinstance(event, events.StageEnded) and event.stage == "discovered_files":
            project.write("b.md", "")
        if isinstance(event, events.Notice):
            notices.append(event.text)

    with events.listening(listen):
        publication = project.index()

    assert publication.source.files == 2
    assert notices == ["1 file is skipped until the next run because of changes during indexing: b.md (empty: no text)"]
    assert not project.is_current
    project.index()
    assert project.is_current


def test_who_knows_the_fingerprint_can_say_so(project):
    seen = fingerprint(project.source)
    project.write("b.md", "# Two\n\nThe second page.\n")
    assert is_current(project.settings, project.source, seen)
    assert not is_current(project.settings, project.source, "another")


def test_of_a_followed_repository_it_tells_of_the_commit_that_is_checked_out(followed):
    assert followed.is_current
    followed.commit()
    assert followed.is_current
    followed.index()
    assert followed.is_current
    followed.options = {"branch": '"other"'}
    assert not followed.is_current


def test_a_source_that_cannot_be_listed_is_an_error(project):
    source, settings = project.source, project.settings
    project.files.rename(project.root / "moved")
    with pytest.raises(SourceError):
        is_current(settings, source)


def test_asking_loads_no_store_parser_or_model(library):
    script = (
        "import sys; from pathlib import Path; from docindex_dagster.pipeline.up_to_date import is_current;"
        "from docindex_dagster.core.settings import load_settings; from docindex_dagster.sources import registry;"
        "settings = load_settings(Path(sys.argv[1])); (source,) = registry.sources(settings).values();"
        "assert is_current(settings, source);"
        "print(*{'lancedb', 'tantivy', 'tree_sitter', 'dagster'} & set(sys.modules))"
    )
    assert library.is_current
    command = [sys.executable, "-c", script, str(library.root)]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip() == ""
