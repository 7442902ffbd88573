"""A deployment of machines that share only an object store and Dagster's instance."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from obstore.store import MemoryStore

from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import load_settings
from docindex_dagster.definitions import build_definitions
from docindex_dagster.defs.resources import Project
from docindex_dagster.defs.tags import SOURCES_NAME
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.objects import shared_stores
from docindex_dagster.objects.bucket import Bucket
from docindex_dagster.search.engine import search
from docindex_dagster.search.model import Mode
from docindex_dagster.stores.reader import open_reader
from tests.defs.conftest import CONFIG, GUIDE, QUIET

STORAGE = '[storage]\nurl = "s3://bucket/prefix"\n'


@dataclass
class Deployment:
    """A project whose machines share only an object store and Dagster's instance."""

    root: Path
    instance: dg.DagsterInstance
    bucket: Bucket
    patch: pytest.MonkeyPatch

    def at(self, machine: str) -> dg.Definitions:
        self.patch.setenv("DOCINDEX_HOME", str(self.root / machine))
        return build_definitions(self.root)

    def run(self, machine: str, job: str, key: str | None = None, **arguments: Any) -> dg.ExecuteInProcessResult:
        if key is not None:
            self.instance.add_dynamic_partitions(SOURCES_NAME, [key])
        config = {**QUIET, **arguments.pop("run_config", {})}
        return (
            self.at(machine)
            .resolve_job_def(job)
            .execute_in_process(
                instance=self.instance, partition_key=key, raise_on_error=False, run_config=config, **arguments
            )
        )

    def tick(self, machine: str, sensor: str, cursor: str | None = None) -> dg.SensorResult:
        repository = self.at(machine).get_repository_def()
        with dg.build_sensor_context(
            instance=self.instance,
            cursor=cursor,
            resources={"project": Project(root=str(self.root))},
            repository_def=repository,
            sensor_name=sensor,
        ) as context:
            result = repository.get_sensor_def(sensor)(context)
        assert isinstance(result, dg.SensorResult)
        return result

    def found(self, machine: str, query: str) -> list[str]:
        self.at(machine)
        settings = load_settings(self.root)
        shared_stores.follow(settings, pytest.fail)
        return [hit.path for hit in search(open_reader(Layout(settings.home)), query, StaticEmbedder, mode=Mode.BM25)]


@contextmanager
def new_deployment(root: Path, patch: pytest.MonkeyPatch, *, has_files: bool = False) -> Iterator[Deployment]:
    """Return a one-file library below `root`, an in-memory object store, and an instance (file-based for threads)."""
    (root / "docindex.toml").write_text(CONFIG + STORAGE)
    (root / "notes").mkdir()
    (root / "notes" / "guide.md").write_text(GUIDE)
    shared = Bucket("memory", MemoryStore())
    patch.setattr(shared_stores, "configured_bucket", lambda _: shared)
    (root / "dagster").mkdir()
    made = dg.DagsterInstance.local_temp(str(root / "dagster")) if has_files else dg.DagsterInstance.ephemeral()
    with made as instance:
        yield Deployment(root, instance, shared, patch)
