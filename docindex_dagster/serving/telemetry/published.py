"""What is published, as metrics: the generation, its sources one by one as far as they are few, and the stores."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from docindex_dagster.core.errors import DocindexError
from docindex_dagster.core.layout import Layout
from docindex_dagster.serving.telemetry.kept import Kept
from docindex_dagster.status import catalog, source_status
from docindex_dagster.status.source_status import SourceState, State

if TYPE_CHECKING:
    from docindex_dagster.serving.http.served import Served

MOST_SOURCES = 200
OTHER = "(other)"
_STATES_S, _SIZES_S = 10.0, 60.0


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one source, or of all that are too many to be shown one by one."""

    source: str
    files: int
    chunks: int
    text_bytes: int
    changed_at: float | None  # seconds since 1970; the longest ago of several
    checked_at: float | None
    states: tuple[State, ...]


class Published(Collector):
    """Looks at what is published when it is asked."""

    def __init__(self, served: "Served") -> None:
        self._served = served
        self._states = Kept(self._find_states, _STATES_S)
        self._sizes = Kept(lambda: sizes(Layout(served.settings.home)), _SIZES_S)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The metrics; without samples where nothing can be read."""
        generation: int | None = None
        states: list[SourceState] = []
        stores: dict[str, int] = {}
        with suppress(DocindexError, OSError):
            generation = self._served.reading(lambda reader: reader.generation.number)
            states, stores = self._states.get(), self._sizes.get()
        ready = "Whether questions can be answered: 1, or 0 where there is no index or the settings are wrong."
        yield _gauge("docindex_ready", ready, 0 if generation is None else 1)
        yield _gauge(
            "docindex_generation", "The number of the published generation; it grows by one with each.", generation
        )
        yield from of_sources(states)
        size = GaugeMetricFamily("docindex_store_size_bytes", "Bytes of a store on disk, by store.", labels=["store"])
        for store, found in stores.items():
            size.add_metric([store], found)
        yield size

    def _find_states(self) -> list[SourceState]:
        settings = self._served.settings
        runs = None
        with suppress(DocindexError, OSError):  # such as for who may not write there
            runs = self._served.runs_of(settings)
        return source_status.of_all(settings, catalog.entries_of(settings), runs)


def of_sources(states: Sequence[SourceState]) -> Iterator[GaugeMetricFamily]:
    """The metrics of sources: how many are in each state, and the figures of each."""
    count = GaugeMetricFamily("docindex_sources", "Sources that are declared or indexed, by state.", labels=["state"])
    for state in State:
        count.add_metric([state.value], sum(one.state is state for one in states))
    yield count
    shown = list(figures(states))
    yield _by_source("files", "Files that are indexed", ((one.source, one.files) for one in shown))
    yield _by_source("chunks", "Chunks that can be searched", ((one.source, one.chunks) for one in shown))
    yield _by_source(
        "text_bytes", "Bytes of text that can be searched", ((one.source, one.text_bytes) for one in shown)
    )
    changed = "When the content that can be searched changed, in seconds since 1970"
    yield _by_source("changed_timestamp_seconds", changed, ((one.source, one.changed_at) for one in shown))
    checked = "When a run last ended well that looked at all files, in seconds since 1970"
    yield _by_source("checked_timestamp_seconds", checked, ((one.source, one.checked_at) for one in shown))
    state_of = GaugeMetricFamily(
        "docindex_source_state",
        f"The state of a source: 1 for the one it is in; for {OTHER}, how many are in it.",
        labels=["source", "state"],
    )
    for one in shown:
        for state in sorted(set(one.states)):
            state_of.add_metric([one.source, state.value], one.states.count(state))
    yield state_of


def figures(states: Iterable[SourceState], most: int = MOST_SOURCES) -> Iterator[Figures]:
    """The figures of the sources with the most chunks, and those of the rest as one."""
    ordered = sorted((_figures_of(one) for one in states), key=lambda one: (-one.chunks, one.source))
    yield from ordered[:most]
    if rest := ordered[most:]:
        yield Figures(
            OTHER,
            sum(one.files for one in rest),
            sum(one.chunks for one in rest),
            sum(one.text_bytes for one in rest),
            min((one.changed_at for one in rest if one.changed_at is not None), default=None),
            min((one.checked_at for one in rest if one.checked_at is not None), default=None),
            tuple(state for one in rest for state in one.states),
        )


def _figures_of(one: SourceState) -> Figures:
    entry = one.entry
    if entry is None:
        return Figures(one.source, 0, 0, 0, None, one.runs.checked_at, (one.state,))
    changed_at = datetime.fromisoformat(entry.changed_at).timestamp()
    return Figures(
        one.source, entry.files, entry.chunks, entry.text_bytes, changed_at, one.runs.checked_at, (one.state,)
    )


def _gauge(name: str, help_text: str, value: float | None) -> GaugeMetricFamily:
    found = GaugeMetricFamily(name, help_text)
    if value is not None:
        found.add_metric([], value)
    return found


def _by_source(name: str, help_text: str, values: Iterable[tuple[str, float | None]]) -> GaugeMetricFamily:
    found = GaugeMetricFamily(
        f"docindex_source_{name}", f"{help_text}, by source; beyond {MOST_SOURCES}, of {OTHER}.", labels=["source"]
    )
    for source, value in values:
        if value is not None:
            found.add_metric([source], value)
    return found


def sizes(layout: Layout) -> dict[str, int]:
    """Bytes on disk of the stores that are published, and of the tables they are made of."""
    stores = (layout.lance, layout.tantivy, layout.graph, layout.rows, layout.packs, layout.links)
    return {folder.name: _size(folder) for folder in (*stores, layout.home / "tables")}


def _size(folder: Path) -> int:
    """Bytes of the files in a folder and those below it, of those that stay while it looks."""
    size = 0
    with suppress(OSError), os.scandir(folder) as found:
        for entry in found:
            with suppress(OSError):
                is_folder = entry.is_dir(follow_symlinks=False)
                size += _size(Path(entry.path)) if is_folder else entry.stat(follow_symlinks=False).st_size
    return size
