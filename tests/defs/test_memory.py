"""The asset `memory` and its sensor: real ticks on a real instance, and the runs they request."""

import shutil
import zlib
from collections.abc import Iterator
from typing import Any

import dagster as dg
import pytest

from docindex_dagster.core.settings import Settings, load_settings
from docindex_dagster.definitions import build_definitions
from docindex_dagster.defs import alerts, recorded_runs
from docindex_dagster.defs.tags import DOMAINS_NAME, PARTITION_TAG, REASON_TAG
from docindex_dagster.memory import domains
from docindex_dagster.memory.fold import fold
from docindex_dagster.memory.memory import Memory
from tests.defs.conftest import QUIET, Project
from tests.defs.daemon import Daemon
from tests.defs.quick_runs import quick_run
from tests.defs.test_alerts import Sensor

DOMAIN, OTHER = "memory/main", "project/acme"
CONFIG = "[memory]\nfold_messages = 3\nper_second = 1000\n"
WORD = "quixotically"  # appears in every message and nowhere else


@pytest.fixture
def project(tmp_path) -> Iterator[Project]:
    (tmp_path / "docindex.toml").write_text(CONFIG)
    with dg.DagsterInstance.ephemeral() as instance:
        yield Project(tmp_path, instance)


@pytest.fixture
def settings(project) -> Settings:
    return load_settings(project.root)


def write(project: Project, count: int, domain: str = DOMAIN, session: str = "s") -> Memory:
    memory = Memory(load_settings(project.root), domain)
    there = sum(one.messages for one in memory.status())
    for number in range(there, there + count):
        memory.ingest(f"Message {number} says {WORD} that The Scheduler uses the Queue", session=session, role="user")
    return memory


def tick(daemon: Daemon) -> list[dg.RunRequest]:
    return list(daemon.tick("memory").run_requests or ())


def asked(daemon: Daemon) -> list[tuple[str | None, str]]:
    return [(request.partition_key, request.tags[REASON_TAG]) for request in tick(daemon)]


def settle(daemon: Daemon) -> list[str | None]:
    """Tick and run until nothing is requested; return the requested domains."""
    done: list[str | None] = []
    for _ in range(5):
        requests = tick(daemon)
        if not requests:
            return done
        for request in requests:
            assert run(daemon.project, str(request.partition_key)).success
            done.append(request.partition_key)
    raise AssertionError(f"the sensor asks for ever: {done}")


def run(project: Project, domain: str = DOMAIN) -> dg.ExecuteInProcessResult:
    project.instance.add_dynamic_partitions(DOMAINS_NAME, [domain])
    job = build_definitions(project.root).resolve_job_def("fold_memory")
    return job.execute_in_process(
        instance=project.instance, partition_key=domain, raise_on_error=False, run_config=QUIET
    )


def made(result: dg.ExecuteInProcessResult) -> dg.AssetMaterialization:
    [event] = result.asset_materializations_for_node("memory")
    return event


def numbers(result: dg.ExecuteInProcessResult) -> dict[str, object]:
    return {name: entry.value for name, entry in made(result).metadata.items()}


def version(result: dg.ExecuteInProcessResult) -> str:
    return made(result).tags["dagster/data_version"]


def partitions(project: Project) -> list[str]:
    return sorted(project.instance.get_dynamic_partitions(DOMAINS_NAME))


