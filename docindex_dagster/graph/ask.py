"""Questions to the graph: who calls this, what it calls, what is near, how two things hang together, what may break."""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.core.errors import QueryError
from docindex_dagster.graph.opened import OpenGraph

CALLS = frozenset({"calls"})
# Through what a change of one thing reaches others, against the direction of the edges.
IMPACT = frozenset({"calls", "inherits", "implements", "uses", "references", "imports", "decorates", "tests"})
_CONSTRUCTORS = frozenset({"__init__", "constructor", "initialize", "__construct"})
# Where something stands is no way to something else.
_PLACES = frozenset({"defined_in", "defines", "has_section"})
_MOST_CANDIDATES = 8  # that an error names
_MOST_LIKE = 3
_SYMBOL_MARK = "::"
_LAST = re.compile(r"[.:/]")
_FAR, _FARTHEST = 5, 12  # edges


@dataclass(frozen=True, slots=True)
class Step:
    """An edge, as it was walked: from where, to where, and what says so."""

    depth: int
    subject: str
    predicate: str
    object: str
    type: str  # of the node that was reached
    path: str
    line: int | None
    chunk_id: str
    confidence: float
    resolution: str

    @property
    def place(self) -> str:
        """Where the source says so."""
        return f"{self.path}:{self.line}" if self.line else self.path


def find(graph: OpenGraph, name: str) -> list[int]:
    """The nodes that a user means: by whole name, path, qualified name or the end of it; those that fit best."""
    if name in graph.numbers:
        return [graph.numbers[name]]
    wanted = name.replace("#", ".") if _SYMBOL_MARK not in name and "/" not in name else name
    ranks: dict[int, list[int]] = {}
    has_its_end = pc.match_substring(graph.nodes["id"], _LAST.split(wanted)[-1])
    for number in np.flatnonzero(has_its_end.to_numpy()).tolist():
        rank = _match(graph.ids[number].partition("!")[2], graph.types[number], wanted)
        if rank:
            ranks.setdefault(rank, []).append(number)
    if not ranks and _SYMBOL_MARK in name:  # as Ruby and C++ write it
        return find(graph, name.replace(_SYMBOL_MARK, "."))
    return ranks[min(ranks)] if ranks else []


def _match(node: str, kind: str, wanted: str) -> int:
    """How well a node fits a name, 1 the best; 0 not at all."""
    path, mark, qualified = node.partition(_SYMBOL_MARK)
    if node == wanted or (mark and f"{path}:{qualified}" == wanted):
        return 1
    if not mark:
        if path.endswith(f"/{wanted}"):
            return 2
        return 4 if kind in {"external", "concept"} and node.partition(":")[2] == wanted else 0
    plain = qualified.partition("~")[0]
    if plain == wanted or plain.endswith(f".{wanted}") or node.endswith(f"/{wanted}"):
        return 2
    if wanted.endswith(f".{plain}"):
        return _match_module(path, wanted.removesuffix(f".{plain}").split("."))
    return 0


def _match_module(path: str, wanted: Sequence[str]) -> int:
    """How well the names before a qualified name fit its file: as the end of its module's name, or of a package."""
    module = [name for name in path.rpartition(".")[0].split("/") if name != "__init__"]
    names = len(wanted)
    if module[-names:] == wanted:
        return 2
    return 3 if any(module[at : at + names] == wanted for at in range(len(module) - names)) else 0


def one(graph: OpenGraph, name: str) -> list[int]:
    """The nodes of one symbol; its overloads count as one.

    Raises:
        QueryError: there is none, or there are several.
    """
    found = find(graph, name)
    if not found:
        like = _like(graph, name)
        hint = f"did you mean {like}?" if like else "give a qualified name, as Class.method, or PATH::Class.method"
        raise QueryError(f"the graph has no {name!r}: {hint}")
    symbols = {graph.ids[number].partition("~")[0] for number in found}
    if len(symbols) > 1:
        names = ", ".join(sorted(symbols)[:_MOST_CANDIDATES])
        more = f" and {len(symbols) - _MOST_CANDIDATES} more" if len(symbols) > _MOST_CANDIDATES else ""
        raise QueryError(f"{name!r} names {len(symbols)} things: {names}{more}; give one of them")
    return found


