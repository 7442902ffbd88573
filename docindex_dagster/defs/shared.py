"""Other shared state of machines with shared stores: their locks, and which sources were removed from the index.

On a single machine, this state is in its home. This module loads dependencies of shared deployments only when needed.
"""

import dagster as dg

from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import Locks
from docindex_dagster.core.settings import Settings
from docindex_dagster.defs.tags import WITHDRAWN_NAME
from docindex_dagster.sources import removed_sources


def locks_of(instance: dg.DagsterInstance | None, settings: Settings) -> Locks | None:
    """Return the locks between machines, in the Postgres database with the runs; None on a single machine."""
    url: str | None = getattr(instance.run_storage, "postgres_url", None) if instance is not None else None
    if settings.storage.url is None or url is None:
        return None
    from docindex_dagster.objects.postgres_locks import PostgresLocks

    return PostgresLocks(url, settings.storage.url)


def with_shared_state(instance: dg.DagsterInstance, settings: Settings) -> Settings:
    """Return the settings with a home that describes the published generation and the removed sources.

    Raises:
        ObjectStoreError: The object store with this state does not respond.
    """
    if settings.storage.url is None:
        return settings
    from docindex_dagster.objects import shared_stores

    found = shared_stores.settings_of_published(settings)
    layout, removed = Layout(found.home), removed_keys(instance, settings)
    for key in removed - removed_sources.removed_keys(layout):
        removed_sources.record_removal(layout, key)
    for key in removed_sources.removed_keys(layout) - removed:
        removed_sources.clear_removal(layout, key)
    return found


def removed_keys(instance: dg.DagsterInstance, settings: Settings) -> set[str]:
    """Return the keys of declared sources that were removed from the index."""
    if settings.storage.url is None:
        return removed_sources.removed_keys(Layout(settings.home))
    return set(instance.get_dynamic_partitions(WITHDRAWN_NAME))


def note_removed(instance: dg.DagsterInstance, settings: Settings, key: str) -> None:
    """Record that a source was removed from the index."""
    if settings.storage.url is None:
        removed_sources.record_removal(Layout(settings.home), key)
    else:
        instance.add_dynamic_partitions(WITHDRAWN_NAME, [key])


def forget_removed(instance: dg.DagsterInstance, settings: Settings, key: str) -> None:
    """Forget that a source was removed, so that it is treated like any other again."""
    if settings.storage.url is None:
        removed_sources.clear_removal(Layout(settings.home), key)
    else:
        instance.delete_dynamic_partition(WITHDRAWN_NAME, key)
