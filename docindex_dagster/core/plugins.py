"""What settings choose by a name: things of ours, and those that installed packages offer as entry points.

Each room that has such things lists its own; `docs/plugins.md` says what a package has to do.
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


def offered(group: str) -> list[str]:
    """The names under which installed packages offer something, sorted."""
    return sorted(entry_points(group=group).names)


@dataclass(frozen=True, slots=True)
class Plugins(Generic[T]):
    """Things of one kind, by name.

    Attributes:
        what: such a thing, as messages call it.
        group: the entry-point group of further ones.
        ours: which no package can replace; what is loaded late, as an entry point names it: `MODULE:NAME`.
        error: raised where one cannot be used.
    """

    what: str
    group: str
    ours: Mapping[str, T | str]
    error: type[DocindexError]

    def names(self) -> list[str]:
        """All names, ours first."""
        return [*self.ours, *(name for name in offered(self.group) if name not in self.ours)]

    def load(self, name: str) -> T:
        """The thing of a name.

        Raises:
            DocindexError: of the kind `error`: there is none, or its package cannot be imported.
        """
        if name in self.ours:
            own = self.ours[name]
            return cast("T", EntryPoint(name, own, self.group).load()) if isinstance(own, str) else own
        try:
            return cast("T", self._entry_point(name).load())
        except (ImportError, AttributeError) as error:
            raise self.error(f"the {self.what} {name!r} cannot be loaded: {error}") from error

    def check(self, name: str) -> None:
        """Look whether there is one, without importing its package.

        Raises:
            DocindexError: of the kind `error`: there is none.
        """
        if name not in self.ours:
            self._entry_point(name)

    def distribution(self, name: str) -> str:
        """The package that offers one, with its version; empty for one of ours, `missing` where there is none."""
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
                f"there is no {self.what} {name!r}: no package offers it under {self.group}; there are {names}"
            )
        return found


@cache
def _entry_point(group: str, name: str) -> EntryPoint | None:
    """Kept, since all installed packages are looked through: a chunker is looked up for each file."""
    found = entry_points(group=group)
    return found[name] if name in found.names else None
