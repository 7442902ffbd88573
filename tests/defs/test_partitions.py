"""The life cycle of partitions and remote repositories, driven by the sensors' own ticks."""

from pathlib import Path

import dagster as dg
import pytest

from docindex_dagster.core.settings import load_settings
from docindex_dagster.defs.tags import SOURCES_NAME
from docindex_dagster.sources import removed_sources
from tests.defs.conftest import CONFIG, GUIDE, KEY, Project
from tests.defs.daemon import GIT, Daemon, check, declare, partitions, published
from tests.recording import index_and_record


class TestLifeOfAPartition:
    OTHER = '[[source]]\nkind = "library"\nname = "other"\npath = "other"\n'

    @pytest.fixture(autouse=True)
    def other(self, project):
        (project.root / "other").mkdir()
        (project.root / "other" / "page.md").write_text("# Other\n\nA page about marmots and their burrows.\n")
        declare(project, CONFIG + self.OTHER)

    def test_a_partition_deleted_in_the_ui_takes_its_source_out_for_good(self, daemon, project):
        daemon.settle()
        project.instance.delete_dynamic_partition(SOURCES_NAME, KEY)

        assert daemon.settle() == [f"-{KEY}"]

        assert partitions(project) == published(project) == ["library/other"]
        assert project.search("green button") == []
        assert daemon.asks_for() == []

    def test_one_that_is_deleted_before_the_next_tick_is_taken_out_as_well(self, daemon, project):
        for request in daemon.tick("sources_changed").run_requests:
            daemon.run(request)
        project.instance.delete_dynamic_partition(SOURCES_NAME, KEY)

        assert daemon.settle() == [f"-{KEY}"]
        assert partitions(project) == published(project) == ["library/other"]

    def test_adding_the_partition_again_brings_it_back(self, daemon, project):
        daemon.settle()
        project.instance.delete_dynamic_partition(SOURCES_NAME, KEY)
        daemon.settle()

        project.instance.add_dynamic_partitions(SOURCES_NAME, [KEY])

        assert daemon.settle() == [KEY]
        assert published(project) == [KEY, "library/other"]

    def test_indexing_it_by_name_brings_it_back(self, daemon, project):
        daemon.settle()
        project.instance.delete_dynamic_partition(SOURCES_NAME, KEY)
        daemon.settle()

        assert index_and_record(load_settings(project.root), KEY, project.instance).succeeded

        assert daemon.asks_for() == []
        assert partitions(project) == published(project) == [KEY, "library/other"]

    def test_a_partition_is_deleted_while_the_daemon_cannot_run_what_follows(self, daemon, project):
        daemon.settle()
        project.instance.delete_dynamic_partition(SOURCES_NAME, KEY)

        assert daemon.asks_for() == [f"-{KEY}"]  # but the run was never created

        assert daemon.settle() == [f"-{KEY}"]

    def test_a_source_under_a_new_name_replaces_the_old_one_once_it_is_searchable(self, daemon, project):
        daemon.settle()
        declare(project, CONFIG + self.OTHER.replace('name = "other"', 'name = "marmots"'))

        first = daemon.requests()
        assert [request.partition_key for request in first] == ["library/marmots"]
        assert "library/other" in published(project)
        daemon.run(first[0])

        assert daemon.settle() == ["-library/other"]
        assert partitions(project) == published(project) == ["library/marmots", KEY]
        assert removed_sources.removed_keys(project.layout) == set()

    def test_a_source_that_is_declared_no_more_keeps_its_index_and_is_reported(self, daemon, project):
        daemon.settle()
        declare(project, CONFIG)

        assert daemon.asks_for() == []

        assert published(project) == partitions(project) == [KEY, "library/other"]
        found = check(project, "every_folder_is_there")
        assert not found.passed
        assert "library/other" in str(found.metadata["sources"].value)

    def test_a_missing_folder_is_reported_and_its_index_stays(self, daemon, project):
        daemon.settle()
        assert check(project, "every_folder_is_there").passed
        project.notes.rename(project.root / "away")

        assert daemon.asks_for() == []
        assert not check(project, "every_folder_is_there").passed
        assert published(project) == [KEY, "library/other"]

        (project.root / "away").rename(project.notes)
        assert daemon.asks_for() == []
        assert check(project, "every_folder_is_there").passed

    def test_a_lost_instance_gets_its_partitions_back(self, daemon, project):
        daemon.settle()
        declare(project, CONFIG)

        with dg.DagsterInstance.ephemeral() as fresh:
            other = Daemon(Project(project.root, fresh), daemon.definitions)
            assert other.settle() == []  # published and valid sources cost no run
            assert sorted(fresh.get_dynamic_partitions(SOURCES_NAME)) == [KEY, "library/other"]

    def test_each_folder_of_a_folder_is_a_partition(self, daemon, project):
        declare(project, '[[source]]\nkind = "library"\npath = "all/{library}"\n')
        for name in ("a", "b"):
            (project.root / "all" / name).mkdir(parents=True)
            (project.root / "all" / name / "page.md").write_text(GUIDE)
        assert sorted(daemon.settle()) == ["library/a", "library/b"]

        (project.root / "all" / "c").mkdir()

        assert daemon.settle() == ["library/c"]


