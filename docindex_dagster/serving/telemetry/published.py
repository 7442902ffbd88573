"""Metrics of the published index: the generation, its sources (individually up to a limit), and the stores."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from docindex_dagster.core.errors import DocindexError
from docindex_dagster.core.files import folder_bytes
from docindex_dagster.core.layout import Layout
from docindex_dagster.serving.telemetry.series import Cached, gauge
from docindex_dagster.status import catalog, source_status
from docindex_dagster.status.source_status import SourceState, State

if TYPE_CHECKING:
    from docindex_dagster.serving.http.served_project import ServedProject

MOST_SOURCES = 200
OTHER = "(other)"
_STATES_MAX_AGE_S, _SIZES_MAX_AGE_S = 10.0, 60.0


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one source, or of all sources beyond the limit together."""

    source: str
    files: int
    chunks: int
    text_bytes: int
    changed_at: float | None  # seconds since 1970; the earliest of several
    checked_at: float | None
    states: tuple[State, ...]


_BY_SOURCE: tuple[tuple[str, str, Callable[[Figures], float | None]], ...] = (
    ("files", "Indexed files", lambda one: one.files),
    ("chunks", "Searchable chunks", lambda one: one.chunks),
    ("text_bytes", "Searchable text in bytes", lambda one: one.text_bytes),
    (
        "changed_timestamp_seconds",
        "Time of the last change of the searchable content, in seconds since 1970",
        lambda one: one.changed_at,
    ),
    (
        "checked_timestamp_seconds",
        "Time of the last successful run that checked all files, in seconds since 1970",
        lambda one: one.checked_at,
    ),
)


class Published(Collector):
    """Collector that reads the published index on each scrape."""

    def __init__(self, served: "ServedProject") -> None:
        self._served = served
        self._states = Cached(self._find_states, _STATES_MAX_AGE_S)
        self._sizes = Cached(lambda: sizes(Layout(served.settings.home)), _SIZES_MAX_AGE_S)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the metrics; without samples if nothing can be read."""
        generation: int | None = None
        states: list[SourceState] = []
        stores: dict[str, int] = {}
        with suppress(DocindexError, OSError):
            generation = self._served.reading(lambda reader: reader.generation.number)
            states, stores = self._states.get(), self._sizes.get()
        ready = "Whether questions can be answered: 1, or 0 without an index or with invalid settings."
        yield GaugeMetricFamily("docindex_ready", ready, value=0 if generation is None else 1)
        yield GaugeMetricFamily(
            "docindex_generation", "Number of the published generation; each one increases it by one.", generation
        )
        yield from of_sources(states)
        on_disk = (((store,), found) for store, found in stores.items())
        yield gauge("docindex_store_size_bytes", "Size of each store on disk, in bytes.", ["store"], on_disk)

    def _find_states(self) -> list[SourceState]:
        settings = self._served.settings
        runs = None
        with suppress(DocindexError, OSError):  # for example without write permission
            runs = self._served.runs_of(settings)
        return source_status.states_of_all(settings, catalog.entries_of(settings), runs)


def of_sources(states: Sequence[SourceState]) -> Iterator[GaugeMetricFamily]:
    """Yield the metrics of sources: the number in each state, and the figures of each source."""
    by_state = (((state.value,), sum(source.state is state for source in states)) for state in State)
    yield gauge("docindex_sources", "Declared or indexed sources, by state.", ["state"], by_state)
    shown = list(figures(states))
    for name, help_text, value_of in _BY_SOURCE:
        yield gauge(
            f"docindex_source_{name}",
            f"{help_text}, by source; sources beyond {MOST_SOURCES} count as {OTHER}.",
            ["source"],
            [((one.source,), value_of(one)) for one in shown],
        )
    yield gauge(
        "docindex_source_state",
        f"State of a source: 1 for its current state; for {OTHER}, the number of sources in that state.",
        ["source", "state"],
        (((one.source, state), one.states.count(state)) for one in shown for state in sorted(set(one.states))),
    )


def figures(states: Iterable[SourceState], most: int = MOST_SOURCES) -> Iterator[Figures]:
    """Yield the figures of the sources with the most chunks, and those of the rest as one."""
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


def sizes(layout: Layout) -> dict[str, int]:
    """Return the size on disk of the published stores and of the tables they are built from."""
    stores = (layout.lance, layout.tantivy, layout.graph, layout.rows, layout.packs, layout.links)
    return {folder.name: folder_bytes(folder) for folder in (*stores, layout.home / "tables")}
