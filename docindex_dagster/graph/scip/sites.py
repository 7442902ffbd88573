"""Definitions and call sites in the indexed files of a source, for comparison with a SCIP index."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.callgraph import languages
from docindex_dagster.callgraph.extract.file import symbol_ids
from docindex_dagster.callgraph.ir import Attribute, Call, CallSite, Decorator, Instance, last_name
from docindex_dagster.callgraph.nesting import CLASSES, FUNCTIONS
from docindex_dagster.code.captures import run_query
from docindex_dagster.code.extraction import extract
from docindex_dagster.code.parsers import parse
from docindex_dagster.code.symbols import Symbol
from docindex_dagster.core.schemas import COMMIT

_CALLABLE = CLASSES | FUNCTIONS
RESULT = "()"
"""Suffix of a site's name where the result of a call is called, as in `make()()`; no index knows that callee."""
_LAST_WORD = re.compile(r"\w+$")


class DefinedSymbol(NamedTuple):
    """Symbol that a file defines."""

    id: str
    kind: str
    name: str
    qualified: str
    parent: str
    first_line: int
    last_line: int


@dataclass(frozen=True, slots=True)
class File:
    """Indexed file."""

    path: str
    content_hash: str
    language: str
    defined: dict[str, DefinedSymbol] = field(default_factory=dict)  # by id
    named: dict[str, list[DefinedSymbol]] = field(default_factory=dict)  # functions and classes by name

    def define(self, definition: DefinedSymbol) -> None:
        """Add a definition of the file."""
        self.defined[definition.id] = definition
        if definition.kind in _CALLABLE:
            self.named.setdefault(definition.name, []).append(definition)

    def node(self, identifier: str) -> tuple[str, str]:
        """Return a node of this file and its type; "" means the file itself."""
        found = self.defined.get(identifier)
        return (self.path, "file") if found is None else (f"{self.path}::{identifier}", found.kind)

    def called(self, name: str, line: int) -> DefinedSymbol | None:
        """Return the innermost function or class with a name around a line."""
        around = [one for one in self.named.get(name, ()) if one.first_line <= line <= one.last_line]
        return min(around, key=lambda one: one.last_line - one.first_line, default=None)

    def namesakes(self, definition: DefinedSymbol) -> Iterator[DefinedSymbol]:
        """Yield all symbols with the same qualified name, including this one: overloads and conditional definitions."""
        return (other for other in self.named.get(definition.name, ()) if other.qualified == definition.qualified)

    def class_around(self, inner: DefinedSymbol) -> DefinedSymbol | None:
        """Return the class that contains a definition."""
        around = self.defined.get(inner.parent)
        return around if around is not None and around.kind in CLASSES else None


def files_of(chunks: pa.Table, paths: Collection[str]) -> dict[str, File]:
    """Return the files with these paths, from the chunks of a source, which are sorted by path and position."""
    is_wanted = pc.is_in(chunks["path"], pa.array(sorted(paths), pa.string()))
    rows = chunks.filter(pc.and_(is_wanted, pc.not_equal(chunks["source_type"], COMMIT)))
    symbols: dict[str, list[dict[str, Any]]] = {}
    files: dict[str, File] = {}
    for row in rows.select(["path", "content_hash", "language", "symbols", "fallback"]).to_pylist():
        # Files cut as text may be ones that parsers cannot finish.
        language = row["language"] if row["language"] and not row["fallback"] else ""
        files.setdefault(row["path"], File(row["path"], row["content_hash"], language))
        symbols.setdefault(row["path"], []).extend(row["symbols"] or ())
    for path, listed in symbols.items():
        ids = symbol_ids([symbol["qualified_name"] for symbol in listed])
        for identifier, symbol in zip(ids, listed, strict=True):
            files[path].define(_defined(identifier, symbol))
    return files


def _defined(identifier: str, symbol: dict[str, Any]) -> DefinedSymbol:
    names = symbol["name"], symbol["qualified_name"], symbol["parent"] or ""
    return DefinedSymbol(identifier, symbol["kind"], *names, symbol["start_line"], symbol["end_line"])


