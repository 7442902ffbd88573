"""Graph queries: callers, callees, neighbors, paths between two symbols, and the impact of a change."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from docindex_dagster.core.errors import QueryError
from docindex_dagster.core.traces import span
from docindex_dagster.graph.lookup import LAST, SYMBOL_MARK, find_symbols, one, symbol_of
from docindex_dagster.graph.open_graph import OpenGraph

CALLS = frozenset({"calls"})
DISPATCH = CALLS | {"may_call"}  # the named callee, and the overrides that may run instead
BACKWARD = frozenset({"callers", "impact"})  # queries that follow edges backward
# A change affects other code through these edges, followed backward.
IMPACT = DISPATCH | frozenset({"inherits", "implements", "uses", "references", "imports", "decorates", "tests"})
_CONSTRUCTORS = frozenset({"__init__", "constructor", "initialize", "__construct"})
# Paths do not follow edges that only say where something is defined.
_LOCATIONS = frozenset({"defined_in", "defines", "has_section"})
_DEFAULT_IMPACT_DEPTH, _DEFAULT_PATH_DEPTH = 5, 12  # edges
# Edge costs of a path: calls win unless their path is four times as long as one through containment.
_COST_OF_CALL, _COST_OF_DEPENDENCY, _COST_OF_OTHER = 1, 2, 4


@dataclass(frozen=True, slots=True)
class Step:
    """One edge of an answer, its evidence, and the symbol that was asked about."""

    depth: int
    subject: str
    predicate: str
    object: str
    type: str  # of the object
    path: str
    line: int | None
    chunk_id: str
    confidence: float
    resolution: str
    symbol: str = ""

    @property
    def source(self) -> str:
        """The source that states the edge."""
        return self.subject.partition("!")[0]

    @property
    def place(self) -> str:
        """The location in the source that states the edge."""
        return f"{self.path}:{self.line}" if self.line else self.path


def explain_no_edges(graph: OpenGraph, question: str, name: str, to: str = "") -> str:
    """Return a sentence for an answer without edges: which symbol has none, and what may be missing.

    Raises:
        QueryError: No symbol matches, or several do.
    """
    symbol = graph.ids[one(graph, name)[0]]
    if question == "path":
        return _append_gaps(f"no path found from {symbol} to {graph.ids[one(graph, to)[0]]}", graph.unread_files)
    phrases = {"callers": "no calls to", "callees": "no calls in", "impact": "no dependents of"}
    sentence = f"{phrases.get(question, 'no edges of')} {symbol} found"
    last = LAST.split(symbol.partition("~")[0])[-1]
    node = graph.numbers.get(f"{symbol.partition('!')[0]}!unresolved:{last}")
    unresolved = len(graph.incoming_edges(node)) if node is not None and question in {"callers", "impact"} else 0
    calls = "1 call" if unresolved == 1 else f"{unresolved} calls"
    unresolved_note = f"{calls} of that name could not be resolved" if unresolved else ""
    return _append_gaps(sentence, unresolved_note, graph.unread_files)


def _append_gaps(sentence: str, *gaps: str) -> str:
    """Append the known gaps of the graph to a sentence about missing edges."""
    return "; ".join(filter(None, (sentence, *gaps)))


def unanswered(graph: OpenGraph, question: str, name: str, to: str, steps: Sequence[Step]) -> list[str]:
    """Return a sentence for each queried symbol that no step answers.

    Raises:
        QueryError: No symbol matches, or several match an end of a path.
    """
    if question == "path":
        return [] if steps else [explain_no_edges(graph, question, name, to)]
    answered = {step.symbol for step in steps}
    queried = [symbol_of(graph, nodes[0]) for nodes in find_symbols(graph, name)]
    return [explain_no_edges(graph, question, symbol) for symbol in queried if symbol not in answered]


def notes(graph: OpenGraph, question: str, name: str, to: str, steps: Sequence[Step]) -> list[str]:
    """Return the notes to show with an answer: symbols without steps, and files not linked yet.

    Raises:
        QueryError: As for `unanswered`.
    """
    return [*unanswered(graph, question, name, to, steps), *filter(None, [graph.unlinked_files])]


def without_repeats(steps: Sequence[Step]) -> list[Step]:
    """Drop redundant steps: a test that calls what it tests is already listed as a caller."""
    called = {(step.subject, step.object) for step in steps if step.predicate == "calls"}
    return [one for one in steps if one.predicate != "tests" or (one.subject, one.object) not in called]


def callers(graph: OpenGraph, name: str, depth: int = 1) -> list[Step]:
    """Return the callers of a symbol, and their callers, up to a depth. Instantiation calls constructor and class.

    If a name matches several symbols, this and the other queries answer for each of them.
    """
    return _answer_each(
        graph, name, lambda nodes: _walk(graph, _with_constructors(graph, nodes), DISPATCH, depth, backward=True)
    )


def callees(graph: OpenGraph, name: str, depth: int = 1) -> list[Step]:
    """Return what a symbol calls; for a class, what its methods call."""
    return _answer_each(
        graph, name, lambda nodes: _walk(graph, _with_members(graph, nodes), DISPATCH, depth, backward=False)
    )


def impact(graph: OpenGraph, name: str, depth: int = _DEFAULT_IMPACT_DEPTH) -> list[Step]:
    """Return what may break if a symbol changes: all direct and indirect callers, subclasses, users and importers."""
    return _answer_each(
        graph, name, lambda nodes: _walk(graph, _with_members(graph, nodes), IMPACT, depth, backward=True)
    )


def neighbors(graph: OpenGraph, name: str, predicates: Iterable[str] | None = None) -> list[Step]:
    """Return the edges that leave or reach a node."""
    wanted = None if predicates is None else frozenset(predicates)

    def near(nodes: Sequence[int]) -> Iterator[Step]:
        edges = [
            edge for edges in (graph.leaving, graph.incoming_edges) for node in nodes for edge in edges(node).tolist()
        ]
        for step, _ in _steps(graph, [*dict.fromkeys(edges)], 1):
            if wanted is None or step.predicate in wanted:
                yield step

    return _answer_each(graph, name, near)


def _answer_each(graph: OpenGraph, name: str, walk: Callable[[list[int]], Iterable[Step]]) -> list[Step]:
    """Return the steps from each symbol that a name matches."""
    found = find_symbols(graph, name)
    return [replace(step, symbol=symbol_of(graph, nodes[0])) for nodes in found for step in walk(nodes)]


def path(graph: OpenGraph, start: str, end: str, depth: int = _DEFAULT_PATH_DEPTH) -> list[Step]:
    """Return a short path between two nodes: along the edges or, failing that, in either direction. Prefer calls.

    The result is empty if no path has at most `depth` edges.

    Raises:
        QueryError: An end is not found, or matches several symbols.
    """
    sources, targets = one(graph, start), set(one(graph, end))
    costs = np.full(graph.edges.num_rows, _COST_OF_OTHER)
    costs[graph.chosen(IMPACT)] = _COST_OF_DEPENDENCY
    costs[graph.chosen(CALLS)] = _COST_OF_CALL
    for edges in (graph.leaving, lambda node: [*graph.leaving(node), *graph.incoming_edges(node)]):
        for edge_costs in (costs, np.ones_like(costs)):  # the cheapest path may have too many edges
            if found_path := _cheapest(graph, sources, targets, edges, costs=edge_costs, depth=depth):
                return found_path
    return []


def answer_query(
    graph: OpenGraph,
    question: str,
    symbol: str,
    to: str = "",
    depth: int | None = None,
    *,
    predicates: Iterable[str] | None = None,
) -> list[Step]:
    """Answer a query of this module, by its name.

    Raises:
        QueryError: The query or a symbol is not found.
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
                return impact(graph, symbol, depth or _DEFAULT_IMPACT_DEPTH)
            case "neighbors":
                return neighbors(graph, symbol, predicates)
            case "path":
                return path(graph, symbol, to, depth or _DEFAULT_PATH_DEPTH)
            case _:
                raise QueryError(f"unknown graph query: {question!r}")


