"""Whether what is indexed of the sources is what there is now, without Dagster's record of runs."""

import time
from collections.abc import Iterable
from dataclasses import dataclass

from docindex_dagster import catalog, standing
from docindex_dagster.errors import DocindexError
from docindex_dagster.indexing import is_current
from docindex_dagster.layout import Layout
from docindex_dagster.settings import Settings
from docindex_dagster.sources import registry
from docindex_dagster.sources.model import Source


@dataclass(frozen=True, slots=True)
class Present:
    """One source.

    `is_current` says whether the index is known to be that of the present files and settings; None where nobody looked.
    """

    key: str
    state: str
    is_current: bool | None
    entry: catalog.CatalogEntry | None  # None: nothing of it can be found


def of_all(settings: Settings, budget_s: float | None) -> list[Present]:
    """All sources that are declared or indexed, by key; remotes are not asked for news.

    Args:
        settings: what is declared.
        budget_s: for looking whether files have changed; None for as long as it takes.

    Raises:
        SettingsError: two sources have one key.
        StoreError: what is published cannot be read.
    """
    layout = Layout(settings.home)
    indexed = {entry.source: entry for entry in catalog.entries(layout)}
    waiting = standing.waiting_for_takeover(layout)
    declared = registry.sources(settings)
    there = [source for key, source in declared.items() if key in indexed and is_there(source)]
    current = look(settings, there, budget_s)
    return [
        Present(
            key,
            state(declared.get(key), is_indexed=key in indexed, is_waiting=key in waiting),
            current.get(key),
            indexed.get(key),
        )
        for key in sorted({*declared, *indexed})
    ]


def look(settings: Settings, sources: Iterable[Source], budget_s: float | None) -> dict[str, bool | None]:
    """Whether the files of sources are those of the index, for as many as the budget allows; None: nobody can tell."""
    started = time.monotonic()
    found: dict[str, bool | None] = {}
    for source in sources:
        if source.remote is not None:
            continue
        if budget_s is not None and time.monotonic() - started > budget_s:
            break
        try:
            found[source.key] = is_current(settings, source)
        except (DocindexError, OSError):
            found[source.key] = None
    return found


def is_there(source: Source | None) -> bool:
    """Whether a source can be indexed, as far as its place on disk tells."""
    return source is not None and (source.remote is not None or source.path.is_dir())


def state(source: Source | None, *, is_indexed: bool, is_waiting: bool = False) -> str:
    """How a source stands, in words; one that waits can be searched once the index has gone over to another model."""
    if source is None:
        return "indexed, no longer declared"
    if not is_there(source):
        return "folder missing, index kept" if is_indexed else "folder missing"
    if is_indexed:
        return "indexed"
    return "indexed, waiting for the takeover" if is_waiting else "not indexed"
