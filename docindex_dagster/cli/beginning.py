"""Beginning with the files of sources before their runs: the first while Dagster loads, others beside the one before.

So the parsing workers are at work while this process embeds and writes.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise

from docindex_dagster.core import events
from docindex_dagster.core.settings import Settings
from docindex_dagster.sources import registry

_CUT = "chunks"  # the stage after which the parsing workers are free


@contextmanager
def begun(settings: Settings, wanted: Mapping[str, Collection[str]]) -> Iterator[None]:
    """Begin with each source that runs in the block will index, one before its time.

    Args:
        settings: which declare the sources.
        wanted: the keys of the sources, in the order of their runs, with the names of the files that are wanted; none
            for all.
    """
    from docindex_dagster.pipeline import prefetch

    after = dict(pairwise(wanted))

    def listen(event: events.Event) -> None:
        if isinstance(event, events.StageEnded) and event.stage == _CUT and event.source in after:
            _begin(settings, after[event.source], wanted)

    _begin(settings, next(iter(wanted)), wanted)
    try:
        with events.listening(listen):
            yield
    finally:
        for key in wanted:
            prefetch.drop(key)


def _begin(settings: Settings, key: str, wanted: Mapping[str, Collection[str]]) -> None:
    from docindex_dagster.chunking import pool
    from docindex_dagster.pipeline import prefetch

    source = registry.sources(settings).get(key)
    if wanted[key]:
        pool.start_ahead()
    elif source is not None:  # else its run says that there is none
        prefetch.begin(settings, source)
