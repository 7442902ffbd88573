"""The file-watching sensors, driven by their own ticks on a real instance, and the runs they request."""

import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

import dagster as dg
import pytest

from docindex_dagster.core.settings import load_settings
from docindex_dagster.definitions import build_definitions
from docindex_dagster.defs import dead_runs
from docindex_dagster.defs.dead_runs import process_tags, report_dead_runs
from docindex_dagster.defs.jobs import removal_config
from docindex_dagster.defs.outcomes import delay_s
from docindex_dagster.defs.sensors.files import Memory
from docindex_dagster.defs.tags import PARTITION_TAG, VERIFY_TAG
from docindex_dagster.sources.changes import fingerprint
from docindex_dagster.sources.model import Source
from tests.defs.conftest import CONFIG, KEY, Project
from tests.defs.daemon import GIT, SENSORS, declare, partitions, published
from tests.recording import index_and_record


class TestNewSources:
    def test_a_new_source_gets_a_partition_and_one_run(self, daemon, project):
        assert daemon.settle() == [KEY]
        assert partitions(project) == published(project) == [KEY]

    def test_its_files_are_observed_with_a_data_version(self, daemon):
        daemon.settle()

        (observation,) = (event for event in daemon.events if isinstance(event, dg.AssetObservation))
        assert observation.partition == KEY
        assert observation.tags["dagster/data_version"]

    def test_nothing_is_asked_for_while_nothing_changes(self, daemon):
        daemon.settle()
        before = len(daemon.events)

        assert daemon.asks_for() == []
        assert len(daemon.events) == before

    def test_it_is_asked_for_though_its_first_run_was_never_made(self, daemon):
        assert daemon.asks_for() == [KEY]  # but the daemon died before it created the run

        assert daemon.asks_for() == [KEY]

    def test_many_new_sources_have_their_partitions_at_once_and_their_runs_by_and_by(
        self, daemon, project, monkeypatch
    ):
        for module in ("files", "sources"):
            monkeypatch.setattr(f"docindex_dagster.defs.sensors.{module}.MOST_REQUESTS", 3)
        declare(project, '[[source]]\nkind = "library"\npath = "all/{library}"\n')
        for number in range(8):
            (project.root / "all" / f"n{number}").mkdir(parents=True)

        first = daemon.tick("sources_changed")
        asked = [[request.partition_key for request in first.run_requests]]
        assert len(partitions(project)) == 8
        for key in asked[0]:
            daemon.run(dg.RunRequest(partition_key=key))
        for _ in range(4):
            asked.append(daemon.asks_for())
            for key in asked[-1]:
                daemon.run(dg.RunRequest(partition_key=key))

        assert [len(keys) for keys in asked] == [3, 0, 3, 2, 0]
        assert sorted(key for keys in asked for key in keys) == partitions(project)

    def test_a_source_that_cannot_be_read_does_not_disturb_the_others(self, daemon, project):
        declare(project, CONFIG + '[[source]]\nkind = "library"\nname = "gone"\npath = "gone"\n')

        assert sorted(daemon.asks_for()) == ["library/gone", KEY]
        daemon.run(dg.RunRequest(partition_key=KEY))
        assert published(project) == [KEY]