class TestRepositories:
    @pytest.fixture
    def origin(self, project, git):
        folder = project.root / "origin"
        folder.mkdir()
        git(folder, "init", "-q")
        self.commit(git, folder, "One")
        return folder

    def commit(self, git, folder: Path, text: str) -> None:
        (folder / "page.md").write_text(f"# {text}\n\nWhat {text} says about burrows.\n")
        git(folder, "add", ".")
        git(folder, "commit", "-qm", text)

    def test_a_commit_a_branch_and_uncommitted_work_are_noticed(self, daemon, project, origin, git):
        declare(project, '[[source]]\nkind = "git"\nname = "code"\npath = "origin"\n')
        assert daemon.settle() == [GIT]

        self.commit(git, origin, "Two")
        assert daemon.settle() == [GIT]
        git(origin, "checkout", "-qb", "other")
        daemon.settle()  # the same commit: a run may or may not follow
        (origin / "page.md").write_text("# Dirty\n\nNot committed yet, and already found.\n")
        assert daemon.settle() == [GIT]
        assert daemon.asks_for() == []

    def test_a_new_commit_of_a_remote_is_noticed_when_it_is_asked_again(self, daemon, project, origin, git, clock):
        declare(project, f'[[source]]\nkind = "git"\nname = "code"\nurl = "{origin.as_uri()}"\n')
        assert daemon.settle() == [GIT]
        self.commit(git, origin, "Two")
        assert daemon.asks_for() == []

        clock(301)

        assert daemon.settle() == [GIT]
        assert project.search("What Two says") == ["page.md"]
        clock(301)
        assert daemon.asks_for() == []

    def test_a_followed_branch_that_goes_gets_a_run_that_says_so(self, daemon, project, origin, git, clock):
        git(origin, "branch", "side")
        declare(project, f'[[source]]\nkind = "git"\nname = "code"\nurl = "{origin.as_uri()}"\nbranch = "side"\n')
        daemon.settle()
        git(origin, "branch", "-D", "side")
        clock(301)

        (request,) = daemon.requests()

        result = daemon.run(request)
        assert not result.success
        assert published(project) == [GIT]

    def test_a_remote_that_does_not_answer_is_reported_and_stops_no_other(self, daemon, project, origin, git, clock):
        declare(project, CONFIG + f'[[source]]\nkind = "git"\nname = "code"\nurl = "{origin.as_uri()}"\n')
        daemon.settle()
        origin.rename(project.root / "moved")
        (project.notes / "guide.md").write_text("# New\n\nWritten while a remote is away.\n")
        clock(301)

        assert daemon.settle() == [KEY]
        assert not check(project, "every_remote_answers").passed

        (project.root / "moved").rename(origin)
        clock(700)
        assert daemon.asks_for() == []
        assert check(project, "every_remote_answers").passed
