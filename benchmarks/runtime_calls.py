"""Compare the graph with the calls recorded while a package's tests run.

    python -m benchmarks.runtime_calls FILE FOLDER [-v]

FILE comes from `benchmarks/runtime_recorder.py`, whose docstring defines the recorded calls. FOLDER is the root of
the repository in which they were recorded. Calls are compared as pairs of caller and callee, as in an edge:

- lambdas, generator expressions and top-level code belong to their enclosing scope, as in the graph;
- a constructor is its class;
- a decorated function and its wrapper are one callee.

`-v` lists missing calls and what the graph has in their places.
"""

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.runtime_recorder import Place
from docindex_dagster.callgraph.extract.file import symbol_ids
from tests.graph.built import build_graph
from tests.graph.calls import chunks_of

_CONSTRUCTOR = re.compile(r"\.__init__(?:~\d+)?$")
_OUTSIDE = ("external", "unresolved")
_WITHOUT_NAME = "<"


class Edge(NamedTuple):
    """A call in the graph."""

    caller: str
    callee: str
    line: int
    resolution: str
    is_certain: bool  # `calls`, not `may_call`

    @property
    def is_inside(self) -> bool:
        """Return whether it leads to a node of the repository."""
        return self.callee.partition(":")[0] not in _OUTSIDE


class Pair(NamedTuple):
    """Observed calls: the calling node, and alternative callee nodes, one of which an edge must name."""

    caller: str
    callees: frozenset[str]


class Missing(NamedTuple):
    """Calls without an edge, and what the graph has at the first place."""

    pair: Pair
    line: int
    reason: str
    instead: str


@dataclass(frozen=True)
class Symbols:
    """Nodes of functions and classes by their position in the source."""

    starts: Mapping[tuple[str, str], Sequence[tuple[int, str]]]  # by path and qualified name: first lines and nodes

    @classmethod
    def of(cls, chunks: pa.Table) -> "Symbols":
        """Return the symbols of all files."""
        listed: dict[str, list[dict[str, Any]]] = {}
        for row in chunks.select(["path", "symbols"]).to_pylist():
            listed.setdefault(row["path"], []).extend(row["symbols"] or ())
        starts: dict[tuple[str, str], list[tuple[int, str]]] = {}
        for path, symbols in listed.items():
            ids = symbol_ids([one["qualified_name"] for one in symbols])
            for one, identifier in zip(symbols, ids, strict=True):
                at = one["start_line"], f"{path}::{identifier}"
                starts.setdefault((path, one["qualified_name"]), []).append(at)
        return cls(starts)

    def caller(self, place: Place) -> str:
        """Return the calling node: the innermost named function or class, or the file."""
        path, qualified, line = place
        if named := self._lambda(place):
            return named
        while qualified:
            outer, _, last = qualified.rpartition(".")
            if not last.startswith(_WITHOUT_NAME):
                nodes = self.nodes((path, qualified, line)) or self.nodes((path, qualified, 0))
                return min(nodes, default=f"{path}::{qualified}")
            qualified = outer
        return path

    def callees(self, place: Place) -> frozenset[str]:
        """Return the nodes of a called function or class; a constructor is its class."""
        return frozenset(map(_as_class, self.nodes(place)))

    def nodes(self, place: Place) -> frozenset[str]:
        """Return the nodes of a function, or of all classes with a name, whose lines are unknown. Lambdas have none."""
        path, qualified, line = place
        if named := self._lambda(place):
            return frozenset({named})
        return frozenset(node for start, node in self.starts.get((path, qualified), ()) if line in {0, start})

    def _lambda(self, place: Place) -> str:
        """Return the node of a lambda that is assigned to a name."""
        path, qualified, line = place
        outer, _, last = qualified.rpartition(".")
        if last != "<lambda>":
            return ""
        return next((node for node in self._by_line.get((path, outer), {}).get(line, ())), "")

    @cached_property
    def _by_line(self) -> Mapping[tuple[str, str], Mapping[int, Sequence[str]]]:
        found: dict[tuple[str, str], dict[int, list[str]]] = {}
        for (path, qualified), starts in self.starts.items():
            for start, node in starts:
                found.setdefault((path, qualified.rpartition(".")[0]), {}).setdefault(start, []).append(node)
        return found


@dataclass(frozen=True)
class Comparison:
    """Observed calls and the matching edges of the graph."""

    found: frozenset[Pair]  # whose callee `calls` has
    possible: frozenset[Pair]  # whose callee only `may_call` has
    missing: tuple[Missing, ...]
    nameless: int  # lines that call a value without a name in the text
    seen_edges: int  # observed `calls` within the package, by callers that ran
    edges: int  # all of these

    @property
    def needed(self) -> int:
        """The number of observed calls."""
        return len(self.found) + len(self.possible) + len(self.missing)


