"""One generation of a project's index, as operations use it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from docindex_dagster.search.reranking.protocol import ignore_warning

if TYPE_CHECKING:
    from collections.abc import Mapping

    from docindex_dagster.core.references import Reference
    from docindex_dagster.core.settings import Settings
    from docindex_dagster.graph.open_graph import OpenGraph
    from docindex_dagster.sources.model import Source
    from docindex_dagster.stores.reader import Reader


@dataclass(frozen=True)
class View:
    """One generation of a project.

    Attributes:
        settings: the project's settings.
        reader: reads the generation.
        warn: called with a sentence about each degradation of an answer.
        folder: the user's working directory; None if unknown.
        is_local: whether paths may refer to this machine's disk, and not only to paths in sources.
        sources: the keys to which all answers are restricted; empty for no restriction.
        places: pairs of source and path glob to which all answers are restricted; empty for no restriction.
    """

    settings: "Settings"
    reader: "Reader"
    warn: Callable[[str], None] = ignore_warning
    folder: Path | None = None
    is_local: bool = True
    sources: tuple[str, ...] = ()
    places: tuple[tuple[str, str], ...] = ()

    @cached_property
    def default_sources(self) -> tuple[str, ...]:
        """The sources to search if a request names none; empty for those in the settings."""
        if self.sources:
            return self.sources
        from docindex_dagster.search.scope import search_defaults

        found = search_defaults(self.settings, self.reader.generation, self.folder)
        if found.note:
            self.warn(found.note)
        return found.sources

    @cached_property
    def declared(self) -> "Mapping[str, Source]":
        """The declared sources, by key."""
        from docindex_dagster.sources import registry

        return registry.sources(self.settings)

    def source_keys(self, names: Sequence[str], *, all_sources: bool = False) -> tuple[str, ...]:
        """Return the keys of the named sources, or else of the default ones; empty for all.

        Raises:
            SourceError: A source is unknown or not indexed.
        """
        from docindex_dagster.search.scope import keys_of

        wanted = names or (self.sources if all_sources else self.default_sources)
        return keys_of(self.settings, self.reader.generation, wanted, all_sources=all_sources)

    def resolve_scope(
        self, names: Sequence[str], path: str | None, *, all_sources: bool = False
    ) -> tuple[tuple[str, ...], str | None]:
        """Return the keys of the named sources and a path glob. A path on disk selects the source that contains it.

        Raises:
            SourceError: As for `source_keys`.
            QueryError: No source contains an absolute path.
        """
        from docindex_dagster.search.scope import path_of

        if not self.is_local:
            within, glob = None, (path or "").removeprefix("./") or None
        else:
            within, glob = path_of(self.settings, path)
        return self.source_keys(names or self.sources or ([within] if within else []), all_sources=all_sources), glob

    def graph(self, names: Sequence[str]) -> "OpenGraph":
        """Return the graph of the named sources, or else of the default ones.

        Raises:
            SourceError: As for `source_keys`.
            DamagedStoreError: A graph file is missing or damaged.
        """
        from docindex_dagster.search.scope import keys_of

        wanted = names or self.default_sources
        keys = keys_of(self.settings, self.reader.generation, wanted, all_sources=not wanted)
        return self.reader.graph_of(keys) if keys else self.reader.graph

    def readings(self, text: str) -> "Sequence[Reference]":
        """Return the possible meanings of a reference whose path may be on disk; empty unless paths are local."""
        from docindex_dagster.search.lookup import readings_of

        return readings_of(self.settings, text, self.reader.generation.sources) if self.is_local else ()