def _like(graph: OpenGraph, name: str) -> str:
    """The symbols whose last names are like that of one that is not there."""
    last = _LAST.split(name)[-1]
    is_symbol = pc.match_substring(graph.nodes["id"], _SYMBOL_MARK)
    names = graph.nodes["name"].filter(
        pc.and_(is_symbol, pc.starts_with(graph.nodes["name"], last[:1], ignore_case=True))
    )
    found = get_close_matches(last, pc.unique(names).to_pylist(), _MOST_LIKE)
    return " or ".join(found)


def nothing_known(graph: OpenGraph, question: str, name: str, to: str = "") -> str:
    """A sentence for an answer without edges: of which symbol none is known, and what may be missing.

    Raises:
        QueryError: there is no such symbol, or there are several.
    """
    symbol = graph.ids[one(graph, name)[0]]
    if question == "path":
        return f"no way is known from {symbol} to {graph.ids[one(graph, to)[0]]}"
    what = {"callers": "no call of", "callees": "no call in", "impact": "nothing that depends on"}
    sentence = f"{what.get(question, 'no edge of')} {symbol} is known"
    last = _LAST.split(symbol.partition("~")[0])[-1]
    node = graph.numbers.get(f"{symbol.partition('!')[0]}!unresolved:{last}")
    unresolved = len(graph.reaching(node)) if node is not None and question in {"callers", "impact"} else 0
    calls = "1 call" if unresolved == 1 else f"{unresolved} calls"
    return f"{sentence}; {calls} of that name could not be resolved" if unresolved else sentence


def callers(graph: OpenGraph, name: str, depth: int = 1) -> list[Step]:
    """Who calls a symbol, and who calls those, up to a depth. Making an object calls its constructor, and its class."""
    return [*_walk(graph, _with_constructors(graph, one(graph, name)), CALLS, depth, backward=True)]


def callees(graph: OpenGraph, name: str, depth: int = 1) -> list[Step]:
    """What a symbol calls; of a class, what its methods call."""
    return [*_walk(graph, _with_members(graph, one(graph, name)), CALLS, depth, backward=False)]


def impact(graph: OpenGraph, name: str, depth: int = _FAR) -> list[Step]:
    """What may break if a symbol changes: all that calls, inherits, uses or imports it, directly or through others."""
    return [*_walk(graph, _with_members(graph, one(graph, name)), IMPACT, depth, backward=True)]


def neighbors(graph: OpenGraph, name: str, predicates: Iterable[str] | None = None) -> list[Step]:
    """The edges that leave and reach a node."""
    wanted = None if predicates is None else frozenset(predicates)
    nodes = one(graph, name)
    leaving = [edge for node in nodes for edge in graph.leaving(node).tolist()]
    reaching = [edge for node in nodes for edge in graph.reaching(node).tolist()]
    steps = [step for step, _ in _steps(graph, [*leaving, *(edge for edge in reaching if edge not in set(leaving))], 1)]
    return [step for step in steps if wanted is None or step.predicate in wanted]


def path(graph: OpenGraph, start: str, end: str, depth: int = _FARTHEST) -> list[Step]:
    """One of the shortest ways from one node to another, along edges in their direction; else against it.

    Empty where there is none.
    """
    sources, targets = one(graph, start), set(one(graph, end))
    return _shortest(graph, sources, targets, graph.leaving, depth) or _shortest(
        graph, sources, targets, lambda node: [*graph.leaving(node), *graph.reaching(node)], depth
    )


