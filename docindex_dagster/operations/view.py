"""What an operation answers from: one generation of a project's index, seen from where the user is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from docindex_dagster.core.settings import Settings
    from docindex_dagster.graph.opened import OpenGraph
    from docindex_dagster.sources.model import Source
    from docindex_dagster.stores.reader import Reader


def _ignore(_warning: str) -> None:
    """Ignore a warning."""


@dataclass(frozen=True)
class View:
    """One generation of a project.

    Attributes:
        settings: of the project.
        reader: of the generation.
        warn: called with a sentence on what makes an answer worse.
        folder: where the user works on this machine; None where that is not known.
        is_local: whether paths may be those of this machine's disk, and not only those of a source.
        sources: keys of those that all answers are limited to; empty for no limit.
        places: sources with a path glob each, to which all answers are limited; empty for no limit.
    """

    settings: "Settings"
    reader: "Reader"
    warn: Callable[[str], None] = _ignore
    folder: Path | None = None
    is_local: bool = True
    sources: tuple[str, ...] = ()
    places: tuple[tuple[str, str], ...] = ()

    @cached_property
    def usual(self) -> tuple[str, ...]:
        """The sources to search where none is named; empty for the default ones."""
        if self.sources:
            return self.sources
        from docindex_dagster.search.scope import here

        found = here(self.settings, self.reader.generation, self.folder)
        if found.note:
            self.warn(found.note)
        return found.sources

    @cached_property
    def declared(self) -> "Mapping[str, Source]":
        """The sources that the settings declare, by key."""
        from docindex_dagster.sources import registry

        return registry.sources(self.settings)

    def keys(self, names: Sequence[str], *, all_sources: bool = False) -> tuple[str, ...]:
        """The keys of the named sources, else of the usual ones; empty for all.

        Raises:
            SourceError: a source is not known or not indexed.
        """
        from docindex_dagster.search.scope import keys_of

        wanted = names or (self.sources if all_sources else self.usual)
        return keys_of(self.settings, self.reader.generation, wanted, all_sources=all_sources)

    def narrowed(
        self, names: Sequence[str], path: str | None, *, all_sources: bool = False
    ) -> tuple[tuple[str, ...], str | None]:
        """The keys of the named sources, and a path glob. A path on disk means the source that it lies in.

        Raises:
            SourceError: as `keys`.
            QueryError: a path from the root lies in no source.
        """
        from docindex_dagster.search.scope import path_of

        if not self.is_local:
            within, glob = None, (path or "").removeprefix("./") or None
        else:
            within, glob = path_of(self.settings, path)
        return self.keys(names or self.sources or ([within] if within else []), all_sources=all_sources), glob

    def graph(self, names: Sequence[str]) -> "OpenGraph":
        """The graph of the named sources, else of the usual ones.

        Raises:
            SourceError: as `keys`.
            DamagedStoreError: a file of it is missing or damaged.
        """
        from docindex_dagster.search.scope import keys_of

        wanted = names or self.usual
        keys = keys_of(self.settings, self.reader.generation, wanted, all_sources=not wanted)
        return self.reader.graph_of(keys) if keys else self.reader.graph
