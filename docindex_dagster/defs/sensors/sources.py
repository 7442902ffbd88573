"""The sensor `sources_changed`, which keeps partitions in sync with the sources in `docindex.toml`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import dagster as dg
from pydantic import Field

from docindex_dagster.core.errors import StoreError
from docindex_dagster.core.layout import Layout
from docindex_dagster.defs import shared
from docindex_dagster.defs.dead_runs import report_dead_runs
from docindex_dagster.defs.jobs import REMOVE_SOURCE, index_source, removal_config
from docindex_dagster.defs.outcomes import MOST_REQUESTS, last_runs
from docindex_dagster.defs.resources import Project
from docindex_dagster.defs.sensors import SOURCES_INTERVAL_S, CursorPart
from docindex_dagster.defs.stage_assets import FOLDERS_ARE_THERE, missing, source_evaluation
from docindex_dagster.defs.tags import PARTITION_TAG, REASON_TAG, SOURCE_TAG, SOURCES, SOURCES_NAME
from docindex_dagster.sources import registry, removed_sources
from docindex_dagster.sources.model import Source
from docindex_dagster.status import source_status
from docindex_dagster.stores.generation import read_generation


class Memory(CursorPart):
    """Cursor: what the previous tick saw."""

    partitions: tuple[str, ...] = ()  # including deleted ones whose sources are not removed yet
    places: dict[str, str] = Field(default_factory=dict)  # origins of the files of declared sources
    renamed: dict[str, str] = Field(default_factory=dict)  # old to new keys, until the new ones are searchable
    missing: dict[str, str] = Field(default_factory=dict)  # why sources are missing


@dataclass(frozen=True, slots=True)
class KnownSources:
    """Keys of sources, by who knows them."""

    places: Mapping[str, str]  # declared in `docindex.toml`, with the origin of their files
    partitions: frozenset[str]  # in Dagster
    published: frozenset[str]  # searchable, or about to be once the index has switched to another model
    withdrawn: frozenset[str]  # removed from the index, though declared


@dataclass(frozen=True, slots=True)
class Plan:
    """Actions that bring the index, Dagster and `docindex.toml` into agreement."""

    add: tuple[str, ...]  # partitions to add
    index: tuple[str, ...]  # sources to index for the first time
    remove: Mapping[str, str]  # sources to remove, and why
    forget: tuple[str, ...]  # sources that no longer count as withdrawn
    renamed: Mapping[str, str]
    partitions: tuple[str, ...]


def plan(now: KnownSources, before: Memory) -> Plan:
    """Compare the current state with what the previous tick saw.

    - If a partition has disappeared, a user deleted it: remove its source from the index until the user requests it.
    - If a new source has the same origin as a source that is no longer declared, it is that source under a new name.
    - A partition without a declaration stays, because its index does.
    - A partition that Dagster lost with its records causes no run: the sensors on files check whether its index is
      current.
    """
    declared = now.places.keys()
    lifted = now.withdrawn & now.partitions
    out = now.withdrawn - lifted
    deleted = (set(before.partitions) - now.partitions - out) & (declared | now.published)
    new = declared - now.partitions - out - deleted
    orphaned = now.published - now.partitions - declared - deleted
    renamed = dict(_renamed(now, before))
    replaced = {old: f"renamed to {new_key}" for old, new_key in renamed.items() if new_key in now.published}
    add = new | orphaned  # Dagster adds partitions before it stores the cursor
    return Plan(
        add=tuple(sorted(add)),
        index=tuple(sorted((new - now.published) | (lifted & declared))),
        remove={**dict.fromkeys(sorted(deleted), "its partition was deleted"), **replaced},
        forget=tuple(sorted(lifted | (now.withdrawn - declared))),
        renamed=renamed,
        partitions=tuple(sorted(now.partitions | deleted | add)),
    )


def _renamed(now: KnownSources, before: Memory) -> Iterator[tuple[str, str]]:
    """Yield old keys that are still indexed, with the keys that now declare their files."""
    new = {origin: key for key, origin in now.places.items() if key not in before.places}
    candidates = {key: new[origin] for key, origin in before.places.items() if origin in new} | dict(before.renamed)
    for old, key in candidates.items():
        if old not in now.places and key in now.places and old in now.partitions | now.published:
            yield old, key


def sources_changed(remove_source: dg.JobDefinition) -> dg.SensorDefinition:
    """Return the sensor, which requests runs of `index_source` and of the given job."""

    @dg.sensor(
        name="sources_changed",
        jobs=[index_source, remove_source],
        minimum_interval_seconds=SOURCES_INTERVAL_S,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Keeps partitions and docindex.toml in sync: a new source gets a partition and its first run; a "
        "renamed source, or one whose partition was deleted, leaves the index; missing sources are reported. Also "
        "reports runs whose process died as failed. See docs/explanation/freshness.md.",
    )
    def sensor(context: dg.SensorEvaluationContext, project: Project) -> dg.SensorResult:
        return _tick(context, project)

    return sensor


def _tick(context: dg.SensorEvaluationContext, project: Project) -> dg.SensorResult:
    """Compare the declared sources with Dagster's partitions and with what is published."""
    instance, settings = context.instance, project.read_settings()
    for run in report_dead_runs(instance, settings):
        context.log.warning(f"the process of run {run.run_id} of {run.tags.get(PARTITION_TAG, run.job_name)} died")
    published = shared.with_shared_state(instance, settings)
    declared, before = registry.sources(settings), Memory.of(context.cursor)
    partitions = instance.get_dynamic_partitions(SOURCES_NAME)
    todo = plan(_state(Layout(published.home), declared, partitions, context), before)
    for key in todo.forget:
        shared.forget_removed(instance, settings, key)
    removals = {
        key: reason for key, reason in todo.remove.items() if last_runs(instance, {SOURCE_TAG: key}).may_request()
    }
    # If there are many new sources, the sensors on files request the remaining ones.
    first = todo.index[:MOST_REQUESTS]
    requests = [*map(_first_run, first), *(_removal(key, reason) for key, reason in removals.items())]
    is_missing = missing(settings, partitions)
    memory = Memory(
        partitions=todo.partitions, places=_origins(declared), renamed=dict(todo.renamed), missing=is_missing
    )
    is_news = is_missing != before.missing or not context.cursor
    idle = f"{len(declared)} sources declared, {len(partitions)} with partitions; nothing to do"
    return dg.SensorResult(
        run_requests=requests,
        skip_reason=None if requests else dg.SkipReason(idle),
        dynamic_partitions_requests=[SOURCES.build_add_request(list(todo.add))] if todo.add else [],
        asset_events=[source_evaluation(FOLDERS_ARE_THERE, is_missing)] if is_news else [],
        cursor=memory.model_dump_json(),
    )


