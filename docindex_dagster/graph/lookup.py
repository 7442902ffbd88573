"""Lookup of nodes by name, as languages and people write names. The queries are in `queries`."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from difflib import get_close_matches
from itertools import chain, count, takewhile

import numpy as np
import pyarrow.compute as pc

from docindex_dagster.core.errors import QueryError
from docindex_dagster.core.references import without_arguments
from docindex_dagster.graph.open_graph import OpenGraph

SYMBOL_MARK = "::"
LAST = re.compile(r"[.:/\\]")
_MAX_SYMBOLS = 8  # matches of one name that a query answers for, and that an error lists
_MAX_SUGGESTIONS = 3
_KINDS = ("git", "library")  # of sources
_OTHER_SEPARATORS = re.compile(r"::|->|\\")
_PARTS = re.compile(r"[/.]")


def find_nodes(graph: OpenGraph, name: str) -> list[int]:
    """Return the nodes that match a name best: a full name, a path, a qualified name or the end of one.

    The source, packages and modules may precede a qualified name, as in `gin.Engine.Run`, and some may be omitted.
    """
    if name in graph.numbers:
        return [*_overloads(graph, name)]
    name = without_arguments(name)
    source, mark, node = name.partition("!")
    if mark and source.partition("/")[0] in _KINDS:
        return [number for number in find_nodes(graph, node) if graph.ids[number].startswith(f"{source}!")]
    if not LAST.split(name)[-1]:
        return []
    return _best(graph, name) or _best(graph, name, str.casefold)


def _best(graph: OpenGraph, name: str, normalize: Callable[[str], str] = str) -> list[int]:
    """Return the nodes that match a name best, after applying `normalize` to both."""
    wanted = name.replace("#", ".") if SYMBOL_MARK not in name and "/" not in name else name  # as Javadoc writes it
    ranks: dict[int, list[int]] = {}
    ends_match = pc.match_substring(graph.nodes["id"], LAST.split(wanted)[-1], ignore_case=normalize is not str)
    for number in np.flatnonzero(ends_match.to_numpy()).tolist():
        rank = _match(normalize(graph.ids[number]), graph.types[number], normalize(wanted))
        if rank:
            ranks.setdefault(rank, []).append(number)
    if not ranks and (plain := _OTHER_SEPARATORS.sub(".", name)) != name:  # the separators of Rust, C++ and PHP
        return _best(graph, plain, normalize)
    return ranks[min(ranks)] if ranks else []


def _overloads(graph: OpenGraph, name: str) -> Iterator[int]:
    """Yield the nodes with a full name; overloads have a numeric suffix, starting at 2."""
    names = chain([name], (f"{name}~{number}" for number in count(2)))
    yield from (graph.numbers[each] for each in takewhile(graph.numbers.__contains__, names))


def _match(identifier: str, kind: str, wanted: str) -> int:
    """Rank how well a node matches a name: 1 is best, 0 means no match."""
    source, _, node = identifier.partition("!")
    path, mark, qualified = node.partition(SYMBOL_MARK)
    if node == wanted or (mark and f"{path}:{qualified}" == wanted):
        return 1
    if not mark:
        if path.endswith(f"/{wanted}"):
            return 2
        return 5 if kind in {"external", "concept"} and node.partition(":")[2] == wanted else 0
    plain = qualified.partition("~")[0]
    if plain == wanted or plain.endswith(f".{wanted}") or node.endswith(f"/{wanted}"):
        return 2
    if wanted.endswith(f".{plain}"):
        return _match_module(source, path, wanted.removesuffix(f".{plain}").split("."))
    return 0


def _match_module(source: str, path: str, wanted: Sequence[str]) -> int:
    """Rank how well the prefix of a qualified name matches its file, as the end of its module or package name.

    Go names a package, and C# and PHP name a namespace that folders mirror only in part. So an ordered subset of the
    folder names also matches, optionally preceded by the source name.
    """
    module = [name for name in _PARTS.split(path.rpartition(".")[0]) if name != "__init__"]
    names = len(wanted)
    if module[-names:] == wanted:
        return 2
    if any(module[at : at + names] == wanted for at in range(len(module) - names)):
        return 3
    remaining = iter([source.rpartition("/")[2].partition("@")[0], *module])
    return 4 if all(name in remaining for name in wanted) else 0


def find_symbols(graph: OpenGraph, name: str) -> list[list[int]]:
    """Return the symbols that match a name best, each as a list of nodes; overloads count as one symbol.

    Raises:
        QueryError: No symbol matches, or too many do.
    """
    groups: dict[str, list[int]] = {}
    for number in find_nodes(graph, name):
        groups.setdefault(symbol_of(graph, number), []).append(number)
    if not groups:
        suggestions = _suggestions(graph, name)
        hint = (
            f"did you mean {suggestions}?" if suggestions else "use a name such as Class.method or PATH::Class.method"
        )
        gaps = graph.unread_files, graph.unlinked_files
        raise QueryError("; ".join(filter(None, (f"{name!r} not found in the graph: {hint}", *gaps))))
    if len(groups) > _MAX_SYMBOLS:
        raise _ambiguous(name, groups)
    return [groups[symbol] for symbol in sorted(groups)]


def one(graph: OpenGraph, name: str) -> list[int]:
    """Return the nodes of the only symbol that matches a name; overloads count as one symbol.

    Raises:
        QueryError: No symbol matches, or several do.
    """
    found = find_symbols(graph, name)
    if len(found) > 1:
        raise _ambiguous(name, [symbol_of(graph, nodes[0]) for nodes in found])
    return found[0]


def symbol_of(graph: OpenGraph, node: int) -> str:
    """Return the symbol of a node: its name without the overload number."""
    return graph.ids[node].partition("~")[0]


def _ambiguous(name: str, found: Collection[str]) -> QueryError:
    names = ", ".join(sorted(found)[:_MAX_SYMBOLS])
    more = f" and {len(found) - _MAX_SYMBOLS} more" if len(found) > _MAX_SYMBOLS else ""
    return QueryError(f"{name!r} is ambiguous, with {len(found)} matches: {names}{more}; use one of these names")


def _suggestions(graph: OpenGraph, name: str) -> str:
    """Return the symbols with a similar last name, to suggest instead of a missing one."""
    last = LAST.split(name)[-1]
    is_symbol = pc.match_substring(graph.nodes["id"], SYMBOL_MARK)
    names = graph.nodes["name"].filter(
        pc.and_(is_symbol, pc.starts_with(graph.nodes["name"], last[:1], ignore_case=True))
    )
    found = get_close_matches(last, pc.unique(names).to_pylist(), _MAX_SUGGESTIONS)
    return " or ".join(found)
