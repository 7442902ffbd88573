"""docindex: an always-current, searchable index of a team's code and documentation.

`open_index` opens an index; see docs/how-to/search-from-python.md. The public names are imported lazily.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from docindex_dagster.api import Graph, Index, open_index
    from docindex_dagster.core.errors import (
        AccessError,
        DamagedStoreError,
        DocindexError,
        DocindexWarning,
        EmbeddingError,
        PluginError,
        QueryError,
        SettingsError,
        SourceError,
        StoreError,
    )
    from docindex_dagster.graph.analysis import Statistics
    from docindex_dagster.graph.queries import Step
    from docindex_dagster.operations.status import SourceStatus
    from docindex_dagster.search.context import Context, ContextPassage
    from docindex_dagster.search.matches import Match, Matches
    from docindex_dagster.search.model import Granularity, Hit, Intent, Mode, Signal, Snippet
    from docindex_dagster.stores.published_tables import PublishedTable, Tables

__version__ = "0.1.0"
__all__ = [
    "AccessError",
    "Context",
    "ContextPassage",
    "DamagedStoreError",
    "DocindexError",
    "DocindexWarning",
    "EmbeddingError",
    "Granularity",
    "Graph",
    "Hit",
    "Index",
    "Intent",
    "Match",
    "Matches",
    "Mode",
    "PluginError",
    "PublishedTable",
    "QueryError",
    "SettingsError",
    "Signal",
    "Snippet",
    "SourceError",
    "SourceStatus",
    "Statistics",
    "Step",
    "StoreError",
    "Tables",
    "__version__",
    "open_index",
]
_MODULES = {
    "api": ("Graph", "Index", "open_index"),
    "operations.status": ("SourceStatus",),
    "graph.analysis": ("Statistics",),
    "graph.queries": ("Step",),
    "search.context": ("Context", "ContextPassage"),
    "search.matches": ("Match", "Matches"),
    "search.model": ("Granularity", "Hit", "Intent", "Mode", "Signal", "Snippet"),
    "stores.published_tables": ("PublishedTable", "Tables"),
}
_OTHERS = "core.errors"

if not TYPE_CHECKING:  # type checkers would accept any name

    def __getattr__(name):  # noqa: ANN001, ANN202 the imports above declare the types
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = next((module for module, names in _MODULES.items() if name in names), _OTHERS)
        value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
        return value

    def __dir__():  # noqa: ANN202
        return sorted({*globals(), *__all__})