def answer(graph: OpenGraph, question: str, symbol: str, to: str = "", depth: int | None = None) -> list[Step]:
    """The answer to one of the questions of this module, by its name.

    Raises:
        QueryError: there is no such question, or what it asks about is not there.
    """
    if not symbol or (question == "path" and not to):
        raise QueryError(f"{question} needs {'two symbols' if question == 'path' else 'a symbol'}")
    match question:
        case "callers":
            return callers(graph, symbol, depth or 1)
        case "callees":
            return callees(graph, symbol, depth or 1)
        case "impact":
            return impact(graph, symbol, depth or _FAR)
        case "neighbors":
            return neighbors(graph, symbol)
        case "path":
            return path(graph, symbol, to, depth or _FARTHEST)
        case _:
            raise QueryError(f"{question!r} is no question to the graph")


def _shortest(
    graph: OpenGraph, sources: Sequence[int], targets: set[int], edges: Callable[[int], Iterable[int]], depth: int
) -> list[Step]:
    is_place = graph.chosen(_PLACES)
    came: dict[int, tuple[int, int]] = {}
    queue = deque((node, 0) for node in sources)
    seen = set(sources)
    while queue:
        node, far = queue.popleft()
        if node in targets:
            way: list[int] = []
            while node in came:
                node, edge = came[node]
                way.append(edge)
            return [step for number, edge in enumerate(way[::-1], 1) for step, _ in _steps(graph, [edge], number)]
        if far == depth:
            continue
        for edge in edges(node):
            if is_place[edge]:
                continue
            for other in (int(graph.objects[edge]), int(graph.subjects[edge])):
                if other not in seen and graph.types[other] not in {"unresolved", "external"}:
                    seen.add(other)
                    came[other] = node, int(edge)
                    queue.append((other, far + 1))
    return []


def _walk(
    graph: OpenGraph, nodes: Iterable[int], predicates: frozenset[str], depth: int, *, backward: bool
) -> Iterator[Step]:
    """The edges of some predicates from nodes outward, each node once, the nearest first."""
    is_wanted = graph.chosen(predicates)
    edges_of = graph.reaching if backward else graph.leaving
    level, seen = [*nodes], {*nodes}
    for distance in range(1, depth + 1):
        near = np.concatenate([edges_of(node) for node in level]) if level else np.empty(0, np.int64)
        level = []
        for step, edge in _steps(graph, near[is_wanted[near]].tolist(), distance):
            other = int(graph.subjects[edge] if backward else graph.objects[edge])
            yield step
            if other not in seen and not (backward and graph.types[other] == "file" and step.predicate == "calls"):
                seen.add(other)
                level += _with_constructors(graph, [other]) if backward else [other]


def _steps(graph: OpenGraph, edges: Sequence[int], depth: int) -> Iterator[tuple[Step, int]]:
    rows = graph.edges.take(pa.array(edges, pa.int64())).to_pylist()
    for row, edge in zip(rows, edges, strict=True):
        yield (
            Step(
                depth,
                graph.ids[row["subject"]],
                row["predicate"],
                graph.ids[row["object"]],
                graph.types[row["object"]],
                row["path"],
                row["line"],
                row["chunk_id"],
                row["confidence"],
                row["resolution"],
            ),
            edge,
        )


def _with_constructors(graph: OpenGraph, nodes: Iterable[int]) -> list[int]:
    """Nodes, and the class of each that is a constructor: who makes an object calls it."""
    found = []
    for node in nodes:
        found.append(node)
        identifier = graph.ids[node].partition("~")[0]
        owner, _, name = identifier.rpartition(".")
        if name in _CONSTRUCTORS or (_SYMBOL_MARK in owner and owner.rpartition(_SYMBOL_MARK)[2].endswith(name)):
            found += [graph.numbers[owner]] if owner in graph.numbers else []
    return found


def _with_members(graph: OpenGraph, nodes: Iterable[int]) -> list[int]:
    """Nodes, and what they contain."""
    found, stack = [], [*nodes]
    contains = graph.chosen({"contains"})
    while stack:
        node = stack.pop()
        if node not in found:
            found.append(node)
            leaving = graph.leaving(node)
            stack += graph.objects[leaving[contains[leaving]]].tolist()
    return found