def _state(
    layout: Layout, declared: Mapping[str, Source], partitions: Sequence[str], context: dg.SensorEvaluationContext
) -> KnownSources:
    try:
        generation = read_generation(layout)
    except StoreError as error:  # a run rebuilds it; until then, the published sources are unknown
        context.log.warning(str(error))
        generation = None
    return KnownSources(
        places=_origins(declared),
        partitions=frozenset(partitions),
        published=frozenset(generation.sources if generation else ()) | source_status.waiting_for_takeover(layout),
        withdrawn=frozenset(removed_sources.removed_keys(layout)),
    )


def _origins(declared: Mapping[str, Source]) -> dict[str, str]:
    """Return the origin of each source's files, in a form that is equal for sources with the same origin."""
    return {
        key: f"{source.remote.url} {source.remote.ref or ''}" if source.remote else str(source.path)
        for key, source in declared.items()
    }


def _first_run(key: str) -> dg.RunRequest:
    return dg.RunRequest(job_name=index_source.name, partition_key=key, tags={REASON_TAG: "new source"})


def _removal(key: str, reason: str) -> dg.RunRequest:
    tags = {SOURCE_TAG: key, REASON_TAG: reason}
    return dg.RunRequest(job_name=REMOVE_SOURCE, run_config=removal_config(key), tags=tags)
