"""Dagster's daemon, reduced to sensors: ticks on a real instance and the runs they request."""

from dataclasses import dataclass, field

import dagster as dg

from docindex_dagster.defs.resources import Project as ProjectResource
from docindex_dagster.defs.tags import SOURCE_TAG, SOURCES_NAME
from docindex_dagster.stores.generation import read_generation
from tests.defs.conftest import QUIET, Project

SENSORS = ("sources_changed", "library_files_changed", "git_head_changed")
GIT = "git/code"


@dataclass
class Daemon:
    """Stand-in for the sensor part of Dagster's daemon: ticks, partitions, events, runs."""

    project: Project
    definitions: dg.Definitions
    cursors: dict[str, str | None] = field(default_factory=dict)
    events: list[object] = field(default_factory=list)

    def tick(self, name: str) -> dg.SensorResult:
        """Evaluate a sensor once and apply everything it returns except its runs."""
        repository = self.definitions.get_repository_def()
        resources = {"project": ProjectResource(root=str(self.project.root))}
        with dg.build_sensor_context(
            instance=self.project.instance,
            cursor=self.cursors.get(name),
            resources=resources,
            repository_def=repository,
            sensor_name=name,
        ) as context:
            result = repository.get_sensor_def(name)(context)
        assert isinstance(result, dg.SensorResult)
        self.cursors[name] = result.cursor
        for request in result.dynamic_partitions_requests or ():
            self._change(request)
        self.events += result.asset_events
        for event in result.asset_events:
            self.project.instance.report_runless_asset_event(event)
        return result

    def _change(self, request: dg.AddDynamicPartitionsRequest | dg.DeleteDynamicPartitionsRequest) -> None:
        name, keys = request.partitions_def_name, list(request.partition_keys)
        if isinstance(request, dg.AddDynamicPartitionsRequest):
            self.project.instance.add_dynamic_partitions(name, keys)
            return
        for key in keys:
            self.project.instance.delete_dynamic_partition(name, key)

    def requests(self) -> list[dg.RunRequest]:
        """Tick every sensor once."""
        return [request for name in SENSORS for request in self.tick(name).run_requests or ()]

    def asks_for(self) -> list[str]:
        """Tick every sensor once and return the sources to index and, prefixed with a minus, those to remove."""
        return [request.partition_key or f"-{request.tags[SOURCE_TAG]}" for request in self.requests()]

    def run(self, request: dg.RunRequest) -> dg.ExecuteInProcessResult:
        """Run what a sensor requested."""
        job = self.definitions.resolve_job_def(request.job_name or "index_source")
        return job.execute_in_process(
            instance=self.project.instance,
            partition_key=request.partition_key,
            run_config={**request.run_config, **QUIET},
            tags=dict(request.tags),
            raise_on_error=False,
        )

    def settle(self) -> list[str]:
        """Tick and run until no sensor requests anything; return what they requested."""
        asked: list[str] = []
        for _ in range(5):
            requests = self.requests()
            if not requests:
                return asked
            asked += [request.partition_key or f"-{request.tags[SOURCE_TAG]}" for request in requests]
            for request in requests:
                self.run(request)
        raise AssertionError(f"the sensors ask for ever: {asked}")


def declare(project: Project, text: str) -> None:
    (project.root / "docindex.toml").write_text(text)


def published(project: Project) -> list[str]:
    generation = read_generation(project.layout)
    return sorted(generation.sources) if generation else []


def partitions(project: Project) -> list[str]:
    return sorted(project.instance.get_dynamic_partitions(SOURCES_NAME))


def check(project: Project, name: str) -> dg.AssetCheckEvaluation:
    key = dg.AssetCheckKey(dg.AssetKey("source"), name)
    storage = project.instance.event_log_storage
    record = storage.get_latest_asset_check_execution_by_key([key])[key]
    evaluation = record.event.dagster_event.event_specific_data
    assert isinstance(evaluation, dg.AssetCheckEvaluation)
    return evaluation