class TestChangedFiles:
    def test_each_change_is_one_run_even_back_to_what_was(self, daemon, project):
        daemon.settle()
        guide = project.notes / "guide.md"
        texts = [guide.read_text(), "# Other\n\nAnother text of another size.\n"]

        for text in (texts[1], texts[0], texts[1]):
            guide.write_text(text)
            requests = daemon.requests()
            assert [request.partition_key for request in requests] == [KEY]
            assert all(request.run_key is None for request in requests)
            daemon.run(requests[0])
            assert daemon.asks_for() == []

    def test_an_edited_setting_is_noticed_like_an_edited_file(self, daemon, project):
        daemon.settle()
        declare(project, CONFIG + "[chunking]\ncode_chars = 900\n")

        assert daemon.settle() == [KEY]

    def test_what_a_command_has_indexed_already_is_not_asked_for(self, daemon, project):
        daemon.settle()
        (project.notes / "guide.md").write_text("# New\n\nIndexed by hand before the sensor came to it.\n")

        assert index_and_record(load_settings(project.root), KEY, project.instance).succeeded

        assert daemon.asks_for() == []

    def test_a_change_during_a_run_is_asked_for_when_the_run_is_over(self, daemon, project):
        daemon.settle()
        job = build_definitions(project.root).resolve_job_def("index_source")
        tags = {**process_tags(""), PARTITION_TAG: KEY}
        run = project.instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED, tags=tags)
        (project.notes / "guide.md").write_text("# New\n\nWritten while a run went on.\n")

        assert daemon.asks_for() == []
        project.instance.report_run_canceled(run)

        assert daemon.asks_for() == [KEY]

    @pytest.mark.parametrize("status", [dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTING])
    def test_a_source_whose_run_waits_is_not_asked_for_again(self, daemon, project, status):
        daemon.settle()
        job = build_definitions(project.root).resolve_job_def("index_source")
        project.instance.create_run_for_job(job, status=status, tags={PARTITION_TAG: KEY})
        (project.notes / "guide.md").write_text("# New\n\nThe run that waits will see this.\n")

        assert daemon.asks_for() == []

    def test_a_run_that_a_user_cancelled_is_not_asked_for_until_the_next_change(self, daemon, project):
        daemon.settle()
        (project.notes / "guide.md").write_text("# New\n\nA text that nobody wants to index now.\n")
        assert daemon.asks_for() == [KEY]
        job = build_definitions(project.root).resolve_job_def("index_source")
        run = project.instance.create_run_for_job(
            job, status=dg.DagsterRunStatus.STARTED, tags={**process_tags(""), PARTITION_TAG: KEY}
        )
        project.instance.report_run_canceled(run)

        assert daemon.asks_for() == []
        (project.notes / "guide.md").write_text("# New\n\nA text that is worth it again.\n")
        assert daemon.asks_for() == [KEY]

    def test_a_cleared_or_broken_cursor_costs_no_run(self, daemon):
        daemon.settle()

        for cursor in (None, "no JSON", "{}", '{"seen": 3}'):
            daemon.cursors = dict.fromkeys(SENSORS, cursor)
            assert daemon.asks_for() == []


