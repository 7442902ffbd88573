"""Finding and cutting the files of a source before its run, while this process still loads what records runs.

A run looks at the files again, and reads only those that have changed since; so it finds what it would find without.
"""

from concurrent.futures import Future
from threading import Thread

import pyarrow as pa

from docindex_dagster.chunking import prefetch as cutting_ahead
from docindex_dagster.core import tables
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings
from docindex_dagster.sources.model import Source

_FILES, _CHUNKS = "discovered_files", "chunks"
# The files of sources, as they were found before a run of each; a run takes them.
_found: "dict[str, Future[pa.Table | None]]" = {}


def begin(settings: Settings, source: Source) -> None:
    """Begin what the next run of a source will do with its files, unless they are a clone that the run updates."""
    if source.remote is not None:
        return
    found = _found[source.key] = Future["pa.Table | None"]()
    Thread(target=_work, args=(settings, source, found), name=f"files of {source.key}", daemon=True).start()


def files(key: str) -> pa.Table | None:
    """The files of a source, as they were found before its run; waits for them. None where that was not begun."""
    found = _found.pop(key, None)
    return None if found is None else found.result()


def drop(key: str) -> None:
    """Forget what was begun of a source and not taken."""
    _found.pop(key, None)
    cutting_ahead.drop(key)


def _work(settings: Settings, source: Source, found: "Future[pa.Table | None]") -> None:
    try:
        # Loaded here, so that what loads beside it need not wait.
        from docindex_dagster.sources.discover import discover

        table = discover(source, tables.read(Layout(settings.home).table(_FILES, source.key)))
        _begin_to_cut(settings, source, table)
    except Exception:  # noqa: BLE001 the run meets the same, and reports it
        table = None
    found.set_result(table)


def _begin_to_cut(settings: Settings, source: Source, table: pa.Table) -> None:
    from docindex_dagster.chunking.build import to_cut
    from docindex_dagster.chunking.cutting import Wanted, begin
    from docindex_dagster.chunking.inputs import gather
    from docindex_dagster.chunking.summaries import summariser_of

    previous = tables.read(Layout(settings.home).table(_CHUNKS, source.key))
    summariser = summariser_of(settings, source.key)
    wanted = Wanted(references=settings.graph.enabled and settings.graph.code)
    chosen = to_cut(gather(table, settings.chunking), previous, settings.chunking, summariser)
    begin(source, chosen, settings.chunking, wanted)
