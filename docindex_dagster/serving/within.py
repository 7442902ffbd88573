"""What a question may look at: its filters, which a tool can narrow further, and never widen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from docindex_dagster.core.errors import QueryError, SourceError
from docindex_dagster.core.schemas import COMMIT
from docindex_dagster.core.settings import Settings
from docindex_dagster.operations.search import Where
from docindex_dagster.operations.view import View
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.scope import key_of
from docindex_dagster.stores.reader import Reader

_NAMED = 20  # sources of an error
_FILTERED = ("source", "path", "language", "human_language", "source_type", "symbol_kind")


@dataclass(frozen=True, slots=True)
class Within:
    """One generation, as far as a question goes."""

    settings: Settings
    reader: Reader
    filters: Filters

    @property
    def view(self) -> View:
        """The generation, all of it."""
        return View(self.settings, self.reader, is_local=False)

    @property
    def sources(self) -> tuple[str, ...]:
        """The keys of all sources within."""
        return self.filters.sources or tuple(self.reader.generation.sources)

    @property
    def is_whole(self) -> bool:
        """Whether all of each source is within."""
        return replace(self.filters, sources=()) == Filters()

    def keys(self, names: Sequence[str] | None) -> tuple[str, ...]:
        """The keys of the sources that a call names, else those of the question; empty for all.

        Raises:
            QueryError: one of them is not within.
        """
        if not names:
            return self.filters.sources
        return tuple(self._key(name) for name in names)

    def narrowed(self, where: Where) -> Filters:
        """The filters of the question and of a call; its paths are those of a source, never on the disk.

        Raises:
            QueryError: nothing can meet both, or a value of the call is none.
        """
        keys, path = self.keys(where.sources), where.path
        anywhere = where.model_copy(update={"sources": [], "all_sources": True, "path": None})
        call = anywhere.filters(self.view)
        own = self.filters
        found = replace(
            own,
            sources=keys,
            languages=_both("languages", own.languages, call.languages),
            human_languages=_both("human_languages", own.human_languages, call.human_languages),
            source_types=_both("types", own.source_types, call.source_types),
            symbol_kinds=_both("kinds", own.symbol_kinds, call.symbol_kinds),
        )
        return self._on_path(found, path.removeprefix("./")) if path else found

    def holds(self, rows: Sequence[Mapping[str, Any]], filters: Filters | None = None) -> NDArray[np.bool_]:
        """Which chunks are within: booleans of shape (rows,). A commit is, unless the filters are of files."""
        table = pa.table({name: pa.array([row[name] for row in rows], pa.string()) for name in _FILTERED})
        own = filters or self.filters
        of_commits = replace(own, source_types=own.source_types or (COMMIT,))
        return own.to_mask(table) | of_commits.to_mask(table)

    def holds_paths(self, source: str, paths: Sequence[str], filters: Filters) -> NDArray[np.bool_]:
        """Which paths of a source are within, by the filters of paths alone: booleans of shape (paths,)."""
        on_path = Filters(path_glob=filters.path_glob, places=filters.places)
        rows = [dict.fromkeys(_FILTERED, "") | {"source": source, "path": path} for path in paths]
        return self.holds(rows, on_path)

    def _key(self, name: str) -> str:
        try:
            key = key_of(self.settings, self.reader.generation, name)
        except SourceError:
            key = ""
        if key not in self.sources:
            named = ", ".join(self.sources[:_NAMED])
            more = f" and {len(self.sources) - _NAMED} more" if len(self.sources) > _NAMED else ""
            raise QueryError(f"{name!r} is none of the sources that the question is about: {named}{more}")
        return key

    def _on_path(self, filters: Filters, glob: str) -> Filters:
        if filters.path_glob is None:
            return replace(filters, path_glob=glob)
        if filters.places:
            raise QueryError("path: the question is narrowed to places already; leave it out")
        return replace(filters, places=tuple((key, glob) for key in filters.sources or self.sources))


def _both(argument: str, own: tuple[str, ...], call: tuple[str, ...]) -> tuple[str, ...]:
    """The values that both ask for; no value asks for all."""
    if not own or not call:
        return own or call
    if found := tuple(value for value in call if value in own):
        return found
    raise QueryError(f"{argument}: the question is about {', '.join(own)} alone, not about {', '.join(call)}")