class TestFailures:
    def test_the_waits_after_failures_double_up_to_six_hours(self):
        assert [delay_s(count) for count in range(5)] == [0, 60, 120, 240, 480]
        assert delay_s(40) == 6 * 60 * 60

    def break_it(self, project: Project) -> Path:
        """A source that claims to be a repository and is not, so its run fails."""
        folder = project.root / "code"
        folder.mkdir()
        (folder / "sums.py").write_text("def total(): ...\n")
        declare(project, CONFIG + '[[source]]\nkind = "git"\nname = "code"\nurl = "file:///nowhere/at/all"\n')
        return folder

    def test_a_source_that_keeps_failing_is_asked_for_later_each_time(self, daemon, project, clock):
        self.break_it(project)
        assert sorted(daemon.settle()) == [GIT, KEY]
        waits = []
        for _ in range(4):
            waited = 0
            while not (requests := daemon.requests()):
                clock(20)
                waited += 20
            daemon.run(requests[0])
            waits.append(waited)

        assert waits == sorted(waits)
        assert waits[0] >= 40
        assert waits[-1] >= 400
        assert published(project) == [KEY]

    def test_work_trees_that_git_does_not_come_back_from_cost_a_tick_their_share(
        self, daemon, project, git, monkeypatch
    ):
        for name in ("one", "two", "well"):
            (project.root / name).mkdir()
            git(project.root / name, "init", "-q")
        for name in ("one", "two"):
            os.mkfifo(project.root / name / ".gitignore")
        declare(project, "".join(f'[[source]]\nkind = "git"\npath = "{name}"\n' for name in ("one", "two", "well")))
        monkeypatch.setattr("docindex_dagster.defs.sensors.files._GIT_SHARE_S", 0.2)
        monkeypatch.setattr("docindex_dagster.defs.sensors.files._BUDGET_S", 0.1)
        daemon.tick("sources_changed")

        for _ in range(3):
            daemon.tick("git_head_changed")

        seen = Memory.of(daemon.cursors["git_head_changed"]).seen
        assert {key for key, what in seen.items() if what.state} == {"git/well"}

    def test_a_folder_that_answers_late_costs_one_tick_its_share_and_is_noticed_when_it_does(
        self, daemon, project, monkeypatch
    ):
        daemon.settle()
        (project.root / "slow").mkdir()
        declare(project, CONFIG + '[[source]]\nkind = "library"\npath = "slow"\n')
        looks, answers = [], threading.Event()

        def look(source: Source) -> str:
            if source.name == "slow":
                looks.append(source.key)
                answers.wait()
            return fingerprint(source)

        monkeypatch.setattr("docindex_dagster.defs.sensors.files.fingerprint", look)
        monkeypatch.setattr("docindex_dagster.defs.sensors.files._SHARE_S", 0.2)
        monkeypatch.setattr("docindex_dagster.defs.sensors.files._BUDGET_S", 0.1)
        daemon.tick("sources_changed")
        (project.notes / "guide.md").write_text("# New\n\nNoticed though another folder does not answer.\n")

        asked = [request for _ in range(3) for request in daemon.tick("library_files_changed").run_requests]
        assert (KEY in {request.partition_key for request in asked}, looks) == (True, ["library/slow"])

        answers.set()
        while not Memory.of(daemon.cursors["library_files_changed"]).seen["library/slow"].state:
            daemon.tick("library_files_changed")
        assert looks == ["library/slow"]

    def test_a_run_over_one_file_does_not_end_them(self, daemon, project, clock):
        daemon.settle()
        killed_run(project)
        daemon.requests()
        settings = load_settings(project.root)

        assert index_and_record(settings, KEY, project.instance, only=("guide.md",)).succeeded
        clock(70)

        assert daemon.settle() == [KEY]

    def test_a_mended_declaration_is_tried_at_once(self, daemon, project, git):
        folder = self.break_it(project)
        daemon.settle()
        assert daemon.asks_for() == []
        git(folder, "init", "-q")

        declare(project, CONFIG + '[[source]]\nkind = "git"\nname = "code"\npath = "code"\n')

        assert daemon.settle() == [GIT]
        assert published(project) == [GIT, KEY]

    def test_a_run_that_failed_and_that_no_sensor_asked_for_is_made_up_for(self, daemon, project, clock):
        daemon.settle()
        daemon.requests()
        job = build_definitions(project.root).resolve_job_def("index_source")
        run = project.instance.create_run_for_job(
            job, status=dg.DagsterRunStatus.STARTED, tags={**process_tags(""), PARTITION_TAG: KEY}
        )
        project.instance.report_run_failed(run)
        assert daemon.asks_for() == []

        clock(70)

        assert daemon.settle() == [KEY]
        clock(7000)
        assert daemon.asks_for() == []


def killed_run(
    project: Project,
    status: dg.DagsterRunStatus = dg.DagsterRunStatus.STARTED,
    repeated: str | None = None,
    others: Mapping[str, str] | None = None,
) -> dg.DagsterRun:
    """Create a run whose process is gone, or one that repeats such a run's tags; `others` override tags."""
    job = build_definitions(project.root).resolve_job_def("index_source")
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    run_id = str(uuid4())
    tags = {**process_tags(repeated or run_id), ".dagster/docindex/pid": str(process.pid), PARTITION_TAG: KEY}
    tags |= others or {}
    return project.instance.create_run_for_job(job, run_id=run_id, status=status, tags=tags)


def status_of(project: Project, run: dg.DagsterRun) -> dg.DagsterRunStatus:
    found = project.instance.get_run_by_id(run.run_id)
    assert found is not None
    return found.status


