"""The Dagster code location: one function builds the definitions, so that tests can pass other resources."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg

from docindex_dagster.core.errors import SettingsError, first_line
from docindex_dagster.core.settings import ScheduleSettings, Settings, load_settings
from docindex_dagster.defs import catalog_asset, memory, quality_asset, stage_assets
from docindex_dagster.defs.alerts import alert_on_failure
from docindex_dagster.defs.jobs import (
    clean_up_dagster,
    evaluate_retrieval,
    index_source,
    maintain_stores,
    remove_source,
    schedules,
    stores_due,
)
from docindex_dagster.defs.recorder import journal_recorded
from docindex_dagster.defs.resources import EmbeddingModel, Project, RunResource
from docindex_dagster.defs.sensors.files import git_head_changed, library_files_changed
from docindex_dagster.defs.sensors.sources import sources_changed
from docindex_dagster.defs.stage_assets import every_folder_is_there, every_remote_answers

# The limit of this pool, in dagster.yaml, is how many runs embed concurrently on all machines, to suit a GPU or API.
_EMBEDDING_POOL = "docindex_embedding"


def build_definitions(root: Path | None = None, resources: Mapping[str, Any] | None = None) -> dg.Definitions:
    """Build the definitions of the project at `root`; `resources` replace the default ones by name.

    Raises:
        SettingsError: The settings of the project are invalid.
    """
    settings = load_settings(root)
    root_path = str(settings.root)
    project = Project(root=root_path)
    removal = remove_source(project)
    stores = _stores(settings, removal)
    evaluation = [] if settings.storage.url is not None else [evaluate_retrieval]
    assets: list[dg.AssetsDefinition | dg.AssetSpec] = [stage_assets.source, *stores.assets, memory.memory]
    return dg.Definitions(
        assets=list(dg.map_asset_specs(partial(_with_freshness, settings.schedule), assets)),
        jobs=[index_source, removal, memory.fold_memory, clean_up_dagster, *evaluation, *stores.jobs],
        sensors=[
            sources_changed(removal),
            library_files_changed,
            git_head_changed,
            memory.memory_due,
            alert_on_failure,
            *stores.sensors,
        ],
        asset_checks=[every_folder_is_there, every_remote_answers, *stores.checks],
        schedules=_schedules(settings),
        resources={
            "project": project,
            "run": stores.run,
            "embedding_model": EmbeddingModel(root=root_path),
            **(resources or {}),
        },
        # Separate processes would cost about two seconds per step, so a source is indexed in one process.
        executor=dg.in_process_executor,
    )


@dataclass(frozen=True, slots=True)
class _Stores:
    """Definitions that depend on whether machines share the stores: assets, checks, jobs and sensors."""

    run: RunResource
    assets: Sequence[dg.AssetsDefinition | dg.AssetSpec]
    checks: Sequence[dg.AssetChecksDefinition] = ()
    jobs: Sequence[dg.JobDefinition] = ()
    sensors: Sequence[dg.SensorDefinition] = ()


def _stores(settings: Settings, removal: dg.JobDefinition) -> _Stores:
    root = str(settings.root)
    if settings.storage.url is None:
        recorder = journal_recorded(partial(build_definitions, settings.root))
        assets = [*stage_assets.stage_assets(), catalog_asset.index_catalog, quality_asset.retrieval_quality]
        return _Stores(RunResource(root=root), assets, jobs=[maintain_stores], sensors=[stores_due, recorder])
    from docindex_dagster.defs import publishing, requests
    from docindex_dagster.pipeline.embedding import EMBEDDINGS
    from docindex_dagster.pipeline.publication import STORES

    stages = stage_assets.stage_assets(left_out=[STORES], pools={EMBEDDINGS.name: _EMBEDDING_POOL})
    return _Stores(
        publishing.SharedRun(root=root, left_out=[STORES.name], pooled=[EMBEDDINGS.name]),
        [*stages, publishing.prepared_tables, *publishing.store_assets()],
        [publishing.store_checks()],
        [publishing.job(Project(root=root), EmbeddingModel(root=root))],
        [publishing.prepared_changed, requests.run_requested(removal)],
    )


def _with_freshness(settings: ScheduleSettings, spec: dg.AssetSpec) -> dg.AssetSpec:
    """Let Dagster warn if no run has reached an asset for the maximum age of a source, and fail after twice that."""
    # Idle memory domains stay fresh, and search quality does not need to be measured.
    if spec.key in {stage_assets.source.key, memory.MEMORY, quality_asset.QUALITY}:
        return spec
    warn = timedelta(hours=settings.max_age_hours)
    return spec.replace_attributes(freshness_policy=dg.FreshnessPolicy.time_window(2 * warn, warn))


def _schedules(settings: Settings) -> list[dg.ScheduleDefinition]:
    try:
        return schedules(settings.schedule, is_evaluated=settings.storage.url is None)
    except dg.DagsterInvalidDefinitionError as error:
        raise SettingsError(f"{settings.config_file}: schedule: {first_line(error)}") from error


@dg.definitions
def defs() -> dg.Definitions:
    """Return the definitions of the project around the working directory, or in DOCINDEX_ROOT.

    Raises:
        SettingsError: As for `build_definitions`.
    """
    return build_definitions()
