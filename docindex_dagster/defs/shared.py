"""What machines that share the stores share besides: their locks, and which sources were taken out of the index.

With one machine, all of that lies in its home. Nothing here loads what only a deployment of many needs before it does.
"""

import dagster as dg

from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import Locks
from docindex_dagster.core.settings import Settings
from docindex_dagster.defs.tags import WITHDRAWN_NAME
from docindex_dagster.sources import removed_sources


def locks_of(instance: dg.DagsterInstance | None, settings: Settings) -> Locks | None:
    """The locks between machines, in the Postgres that holds the runs; None where there is one machine alone."""
    url: str | None = getattr(instance.run_storage, "postgres_url", None) if instance is not None else None
    if settings.storage.url is None or url is None:
        return None
    from docindex_dagster.objects.postgres_locks import PostgresLocks

    return PostgresLocks(url, settings.storage.url)


def known(instance: dg.DagsterInstance, settings: Settings) -> Settings:
    """The settings with a home that says what is published, and which sources were taken out.

    Raises:
        ObjectStoreError: that is said by an object store, which does not answer.
    """
    if settings.storage.url is None:
        return settings
    from docindex_dagster.objects import shared_stores

    found = shared_stores.known_published(settings)
    layout, taken_out = Layout(found.home), taken_out_of(instance, settings)
    for key in taken_out - removed_sources.all_of(layout):
        removed_sources.note(layout, key)
    for key in removed_sources.all_of(layout) - taken_out:
        removed_sources.forget(layout, key)
    return found


def taken_out_of(instance: dg.DagsterInstance, settings: Settings) -> set[str]:
    """The keys of the sources that were taken out of the index while they are declared."""
    if settings.storage.url is None:
        return removed_sources.all_of(Layout(settings.home))
    return set(instance.get_dynamic_partitions(WITHDRAWN_NAME))


def note_taken_out(instance: dg.DagsterInstance, settings: Settings, key: str) -> None:
    """Remember that a source was taken out."""
    if settings.storage.url is None:
        removed_sources.note(Layout(settings.home), key)
    else:
        instance.add_dynamic_partitions(WITHDRAWN_NAME, [key])


def forget_taken_out(instance: dg.DagsterInstance, settings: Settings, key: str) -> None:
    """Treat a source like any other again."""
    if settings.storage.url is None:
        removed_sources.forget(Layout(settings.home), key)
    else:
        instance.delete_dynamic_partition(WITHDRAWN_NAME, key)