def compare(recorded: Mapping[str, Any], symbols: Symbols, edges: Iterable[Edge]) -> Comparison:
    """Compare recorded calls with the edges of the graph of the same repository."""
    seen, nameless = _seen(recorded, symbols)
    by_caller: dict[str, list[Edge]] = {}
    for edge in edges:
        by_caller.setdefault(edge.caller, []).append(edge)
    found, possible, missing = set(), set(), []
    for pair, line in seen.items():
        reached = [edge for edge in by_caller.get(pair.caller, ()) if edge.callee in pair.callees]
        if any(edge.is_certain for edge in reached):
            found.add(pair)
        elif reached:
            possible.add(pair)
        else:
            missing.append(_missing(pair, line, by_caller.get(pair.caller, ())))
    ran = {symbols.caller(_place(place)) for place in recorded["ran"]}
    package = f"{recorded['package']}/"
    ours = {
        (caller, edge.callee)
        for caller in ran
        for edge in by_caller.get(caller, ())
        if edge.is_certain and edge.callee.startswith(package)
    }
    of_callees = {(pair.caller, callee) for pair in seen for callee in pair.callees}
    return Comparison(
        frozenset(found),
        frozenset(possible),
        tuple(sorted(missing, key=_order)),
        nameless,
        len(ours & of_callees),
        len(ours),
    )


def _order(one: Missing) -> tuple[str, int, list[str]]:
    return one.pair.caller, one.line, sorted(one.pair.callees)


def _seen(recorded: Mapping[str, Any], symbols: Symbols) -> tuple[dict[Pair, int], int]:
    """Return the observed pairs with their first lines, and the number of lines that call a value without a name."""
    seen: dict[Pair, int] = {}
    nameless = 0
    for call in recorded["calls"]:
        callees = frozenset().union(*(symbols.callees(_place(place)) for place in call["callees"]))
        if not callees:
            nameless += 1
            continue
        pair = Pair(symbols.caller(_place(call["caller"])), callees)
        seen[pair] = min(call["line"], seen.get(pair, call["line"]))
    return seen, nameless


def _missing(pair: Pair, line: int, edges: Sequence[Edge]) -> Missing:
    """Explain why a caller has no edge to a callee: an unresolved call of this name, or the line's other calls."""
    names = {re.split(r"[.:]", callee.partition("~")[0])[-1] for callee in pair.callees}
    here = [edge for edge in edges if edge.line == line]
    unresolved = [edge for edge in edges if edge.callee.partition(":")[2] in names and not edge.is_inside]
    unresolved += here
    for edge in unresolved:
        if edge.resolution.startswith("unresolved"):
            return Missing(pair, line, _without_names(edge.resolution), edge.callee)
    if not here:
        return Missing(pair, line, "no call in the graph", "")
    reason = "calls another symbol" if any(edge.is_inside for edge in here) else "calls an external symbol"
    return Missing(pair, line, reason, ", ".join(sorted({edge.callee for edge in here})))


def _without_names(resolution: str) -> str:
    """Remove the name from a reason."""
    general = re.sub(r": \S+ is a value", ": a value", resolution)
    return re.sub(r": no \S+ in what", ": no such member of what", general)


def edges_of(chunks: pa.Table) -> Iterator[Edge]:
    """Return the calls in the graph of a repository with these chunks."""
    triples = _triples(chunks)
    for row in triples.filter(pc.is_in(triples["predicate"], pa.array(["calls", "may_call"]))).to_pylist():
        is_certain = row["predicate"] == "calls"
        yield Edge(row["subject"], _as_class(row["object"]), row["line"], row["resolution"], is_certain)


def _triples(chunks: pa.Table) -> pa.Table:
    return build_graph(chunks).triples


def _as_class(node: str) -> str:
    return _CONSTRUCTOR.sub("", node)


def _place(listed: Sequence[Any]) -> Place:
    path, qualified, line = listed
    return path, qualified, line


def main() -> None:
    """Print the recall."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("calls", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("-v", "--verbose", action="store_true", help="List pairs without a `calls` edge.")
    arguments = parser.parse_args()
    recorded = json.loads(arguments.calls.read_text("utf-8"))
    chunks = chunks_of(arguments.folder)
    result = compare(recorded, Symbols.of(chunks), edges_of(chunks))
    print(f"{recorded['package']}: {len(recorded['ran'])} functions ran, {len(recorded['calls'])} lines called")
    print(f"{result.needed} pairs of caller and callee; {result.nameless} lines call a value without a name")
    for name, pairs in (("calls", result.found), ("may_call", result.possible), ("missing", result.missing)):
        print(f"{name:<9}{len(pairs):>5}{len(pairs) / max(1, result.needed):>8.1%}")
    for reason, count in Counter(one.reason for one in result.missing).most_common():
        print(f"{'':<9}{count:>5}  {reason}")
    share = result.seen_edges / max(1, result.edges)
    print(f"of {result.edges} edges of what ran {result.seen_edges} were seen: {share:.1%}")
    if arguments.verbose:
        _list(result)


def _list(result: Comparison) -> None:
    for pair in sorted(result.possible, key=lambda one: (one.caller, sorted(one.callees))):
        print(f"may_call  {pair.caller} -> {_either(pair)}")
    for one in result.missing:
        instead = f": {one.instead}" if one.instead else ""
        print(f"missing   {one.pair.caller}:{one.line} -> {_either(one.pair)} ({one.reason}{instead})")


def _either(pair: Pair) -> str:
    return " or ".join(sorted(pair.callees))


if __name__ == "__main__":
    main()
