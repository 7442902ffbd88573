"""The files of a source as they are indexed, and the nodes for what they define."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.callgraph.extract.file import symbol_ids
from docindex_dagster.callgraph.nesting import CLASSES, FUNCTIONS
from docindex_dagster.core.schemas import COMMIT

_CALLABLE = CLASSES | FUNCTIONS


class Defined(NamedTuple):
    """Something that a file defines."""

    id: str
    kind: str
    name: str
    qualified: str
    parent: str
    first_line: int
    last_line: int


@dataclass(frozen=True, slots=True)
class File:
    """A file as it is indexed."""

    path: str
    content_hash: str
    language: str
    defined: dict[str, Defined] = field(default_factory=dict)  # by id
    named: dict[str, list[Defined]] = field(default_factory=dict)  # functions and classes by name

    def define(self, one: Defined) -> None:
        """Add what the file defines."""
        self.defined[one.id] = one
        if one.kind in _CALLABLE:
            self.named.setdefault(one.name, []).append(one)

    def node(self, identifier: str) -> tuple[str, str]:
        """A node of this file and its type; "" is the file itself."""
        found = self.defined.get(identifier)
        return (self.path, "file") if found is None else (f"{self.path}::{identifier}", found.kind)

    def called(self, name: str, line: int) -> Defined | None:
        """The innermost function or class of a name around a line."""
        around = [one for one in self.named.get(name, ()) if one.first_line <= line <= one.last_line]
        return min(around, key=lambda one: one.last_line - one.first_line, default=None)

    def namesakes(self, one: Defined) -> Iterator[Defined]:
        """What has the same qualified name, itself included: overloads, and other definitions under a condition."""
        return (other for other in self.named.get(one.name, ()) if other.qualified == one.qualified)

    def class_around(self, inner: Defined) -> Defined | None:
        """The class in which something is defined."""
        around = self.defined.get(inner.parent)
        return around if around is not None and around.kind in CLASSES else None


def files_of(chunks: pa.Table, paths: Collection[str]) -> dict[str, File]:
    """The files with these paths, from the chunks of a source, which are sorted by path and position."""
    is_wanted = pc.is_in(chunks["path"], pa.array(sorted(paths), pa.string()))
    rows = chunks.filter(pc.and_(is_wanted, pc.not_equal(chunks["source_type"], COMMIT)))
    symbols: dict[str, list[dict[str, Any]]] = {}
    files: dict[str, File] = {}
    for row in rows.select(["path", "content_hash", "language", "symbols", "fallback"]).to_pylist():
        # What was cut as text may be what no parser ends with.
        language = row["language"] if row["language"] and not row["fallback"] else ""
        files.setdefault(row["path"], File(row["path"], row["content_hash"], language))
        symbols.setdefault(row["path"], []).extend(row["symbols"] or ())
    for path, listed in symbols.items():
        ids = symbol_ids([symbol["qualified_name"] for symbol in listed])
        for identifier, symbol in zip(ids, listed, strict=True):
            files[path].define(_defined(identifier, symbol))
    return files


def _defined(identifier: str, symbol: dict[str, Any]) -> Defined:
    names = symbol["name"], symbol["qualified_name"], symbol["parent"] or ""
    return Defined(identifier, symbol["kind"], *names, symbol["start_line"], symbol["end_line"])
