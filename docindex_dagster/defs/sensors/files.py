"""The sensor that notices changed files and asks for runs."""

import json
import time

import dagster as dg

from docindex_dagster.chunking.build import fingerprint as chunking_fingerprint
from docindex_dagster.defs.dead_runs import report_dead_runs
from docindex_dagster.defs.jobs import index_source
from docindex_dagster.defs.partitions import SOURCES, SOURCES_NAME
from docindex_dagster.defs.resources import PARTITION_TAG, Project
from docindex_dagster.errors import SourceError
from docindex_dagster.hashing import digest_parts
from docindex_dagster.sources import registry
from docindex_dagster.sources.fingerprint import fingerprint
from docindex_dagster.sources.model import Source

_INTERVAL_S = 30
# A tick may take 60 s; what is not looked at within the budget is first in the next tick.
_BUDGET_S = 40


@dg.sensor(
    job=index_source,
    minimum_interval_seconds=_INTERVAL_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Adds a partition for each new source; asks for a run where files have changed. It only stats files.",
)
def source_files_changed(context: dg.SensorEvaluationContext, project: Project) -> dg.SensorResult:
    """Compare each source's fingerprint with the one in the cursor, those that were looked at longest ago first."""
    settings = project.read_settings()
    declared = registry.sources(settings)
    made_with = repr((chunking_fingerprint(settings.chunking), settings.embedding, settings.graph, settings.history))
    # What a killed run was about has not been seen to its end, also where this tick does not come to it.
    killed = {run.tags.get(PARTITION_TAG) for run in report_dead_runs(context.instance)}
    seen: dict[str, str] = json.loads(context.cursor or "{}")
    seen = {key: value for key, value in seen.items() if key in declared and key not in killed}
    partitions = set(context.instance.get_dynamic_partitions(SOURCES_NAME))
    started = time.monotonic()
    requests, observations, new = [], [], []
    # A dictionary keeps its order: keys that were looked at are put at its end.
    for key in sorted(declared, key=lambda key: list(seen).index(key) if key in seen else -1):
        if time.monotonic() - started > _BUDGET_S:
            break
        found = _fingerprint(context, declared[key])
        before = seen.pop(key, None)
        if found is None:
            continue
        seen[key] = digest_parts(found, made_with)
        if key not in partitions:
            new.append(key)
        if seen[key] != before or key not in partitions:
            if not _is_queued(context.instance, key):
                requests.append(dg.RunRequest(partition_key=key))
            observations.append(dg.AssetObservation("source", partition=key, tags={"dagster/data_version": found}))
    return dg.SensorResult(
        run_requests=requests,
        asset_events=observations,
        dynamic_partitions_requests=[SOURCES.build_add_request(new)] if new else [],
        cursor=json.dumps(seen),
    )


def _is_queued(instance: dg.DagsterInstance, key: str) -> bool:
    """A run that has not begun will see what changed until then: another one would have nothing to do."""
    waiting = [dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.NOT_STARTED]
    return bool(instance.get_runs(dg.RunsFilter(tags={PARTITION_TAG: key}, statuses=waiting), limit=1))


def _fingerprint(context: dg.SensorEvaluationContext, source: Source) -> str | None:
    """None for a source that cannot be read now: it is looked at again in the next tick, and keeps its index."""
    try:
        return fingerprint(source)
    except (SourceError, OSError) as error:
        context.log.warning(f"{source.key}: {error}")
        return None
