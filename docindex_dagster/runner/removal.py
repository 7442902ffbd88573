"""Taking a source out of the index, with all that was kept to index it faster."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from docindex_dagster.core.access import writing
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive
from docindex_dagster.core.settings import Settings
from docindex_dagster.embedding import cache
from docindex_dagster.runner import journal
from docindex_dagster.sources import clone, registry, withdrawn
from docindex_dagster.status import catalog
from docindex_dagster.stores import link_files
from docindex_dagster.stores.publish import withdraw


@contextmanager
def removing(settings: Settings, key: str, report: Callable[[str], None]) -> Iterator[None]:
    """Take a source out of the stores of this machine, and hold its lock until the block ends.

    Args:
        settings: of the project.
        key: of the source; one that is still declared stays out until a command names it.
        report: called with the owner of a lock that is waited for.

    Raises:
        StoreError: what is published cannot be read.
    """
    owner = f"removal of {key}"
    with writing(settings) as layout, exclusive(layout.source_lock(key), owner, report):
        with exclusive(layout.publication_lock, owner, report):
            withdraw(layout, key)
            for asset in layout.assets():
                layout.table(asset, key).unlink(missing_ok=True)
        catalog.rebuild(layout, owner)
        link_files.bring_up_to_date(layout)
        drop_caches(layout, key, report)
        journal.forget(layout, key)
        if key in registry.sources(settings):
            withdrawn.note(layout, key)  # or a sensor would add it again
        yield


def drop_caches(layout: Layout, key: str, report: Callable[[str], None]) -> None:
    """Remove what saves work when a source is indexed: vectors, summaries, its clone."""
    cache.remove(layout, key)
    layout.summaries(key).unlink(missing_ok=True)
    clone.remove(layout, key, report=report)
