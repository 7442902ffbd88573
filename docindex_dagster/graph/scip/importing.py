"""From a file of SCIP to what it knows of the call sites of a source."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from docindex_dagster.core.errors import ScipError
from docindex_dagster.graph.scip.defined import File
from docindex_dagster.graph.scip.documents import Checked, Fitting, Name, checked
from docindex_dagster.graph.scip.index import Index
from docindex_dagster.graph.scip.sites import Site, Sites
from docindex_dagster.graph.scip.symbols import NAMESPACE, Symbol, parse
from docindex_dagster.graph.scip.table import PRECISE
from docindex_dagster.graph.triple import EXTERNAL

_MOST_NAMED = 3
_CONSTRUCTORS = frozenset({"<constructor>", "<init>", "__init__", "constructor"})
_OF_ITSELF = _CONSTRUCTORS | {"super", "this", "self"}  # which call a constructor as such
_BUILTINS = "builtins"
_FILE_ENDINGS = (".ts", ".js", ".tsx", ".jsx", ".mts", ".cts")


class _Target(NamedTuple):
    """What a symbol stands for: nodes of one file, or a name outside of the source; nothing where that is not known."""

    nodes: tuple[str, ...] = ()
    kind: str | None = None
    file: File | None = None


@dataclass(frozen=True, slots=True)
class Imported:
    """What an index knows of a source."""

    tool: str
    table: pa.Table
    files: Sequence[str]  # the paths of the documents that fit
    refused: Mapping[str, Sequence[str]]  # the paths of documents by the reason

    @property
    def known(self) -> int:
        """Of how many call sites it knows what they call."""
        return sum(bool(targets) for targets in self.table["targets"].to_pylist())

    def refusals(self) -> Iterator[str]:
        """A sentence for each reason."""
        for reason, paths in self.refused.items():
            more = f" and {len(paths) - _MOST_NAMED:,} more" if len(paths) > _MOST_NAMED else ""
            yield f"{len(paths):,} refused, since each {reason}: {', '.join(paths[:_MOST_NAMED])}{more}"


def imported(index: Index, folder: Path, chunks: pa.Table) -> Imported:
    """Read what an index says of the calls of a source.

    Args:
        index: the file of SCIP.
        folder: where the files of the source are.
        chunks: what is indexed of them, sorted by path and position.

    Raises:
        ScipError: none of its documents fits.
    """
    found = checked(index, folder, chunks)
    result = Imported(index.tool, _table(found, index.tool), [one.file.path for one in found.fitting], found.refused)
    if not found.fitting:
        raise ScipError("; ".join(["no document of the file fits the source", *result.refusals()]))
    return result


def _table(found: Checked, tool: str) -> pa.Table:
    known = _Known.of(found.fitting)
    rows = [row for document in found.fitting for row in _rows(document, known, tool)]
    columns = zip(*rows, strict=True) if rows else ((),) * len(PRECISE)
    arrays = [pa.array(values, one.type) for values, one in zip(columns, PRECISE, strict=True)]
    return pa.Table.from_arrays(arrays, schema=PRECISE)


def _rows(document: Fitting, known: "_Known", tool: str) -> Iterator[tuple[Any, ...]]:
    """A row for each call site of a document."""
    file = document.file
    sites = Sites(document.data, file.language)
    targets: dict[Site, list[_Target]] = {site: [] for site in sites.all}
    for name in document.names:
        for site in sites.called(name.start, name.end, name.text):
            target = known.target(document, name.symbol, site.name)
            if target is not None and target not in targets[site]:
                targets[site].append(target)
    for site, several in targets.items():
        caller = file.node(site.scope)
        for target in several or [_Target()]:
            called = (*target[:2], *((target.file.path, target.file.content_hash) if target.file else (None, None)))
            yield (file.path, file.content_hash, site.line, site.byte, site.name, *caller, *called, tool)


@dataclass(frozen=True, slots=True)
class _Known:
    """The definitions of all documents."""

    places: Mapping[str, Sequence[tuple[File, Name]]]  # of global symbols
    packages: frozenset[str]  # of these
    local: Mapping[tuple[str, str], Sequence[tuple[File, Name]]] = field(default_factory=dict)  # by path and symbol

    @classmethod
    def of(cls, documents: Iterable[Fitting]) -> "_Known":
        """Collect them."""
        places: dict[str, list[tuple[File, Name]]] = {}
        local: dict[tuple[str, str], list[tuple[File, Name]]] = {}
        packages = set()
        for document in documents:
            for name in document.names:
                if not name.is_definition:
                    continue
                if (symbol := parse(name.symbol)) is None:
                    local.setdefault((document.file.path, name.symbol), []).append((document.file, name))
                else:
                    packages.add(symbol.package)
                    places.setdefault(name.symbol, []).append((document.file, name))
        return cls(places, frozenset(packages), local)

    def target(self, document: Fitting, symbol: str, called: str) -> _Target | None:
        """What a symbol stands for where it is called by a name; None where that is no function or class."""
        found = parse(symbol)
        places = self.places.get(symbol, ()) if found else self.local.get((document.file.path, symbol), ())
        if not places:
            is_outside = found is not None and found.package not in self.packages and found.is_callable
            return _Target((f"{EXTERNAL}:{_outside(found)}",), EXTERNAL) if is_outside and found else None
        file = places[-1][0]
        defined = [one for where, name in places if where is file and (one := file.called(name.text, name.line))]
        if found is not None and found.name in _CONSTRUCTORS and called not in _OF_ITSELF:
            defined = [cls for one in defined if (cls := file.class_around(one))]
        if found is not None:  # an index has one symbol for all overloads, and marks one of them at times
            defined = [other for one in defined for other in file.namesakes(one)]
        nodes = tuple(dict.fromkeys(file.node(one.id)[0] for one in defined))
        return _Target(nodes, defined[-1].kind, file) if nodes else None


def _outside(symbol: Symbol) -> str:
    """The name of what lies outside of the source, as the graph has it."""
    modules = [one.name for one in symbol.descriptors if one.suffix == NAMESPACE]
    if any(name.endswith(_FILE_ENDINGS) for name in modules) or modules[:1] == [_BUILTINS]:
        modules = []
    named = [one.name for one in symbol.descriptors if one.suffix != NAMESPACE]
    if len(named) > 1 and named[-1] in _CONSTRUCTORS:
        named.pop()
    return ".".join([*modules, *named])