def _cheapest(
    graph: OpenGraph,
    sources: Sequence[int],
    targets: set[int],
    edges: Callable[[int], Iterable[int]],
    *,
    costs: NDArray[np.int64],
    depth: int,
) -> list[Step]:
    """Run Dijkstra's algorithm on paths of at most `depth` edges; `costs` has the shape (edges,)."""
    is_location = graph.chosen(_LOCATIONS)
    predecessors: dict[int, tuple[int, int]] = {}
    cost = dict.fromkeys(sources, 0)
    queue = [(0, 0, node) for node in sources]
    while queue:
        spent, length, node = heappop(queue)
        if node in targets:
            return _path_steps(graph, predecessors, node)
        if spent > cost[node]:
            continue
        for edge in edges(node) if length < depth else ():
            if is_location[edge]:
                continue
            for other in (int(graph.objects[edge]), int(graph.subjects[edge])):
                total = spent + int(costs[edge])
                if total < cost.get(other, total + 1) and graph.types[other] not in {"unresolved", "external"}:
                    cost[other] = total
                    predecessors[other] = node, int(edge)
                    heappush(queue, (total, length + 1, other))
    return []


def _path_steps(graph: OpenGraph, predecessors: dict[int, tuple[int, int]], node: int) -> list[Step]:
    """Return the steps to a node by following its predecessors back to a source."""
    found_path: list[int] = []
    while node in predecessors:
        node, edge = predecessors[node]
        found_path.append(edge)
    return [step for number, edge in enumerate(found_path[::-1], 1) for step, _ in _steps(graph, [edge], number)]


def _walk(
    graph: OpenGraph, nodes: Iterable[int], predicates: frozenset[str], depth: int, *, backward: bool
) -> Iterator[Step]:
    """Yield the edges with some predicates, breadth first; each node is expanded once."""
    is_wanted = graph.chosen(predicates)
    edges_of = graph.incoming_edges if backward else graph.leaving
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
    """Return nodes, and the class of each constructor among them, since instantiating a class calls it."""
    found = []
    for node in nodes:
        found.append(node)
        identifier = graph.ids[node].partition("~")[0]
        owner, _, name = identifier.rpartition(".")
        if name in _CONSTRUCTORS or (SYMBOL_MARK in owner and owner.rpartition(SYMBOL_MARK)[2].endswith(name)):
            found += [graph.numbers[owner]] if owner in graph.numbers else []
    return found


def _with_members(graph: OpenGraph, nodes: Iterable[int]) -> list[int]:
    """Return nodes and everything they contain."""
    found, stack = [], [*nodes]
    contains = graph.chosen({"contains"})
    while stack:
        node = stack.pop()
        if node not in found:
            found.append(node)
            leaving = graph.leaving(node)
            stack += graph.objects[leaving[contains[leaving]]].tolist()
    return found
