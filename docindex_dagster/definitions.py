"""The code location: one function builds the definitions, and tests pass other resources to it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dagster as dg

from docindex_dagster.defs.assets import chunking, discovery, embedding, history, indexes, serving
from docindex_dagster.defs.io_managers import ParquetTables
from docindex_dagster.defs.jobs import index_source, remove_source
from docindex_dagster.defs.resources import EmbeddingModel, Project, SourceRun
from docindex_dagster.defs.schedules import nightly_reindex
from docindex_dagster.defs.sensors import source_files_changed
from docindex_dagster.errors import SettingsError, first_line
from docindex_dagster.settings import Settings, load_settings


def build_definitions(root: Path | None = None, resources: Mapping[str, Any] | None = None) -> dg.Definitions:
    """Everything that Dagster shows and runs for the project at `root`; `resources` replace the usual ones by name."""
    settings = load_settings(root)
    root_path = str(settings.root)
    return dg.Definitions(
        assets=[
            discovery.source,
            discovery.discovered_files,
            history.commits,
            chunking.chunks,
            embedding.embeddings,
            indexes.publish_stores,
            serving.index_catalog,
        ],
        jobs=[index_source, remove_source],
        sensors=[source_files_changed],
        schedules=[_nightly(settings)],
        resources={
            "project": Project(root=root_path),
            "run": SourceRun(root=root_path),
            "embedding_model": EmbeddingModel(root=root_path),
            "parquet": ParquetTables(home=str(settings.home)),
            **(resources or {}),
        },
        # A process a step would cost about two seconds each; a source is indexed in one.
        executor=dg.in_process_executor,
    )


def _nightly(settings: Settings) -> dg.ScheduleDefinition:
    try:
        return nightly_reindex(settings.schedule)
    except dg.DagsterInvalidDefinitionError as error:
        raise SettingsError(f"{settings.config_file}: schedule: {first_line(error)}") from error


@dg.definitions
def defs() -> dg.Definitions:
    """The definitions of the project around the working directory, or of the one that DOCINDEX_ROOT names."""
    return build_definitions()
