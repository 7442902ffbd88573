"""Questions to the graph: who calls this, what it calls, what is near, how two things hang together, what may break."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from docindex_dagster.core.errors import QueryError
from docindex_dagster.core.traces import span
from docindex_dagster.graph.lookup import LAST, SYMBOL_MARK, one, symbol_of, symbols
from docindex_dagster.graph.open_graph import OpenGraph

CALLS = frozenset({"calls"})
DISPATCH = CALLS | {"may_call"}  # what a call names, and what may run instead
BACKWARD = frozenset({"callers", "impact"})  # the questions that go against the edges
# Through what a change of one thing reaches others, against the direction of the edges.
IMPACT = DISPATCH | frozenset({"inherits", "implements", "uses", "references", "imports", "decorates", "tests"})
_CONSTRUCTORS = frozenset({"__init__", "constructor", "initialize", "__construct"})
# Where something stands is no way to something else.
_PLACES = frozenset({"defined_in", "defines", "has_section"})
_FAR, _FARTHEST = 5, 12  # edges
# What an edge of a path costs: a way by calls is taken where it is not four times as long as one by containment.
_COST_OF_CALL, _COST_OF_DEPENDENCY, _COST_OF_OTHER = 1, 2, 4


@dataclass(frozen=True, slots=True)
class Step:
    """An edge, as it was walked: from where, to where, and what says so; and the symbol that was asked about."""

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
    symbol: str = ""

    @property
    def source(self) -> str:
        """The source that says so."""
        return self.subject.partition("!")[0]

    @property
    def place(self) -> str:
        """Where the source says so."""
        return f"{self.path}:{self.line}" if self.line else self.path


def nothing_known(graph: OpenGraph, question: str, name: str, to: str = "") -> str:
    """A sentence for an answer without edges: of which symbol none is known, and what may be missing.

    Raises:
        QueryError: there is no such symbol, or there are several.
    """
    symbol = graph.ids[one(graph, name)[0]]
    if question == "path":
        return _with_gaps(f"no way is known from {symbol} to {graph.ids[one(graph, to)[0]]}", graph.unread_files)
    what = {"callers": "no call of", "callees": "no call in", "impact": "nothing that depends on"}
    sentence = f"{what.get(question, 'no edge of')} {symbol} is known"
    last = LAST.split(symbol.partition("~")[0])[-1]
    node = graph.numbers.get(f"{symbol.partition('!')[0]}!unresolved:{last}")
    unresolved = len(graph.reaching(node)) if node is not None and question in {"callers", "impact"} else 0
    calls = "1 call" if unresolved == 1 else f"{unresolved} calls"
    of_name = f"{calls} of that name could not be resolved" if unresolved else ""
    return _with_gaps(sentence, of_name, graph.unread_files)


def _with_gaps(sentence: str, *gaps: str) -> str:
    """A sentence that says that nothing is known, with what was not looked at."""
    return "; ".join(filter(None, (sentence, *gaps)))


def unanswered(graph: OpenGraph, question: str, name: str, to: str, steps: Sequence[Step]) -> list[str]:
    """A sentence for each symbol that a question is about and that no step answers.

    Raises:
        QueryError: there is no such symbol, or one of a path names several.
    """
    if question == "path":
        return [] if steps else [nothing_known(graph, question, name, to)]
    answered = {step.symbol for step in steps}
    asked = [symbol_of(graph, nodes[0]) for nodes in symbols(graph, name)]
    return [nothing_known(graph, question, symbol) for symbol in asked if symbol not in answered]


def notes(graph: OpenGraph, question: str, name: str, to: str, steps: Sequence[Step]) -> list[str]:
    """What to say beside the steps of an answer: what has none, and what is not linked yet.

    Raises:
        QueryError: as `unanswered`.
    """
    return [*unanswered(graph, question, name, to, steps), *filter(None, [graph.unlinked_files])]


def without_repeats(steps: Sequence[Step]) -> list[Step]:
    """Steps without those that say what others do: a test that calls what it tests is a caller, and no edge more."""
    called = {(step.subject, step.object) for step in steps if step.predicate == "calls"}
    return [one for one in steps if one.predicate != "tests" or (one.subject, one.object) not in called]


def callers(graph: OpenGraph, name: str, depth: int = 1) -> list[Step]:
    """Who calls a symbol, and who calls those, up to a depth. Making an object calls its constructor, and its class.

    A name may fit several symbols, here as in the questions below: each is answered for, one after the other.
    """
    return _of_each(
        graph, name, lambda nodes: _walk(graph, _with_constructors(graph, nodes), DISPATCH, depth, backward=True)
    )


def callees(graph: OpenGraph, name: str, depth: int = 1) -> list[Step]:
    """What a symbol calls; of a class, what its methods call."""
    return _of_each(
        graph, name, lambda nodes: _walk(graph, _with_members(graph, nodes), DISPATCH, depth, backward=False)
    )


def impact(graph: OpenGraph, name: str, depth: int = _FAR) -> list[Step]:
    """What may break if a symbol changes: all that calls, inherits, uses or imports it, directly or through others."""
    return _of_each(graph, name, lambda nodes: _walk(graph, _with_members(graph, nodes), IMPACT, depth, backward=True))


def neighbors(graph: OpenGraph, name: str, predicates: Iterable[str] | None = None) -> list[Step]:
    """The edges that leave and reach a node."""
    wanted = None if predicates is None else frozenset(predicates)

    def near(nodes: Sequence[int]) -> Iterator[Step]:
        edges = [edge for edges in (graph.leaving, graph.reaching) for node in nodes for edge in edges(node).tolist()]
        for step, _ in _steps(graph, [*dict.fromkeys(edges)], 1):
            if wanted is None or step.predicate in wanted:
                yield step

    return _of_each(graph, name, near)


def _of_each(graph: OpenGraph, name: str, walk: Callable[[list[int]], Iterable[Step]]) -> list[Step]:
    """The steps from each symbol that a name fits."""
    found = symbols(graph, name)
    return [replace(step, symbol=symbol_of(graph, nodes[0])) for nodes in found for step in walk(nodes)]


def path(graph: OpenGraph, start: str, end: str, depth: int = _FARTHEST) -> list[Step]:
    """A short way from one node to another, along edges in their direction; else against it. Rather calls than others.

    Empty where there is none of at most so many edges.

    Raises:
        QueryError: one of the two is not there, or names several symbols.
    """
    sources, targets = one(graph, start), set(one(graph, end))
    costs = np.full(graph.edges.num_rows, _COST_OF_OTHER)
    costs[graph.chosen(IMPACT)] = _COST_OF_DEPENDENCY
    costs[graph.chosen(CALLS)] = _COST_OF_CALL
    for edges in (graph.leaving, lambda node: [*graph.leaving(node), *graph.reaching(node)]):
        for by in (costs, np.ones_like(costs)):  # the cheapest way may have too many edges
            if way := _cheapest(graph, sources, targets, edges, costs=by, depth=depth):
                return way
    return []


def answer(
    graph: OpenGraph,
    question: str,
    symbol: str,
    to: str = "",
    depth: int | None = None,
    *,
    predicates: Iterable[str] | None = None,
) -> list[Step]:
    """The answer to one of the questions of this module, by its name.

    Raises:
        QueryError: there is no such question, or what it asks about is not there.
    """
    if not symbol or (question == "path" and not to):
        raise QueryError(f"{question} needs {'two symbols' if question == 'path' else 'a symbol'}")
    with span("graph question", question=question):
        match question:
            case "callers":
                return callers(graph, symbol, depth or 1)
            case "callees":
                return callees(graph, symbol, depth or 1)
            case "impact":
                return impact(graph, symbol, depth or _FAR)
            case "neighbors":
                return neighbors(graph, symbol, predicates)
            case "path":
                return path(graph, symbol, to, depth or _FARTHEST)
            case _:
                raise QueryError(f"{question!r} is no question to the graph")


def _cheapest(
    graph: OpenGraph,
    sources: Sequence[int],
    targets: set[int],
    edges: Callable[[int], Iterable[int]],
    *,
    costs: NDArray[np.int64],
    depth: int,
) -> list[Step]:
    """Dijkstra's algorithm, for ways of at most `depth` edges; `costs` has the shape (edges,)."""
    is_place = graph.chosen(_PLACES)
    came: dict[int, tuple[int, int]] = {}
    cost = dict.fromkeys(sources, 0)
    queue = [(0, 0, node) for node in sources]
    while queue:
        spent, far, node = heappop(queue)
        if node in targets:
            return _way(graph, came, node)
        if spent > cost[node]:
            continue
        for edge in edges(node) if far < depth else ():
            if is_place[edge]:
                continue
            for other in (int(graph.objects[edge]), int(graph.subjects[edge])):
                total = spent + int(costs[edge])
                if total < cost.get(other, total + 1) and graph.types[other] not in {"unresolved", "external"}:
                    cost[other] = total
                    came[other] = node, int(edge)
                    heappush(queue, (total, far + 1, other))
    return []


def _way(graph: OpenGraph, came: dict[int, tuple[int, int]], node: int) -> list[Step]:
    """The steps to a node, from the node that it was first reached from, and so on."""
    way: list[int] = []
    while node in came:
        node, edge = came[node]
        way.append(edge)
    return [step for number, edge in enumerate(way[::-1], 1) for step, _ in _steps(graph, [edge], number)]


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
            if other not in seen and not (backward and graph.types[other] == "file" and step.predicate in DISPATCH):
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
        if name in _CONSTRUCTORS or (SYMBOL_MARK in owner and owner.rpartition(SYMBOL_MARK)[2].endswith(name)):
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