def last_name_of(node: str) -> str:
    """Return the last part of a node's name, by which it is usually called."""
    return node.rpartition("::")[2].partition("~")[0].rpartition(":")[2].rpartition(".")[2]


class Site(NamedTuple):
    """Call site.

    Line and byte are where the callee begins: for `a.b()`, at `a`. The edges of the graph use the same position.
    """

    scope: str  # the id of the calling symbol; "" for the file
    name: str  # the last part of the callee
    line: int
    byte: int
    is_path: bool = False  # whether the name is qualified


class Sites:
    """Call sites of one file, and the names of its definitions."""

    def __init__(self, data: bytes, language: str) -> None:
        """Parse a file, encoded as UTF-8.

        Raises:
            ParseError: The language has no grammar.
        """
        tree = parse(data, language)
        outline = extract(tree, data, language)
        found = languages.extract(tree, language, outline.symbols)
        self._root = tree.root_node
        calls: list[CallSite | Decorator] = [*found.calls, *found.decorators]
        self.all: Mapping[Site, None] = dict.fromkeys(site for one in calls if (site := _site_of(one)) is not None)
        self._at: dict[tuple[int, str], list[Site]] = {}
        for site in self.all:
            self._at.setdefault((site.byte, site.name), []).append(site)
        self._called = {site.name for site in self.all}
        ids = symbol_ids([symbol.qualified_name for symbol in outline.symbols])
        self.symbols: Sequence[tuple[str, Symbol]] = [*zip(ids, outline.symbols, strict=True)]
        self._names = [one.name for one in run_query(tree, language).definitions] if outline.symbols else []

    def definitions(self) -> Iterator[tuple[str, Symbol, tuple[int, int]]]:
        """Yield the ids and symbols of definitions, and the bytes of their names, if these occur in the text."""
        unassigned: dict[str, list[tuple[int, int]]] = {}
        for node in sorted(self._names, key=attrgetter("start_byte")):
            text = node.text.decode("utf-8", "replace") if node.text else ""
            match = _LAST_WORD.search(text)
            name = match[0] if match else ""
            unassigned.setdefault(name, []).append((node.end_byte - len(name.encode()), node.end_byte))
        for identifier, symbol in self.symbols:
            spans = unassigned.get(symbol.name, [])
            inside = (span for span in spans if symbol.start_byte <= span[0] and span[1] <= symbol.end_byte)
            span = next(inside, None)
            if span is not None:
                spans.remove(span)
                yield identifier, symbol, span

    def name_of(self, site: Site) -> tuple[int, int] | None:
        """Return the bytes of the called name, or None if it is not at the end of the callee."""
        wanted = site.name.encode()
        node = self._root.descendant_for_byte_range(site.byte, site.byte)
        found = None
        while node is not None and node.start_byte == site.byte:
            data = node.text or b""
            if data.endswith(wanted) and site in [*self.called(node.end_byte - len(wanted), node.end_byte, site.name)]:
                found = node.end_byte - len(wanted), node.end_byte
            node = node.parent
        return found

    def called(self, start: int, end: int, name: str) -> Iterator[Site]:
        """Yield the calls whose callee ends with the name at some bytes."""
        node = self._root.descendant_for_byte_range(start, end) if name in self._called else None
        last = -1
        while node is not None and node.end_byte == end:
            if node.start_byte != last:
                last = node.start_byte
                yield from (site for site in self._at.get((last, name), ()) if site.is_path == (last != start))
            node = node.parent


def _site_of(reference: CallSite | Decorator) -> Site | None:
    callee = reference.callee if isinstance(reference, CallSite) else reference.value
    name = last_name(callee)
    if not name or (isinstance(reference, Decorator) and isinstance(callee, Call)):
        return None  # `@decorate(…)` is also listed as a call
    is_path = isinstance(callee, Attribute) or (isinstance(callee, Instance) and "." in callee.type.name)
    return Site(
        reference.scope,
        f"{name}{RESULT}" if isinstance(callee, Call) else name,
        reference.line,
        reference.byte,
        is_path,
    )