class TestAsset:
    def test_a_run_folds_its_domain_and_shows_what_it_made_of_it(self, project):
        memory = write(project, 4)
        write(project, 2, OTHER)

        found = numbers(run(project))

        assert {name: found[name] for name in ("messages", "added", "removed", "chunks", "generation")} == {
            "messages": 4,
            "added": 4,
            "removed": 0,
            "chunks": 4,
            "generation": 1,
        }
        assert all(found[name] for name in ("concepts", "edges", "seconds"))
        assert [one.tail for one in memory.status()] == [0]
        assert [one.tail for one in Memory(load_settings(project.root), OTHER).status()] == [2]

    def test_the_data_version_is_that_of_the_content(self, project):
        write(project, 2)
        first, again = version(run(project)), version(run(project))
        write(project, 1)

        assert first == again != version(run(project))

    def test_what_is_forgotten_is_erased(self, project):
        memory = write(project, 2)
        write(project, 1, session="secret")
        assert run(project).success
        memory.forget(session="secret")

        found = numbers(run(project))

        assert (found["messages"], found["removed"], found["erased"]) == (2, 1, 1)
        assert found["erased_files"]

    def test_a_domain_in_which_nothing_was_said_is_nothing(self, project):
        assert numbers(run(project))["messages"] == 0

    def test_damage_of_the_log_is_a_warning_that_names_it(self, project, settings):
        write(project, 3)
        [segment] = domains.home(project.layout, DOMAIN).log.rglob("*.seg")
        data = bytearray(segment.read_bytes())
        data[len(data) // 2] ^= 1
        segment.write_bytes(data)

        result = run(project)

        [check] = result.get_asset_check_evaluations()
        assert result.success
        assert (check.passed, check.severity) == (False, dg.AssetCheckSeverity.WARN)
        [row] = check.metadata["where"].value.records
        assert row.data["place"].startswith(f"{segment.parent.name}/{segment.name} at byte ")
        assert numbers(result)["messages"] == 2

    def test_a_source_is_indexed_without_it_and_it_without_a_source(self):
        definitions = build_definitions()

        def assets(job: str) -> set[str]:
            selected = definitions.resolve_job_def(job).asset_layer.selected_asset_keys
            return {key.to_user_string() for key in selected}

        assert assets("fold_memory") == {"memory"}
        assert "memory" not in assets("index_source")


class TestNoWordIsRecorded:
    """Forgotten text could not be erased from Dagster's event log."""

    def recorded(self, project: Project) -> str:
        ids = project.instance.get_run_ids()
        return repr([project.instance.all_logs(run_id) for run_id in ids]) + repr(project.instance.get_runs())

    def test_by_a_run(self, project):
        write(project, 4)

        assert run(project).success
        assert WORD not in self.recorded(project)

    @pytest.mark.parametrize("fails", ["extract", "raise"])
    def test_by_a_run_in_which_what_fails_quotes_it(self, project, monkeypatch, fails):
        def quote(_settings: Settings, domain: str, **_: object) -> object:
            raise ValueError(f"cannot read: {WORD}")

        write(project, 4)
        if fails == "raise":
            monkeypatch.setattr("docindex_dagster.defs.memory.fold", quote)
        else:
            monkeypatch.setattr("docindex_dagster.graph.build.build_graph", Quoting())

        result = run(project)

        assert result.success is (fails == "extract")
        assert WORD not in self.recorded(project)
        if fails == "raise":
            assert "ValueError: details may quote messages" in self.recorded(project)
        else:
            assert numbers(result)["warnings"] == 1

    def test_by_its_sensor(self, project, daemon):
        write(project, 4)

        settle(daemon)

        assert WORD not in self.recorded(project) + repr(daemon.events) + repr(daemon.cursors)


class Quoting:
    """Fails once with a message that quotes the text, as a third-party extractor may."""

    def __init__(self) -> None:
        from docindex_dagster.graph.build import build_graph

        self._build, self._has_failed = build_graph, False

    def __call__(self, *arguments: Any) -> object:
        if self._has_failed:
            return self._build(*arguments)
        self._has_failed = True
        raise ValueError(f"cannot read: {WORD}")


class TestSensor:
    def test_a_domain_gets_its_partition_and_a_run_once_enough_messages_wait(self, project, daemon):
        assert asked(daemon) == []
        write(project, 2)
        assert asked(daemon) == []
        assert partitions(project) == [DOMAIN]

        write(project, 1)

        assert asked(daemon) == [(DOMAIN, "3 unfolded messages")]

    def test_what_waits_for_long_is_asked_for(self, project, daemon, clock):
        write(project, 1)
        assert asked(daemon) == []

        clock(11 * 60)

        assert asked(daemon) == [(DOMAIN, "the oldest of 1 unfolded messages is 11 minutes old")]

    def test_what_is_to_be_erased_is_asked_for(self, project, daemon):
        memory = write(project, 1)
        assert run(project).success
        memory.forget(everything=True)

        assert asked(daemon) == [(DOMAIN, "an erasure is pending")]

    def test_idle_ticks_ask_for_no_run(self, project, daemon, clock):
        write(project, 4)
        write(project, 4, OTHER)
        assert settle(daemon) == [DOMAIN, OTHER]
        runs = len(project.instance.get_run_ids())

        for _ in range(3):
            clock(60 * 60)
            assert asked(daemon) == []

        assert len(project.instance.get_run_ids()) == runs

    def test_a_domain_is_not_asked_for_while_a_run_of_it_waits(self, project, daemon):
        write(project, 3)
        assert asked(daemon) == [(DOMAIN, "3 unfolded messages")]
        waiting = dg.DagsterRun("fold_memory", status=dg.DagsterRunStatus.NOT_STARTED, tags={PARTITION_TAG: DOMAIN})
        project.instance.add_run(waiting)

        assert asked(daemon) == []

    def test_it_is_asked_for_again_though_its_run_was_never_made(self, project, daemon):
        write(project, 3)

        assert asked(daemon) == asked(daemon) == [(DOMAIN, "3 unfolded messages")]

    def test_a_run_that_changed_nothing_is_not_asked_for_again(self, project, daemon):
        write(project, 3)
        assert len(asked(daemon)) == 1
        quick_run(project.instance, key=DOMAIN, job="fold_memory")  # it succeeded but folded nothing

        assert asked(daemon) == []
        write(project, 1)
        assert asked(daemon) == [(DOMAIN, "4 unfolded messages")]

    def test_a_run_that_failed_is_asked_for_again_later_and_later(self, project, daemon, clock):
        write(project, 3)
        waited = []
        for minutes in (1, 2, 4):
            assert len(asked(daemon)) == 1
            quick_run(project.instance, "the disk is full", key=DOMAIN, job="fold_memory")
            clock(minutes * 60 - 5)
            waited.append(asked(daemon))
            clock(10)

        assert waited == [[], [], []]
        assert len(asked(daemon)) == 1

    def test_a_run_that_a_user_cancelled_is_asked_for_when_messages_have_waited_again(self, project, daemon, clock):
        write(project, 3)
        assert len(asked(daemon)) == 1
        run_id = quick_run(project.instance, key=DOMAIN, job="fold_memory")
        project.instance.report_run_canceled(project.instance.get_run_by_id(run_id))
        write(project, 1)
        assert asked(daemon) == []

        clock(10 * 60 + 5)

        assert asked(daemon) == [(DOMAIN, "4 unfolded messages")]

    def test_a_domain_that_cannot_be_read_does_not_disturb_the_others(self, project, daemon):
        write(project, 3)
        write(project, 3, OTHER)
        [segment] = domains.home(project.layout, DOMAIN).log.rglob("*.seg")
        newer = bytearray(segment.read_bytes())
        newer[8:12] = b"\x02\0\0\0"  # the format version
        newer[12:16] = zlib.crc32(bytes(newer[:12])).to_bytes(4, "little")
        segment.write_bytes(newer)

        assert asked(daemon) == [(OTHER, "3 unfolded messages")]

    def test_a_domain_that_is_gone_loses_its_partition_and_its_runs(self, project, daemon):
        write(project, 3)
        write(project, 3, OTHER)
        assert settle(daemon) == [DOMAIN, OTHER]
        shutil.rmtree(domains.home(project.layout, DOMAIN).home)

        assert asked(daemon) == []

        assert partitions(project) == [OTHER]
        left = {one.tags[PARTITION_TAG] for one in project.instance.get_runs()}
        assert left == {OTHER}

    def test_in_time_all_domains_are_looked_at(self, project, daemon, monkeypatch):
        monkeypatch.setattr("docindex_dagster.defs.memory.MOST_REQUESTS", 1)
        write(project, 3)
        write(project, 3, OTHER)

        assert [asked(daemon)[0][0] for _ in range(3)] == [DOMAIN, OTHER, DOMAIN]
        assert partitions(project) == [DOMAIN, OTHER]

    def test_a_tick_ends_with_its_budget(self, project, daemon, monkeypatch):
        monkeypatch.setattr("docindex_dagster.defs.memory._BUDGET_S", -1)
        write(project, 3)

        assert asked(daemon) == []
        assert partitions(project) == [DOMAIN]


class TestOthers:
    def test_a_failed_run_is_reported_and_so_is_that_it_works_again(self, project, monkeypatch, capfd):
        sent: list[str] = []
        monkeypatch.setattr(alerts, "_send", lambda _context, _settings, payload: sent.append(payload["text"]))
        sensor = Sensor(project)
        sensor.tick()
        quick_run(project.instance, "full", key=DOMAIN, job="fold_memory")

        assert sensor.tick() == "failed runs: 1, messages: 1"
        assert "`docindex index" not in capfd.readouterr().err  # that command only knows sources
        write(project, 1)
        assert run(project).success
        assert sensor.tick() == "failed runs: 0, messages: 1"
        assert sent == [f"docindex: {DOMAIN} failed: discovered_files: full", f"docindex: {DOMAIN} works again"]

    def test_no_run_of_it_is_a_job_that_indexes_a_source(self, project, settings):
        write(project, 3)
        assert run(project).success

        assert recorded_runs.newest_jobs(project.instance, settings, 10) == []

    def test_two_folds_of_a_domain_wait_for_each_other(self, project, settings):
        write(project, 3)
        fold(settings, DOMAIN)

        assert numbers(run(project))["added"] == 0