class TestKilledRuns:
    def test_a_run_whose_process_is_gone_is_reported_failed_and_asked_for_again_at_once(self, daemon, project):
        daemon.settle()
        run = killed_run(project)

        assert daemon.settle() == [KEY]
        assert status_of(project, run) is dg.DagsterRunStatus.FAILURE

    def test_a_source_whose_runs_are_killed_again_and_again_has_to_wait(self, daemon, project):
        daemon.settle()
        killed_run(project)
        assert daemon.asks_for() == [KEY]
        killed_run(project)

        assert daemon.asks_for() == []

    def test_it_is_asked_for_when_the_source_can_be_read_again(self, daemon, project):
        daemon.settle()
        run = killed_run(project)
        project.notes.rename(project.root / "away")
        assert daemon.asks_for() == []
        assert status_of(project, run) is dg.DagsterRunStatus.FAILURE

        (project.root / "away").rename(project.notes)

        assert daemon.asks_for() == [KEY]

    def test_it_is_asked_for_however_long_the_source_could_not_be_read(self, daemon, project, clock):
        daemon.settle()
        killed_run(project)
        project.notes.rename(project.root / "away")
        for _ in range(3):
            assert daemon.asks_for() == []
            clock(100)

        (project.root / "away").rename(project.notes)

        assert daemon.asks_for() == [KEY]

    def test_a_verification_that_was_killed_is_made_up_for_by_one(self, daemon, project):
        daemon.settle()
        run = killed_run(project)
        project.instance.add_run_tags(run.run_id, {VERIFY_TAG: "true"})

        (request,) = daemon.requests()

        assert request.tags[VERIFY_TAG] == "true"

    def test_runs_of_every_job_tell_their_process(self, daemon, project):
        daemon.settle()
        daemon.definitions.resolve_job_def("clean_up_dagster").execute_in_process(instance=project.instance)
        removal = daemon.definitions.resolve_job_def("remove_source")
        removal.execute_in_process(instance=project.instance, run_config=removal_config(KEY))

        tags = {run.job_name: run.tags for run in project.instance.get_runs()}

        assert {name for name, of_run in tags.items() if of_run[".dagster/docindex/pid"] == str(os.getpid())} == {
            "clean_up_dagster",
            "remove_source",
        }

    def test_indexing_a_source_by_hand_makes_up_for_its_killed_run(self, daemon, project):
        daemon.settle()
        run = killed_run(project)

        assert index_and_record(load_settings(project.root), KEY, project.instance).succeeded

        assert status_of(project, run) is dg.DagsterRunStatus.FAILURE
        assert daemon.asks_for() == []

    @pytest.mark.parametrize("status", [dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTING])
    def test_a_run_that_repeats_a_killed_one_has_its_tags_and_is_left_alone(self, daemon, project, status):
        daemon.settle()
        killed = killed_run(project)
        daemon.asks_for()
        repeating = killed_run(project, status, repeated=killed.run_id)

        daemon.asks_for()

        assert status_of(project, repeating) is status

    def test_a_run_of_a_living_process_is_left_alone(self, daemon, project):
        daemon.settle()
        job = build_definitions(project.root).resolve_job_def("index_source")
        tags = {**process_tags(""), PARTITION_TAG: KEY}
        run = project.instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED, tags=tags)

        assert daemon.asks_for() == []
        assert status_of(project, run) is dg.DagsterRunStatus.STARTED

    def test_a_later_process_with_the_same_number_does_not_keep_a_run_alive(self, daemon, project):
        daemon.settle()
        job = build_definitions(project.root).resolve_job_def("index_source")
        tags = {**process_tags(""), ".dagster/docindex/process_started": "1", PARTITION_TAG: KEY}
        project.instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED, tags=tags)

        assert daemon.asks_for() == [KEY]

    @pytest.mark.parametrize("place", ["host", "boot", "pid_namespace"])
    def test_a_run_of_another_container_is_left_alone_though_its_number_is_no_process_here(self, project, place):
        elsewhere = {f".dagster/docindex/{place}": "another", ".dagster/docindex/machine": ""}
        run = killed_run(project, others=elsewhere)

        assert report_dead_runs(project.instance, load_settings(project.root)) == []
        assert status_of(project, run) is dg.DagsterRunStatus.STARTED

    def test_a_run_of_a_boot_before_this_one_is_dead_whatever_process_has_its_number(self, project, monkeypatch):
        here = {**dead_runs._place(), ".dagster/docindex/machine": "8c6f"}
        monkeypatch.setattr(dead_runs, "_place", lambda: here)
        job = build_definitions(project.root).resolve_job_def("index_source")
        tags = {**process_tags(""), ".dagster/docindex/boot": "the one before"}
        run = project.instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED, tags=tags)

        assert [dead.run_id for dead in report_dead_runs(project.instance, load_settings(project.root))] == [run.run_id]

    def test_where_the_system_tells_nothing_of_itself_the_number_decides(self, project, monkeypatch):
        here = dict.fromkeys(dead_runs._place(), "") | {".dagster/docindex/host": "a-mac"}
        monkeypatch.setattr(dead_runs, "_place", lambda: here)
        run = killed_run(project)

        assert [dead.run_id for dead in report_dead_runs(project.instance, load_settings(project.root))] == [run.run_id]
