"""Components that settings select by name: built-in ones, and entry points of installed packages.

Each package of docindex that has such components lists its built-in ones. `docs/how-to/write-a-plug-in.md` explains
how to write one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar, cast

from docindex_dagster.core.errors import DocindexError

T = TypeVar("T")

CHUNKERS = "docindex.chunkers"
EMBEDDERS = "docindex.embedders"
LLMS = "docindex.llms"
EXTRACTORS = "docindex.extractors"
RERANKERS = "docindex.rerankers"
STAGES = "docindex.stages"


def plugin_names(group: str) -> list[str]:
    """Return the names of a group's entry points in installed packages, sorted."""
    return sorted(entry_points(group=group).names)


@dataclass(frozen=True, slots=True)
class Plugins(Generic[T]):
    """The components of one kind, by name.

    Attributes:
        what: The singular of the kind, for messages.
        group: The entry-point group of plugins.
        ours: The built-in components, which no package can override; lazily loaded ones as `MODULE:NAME`.
        error: The error to raise if a component is unusable.
    """

    what: str
    group: str
    ours: Mapping[str, T | str]
    error: type[DocindexError]

    def names(self) -> list[str]:
        """Return all names, built-in ones first."""
        return [*self.ours, *(name for name in plugin_names(self.group) if name not in self.ours)]

    def load(self, name: str) -> T:
        """Load the component with this name.

        Raises:
            DocindexError: `error`: the component does not exist, or its package cannot be imported.
        """
        if name in self.ours:
            builtin = self.ours[name]
            return cast("T", EntryPoint(name, builtin, self.group).load()) if isinstance(builtin, str) else builtin
        try:
            return cast("T", self._entry_point(name).load())
        except (ImportError, AttributeError) as error:
            raise self.error(f"cannot load the {self.what} {name!r}: {error}") from error

    def check(self, name: str) -> None:
        """Check that a component exists, without importing its package.

        Raises:
            DocindexError: `error`: the component does not exist.
        """
        if name not in self.ours:
            self._entry_point(name)

    def distribution(self, name: str) -> str:
        """Return a component's package and version; empty if it is built in, `missing` if it does not exist."""
        if name in self.ours:
            return ""
        found = _entry_point(self.group, name)
        if found is None:
            return "missing"
        return f"{found.dist.name} {found.dist.version}" if found.dist else ""

    def _entry_point(self, name: str) -> EntryPoint:
        found = _entry_point(self.group, name)
        if found is None:
            names = ", ".join(self.names())
            raise self.error(
                f"{self.what} {name!r} not found: no installed package provides it in {self.group}; available: {names}"
            )
        return found


@cache
def _entry_point(group: str, name: str) -> EntryPoint | None:
    """Return an entry point; cached, since the lookup scans all installed packages and chunkers are needed per file."""
    found = entry_points(group=group)
    return found[name] if name in found.names else None
