"""Operations that list results. Commands, tools and endpoints are derived from them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import Field

from docindex_dagster.operations.fields import AllSources, PathFilter, Request, Sources
from docindex_dagster.operations.view import View

_Item = TypeVar("_Item")


class ScopedRequest(Request):
    """A request for a part of the index."""

    sources: Sources = Field(default=[])
    all_sources: AllSources = Field(default=False)
    path: PathFilter = Field(default=None)

    def scope(self, view: View) -> tuple[tuple[str, ...], str | None]:
        """Return the keys of the sources, empty for all, and a path glob.

        Raises:
            SourceError: A source is unknown or not indexed.
            QueryError: No source contains an absolute path.
        """
        return view.resolve_scope(self.sources, self.path, all_sources=self.all_sources)

    def has_several(self, view: View) -> bool:
        """Return whether results may come from more than one source.

        Raises:
            DocindexError: As for `scope`.
        """
        return len(self.scope(view)[0]) != 1


@dataclass(frozen=True, slots=True)
class Listing(Generic[_Item]):
    """An operation that returns a list of hits or commits, best first.

    Attributes:
        title: the title of the tool, in a few words.
        summary: what the operation does, in one sentence.
        guidance: what it returns and when to use it, for agents.
        request: its parameters; the first required field, or else the first field, is the command's argument.
        run: returns the best results, up to the given number.
        nothing: the message if there are no results.
    """

    title: str
    summary: str
    guidance: str
    request: type[ScopedRequest]
    run: Callable[[View, Any, int], list[_Item]]
    nothing: str
