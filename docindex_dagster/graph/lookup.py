"""Which nodes a user means by a name, as languages and people write it. Questions about them are asked in `ask`."""

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
_MOST_SYMBOLS = 8  # of one name that are answered for; also those that an error names
_MOST_LIKE = 3
_KINDS = ("git", "library")  # of sources
_PLAIN = re.compile(r"::|->|\\")
_PARTS = re.compile(r"[/.]")


def find(graph: OpenGraph, name: str) -> list[int]:
    """The nodes that fit a name best: a whole name, a path, a qualified name or the end of one.

    Before a qualified name may stand modules, packages and the source, as `gin.Engine.Run`, some of them left out.
    """
    if name in graph.numbers:
        return [*_overloads(graph, name)]
    name = without_arguments(name)
    source, mark, node = name.partition("!")
    if mark and source.partition("/")[0] in _KINDS:
        return [number for number in find(graph, node) if graph.ids[number].startswith(f"{source}!")]
    if not LAST.split(name)[-1]:
        return []
    return _best(graph, name) or _best(graph, name, str.casefold)


def _best(graph: OpenGraph, name: str, same: Callable[[str], str] = str) -> list[int]:
    """The nodes that fit a name best, or fit it in the form that `same` gives of both."""
    wanted = name.replace("#", ".") if SYMBOL_MARK not in name and "/" not in name else name  # as Javadoc writes it
    ranks: dict[int, list[int]] = {}
    has_its_end = pc.match_substring(graph.nodes["id"], LAST.split(wanted)[-1], ignore_case=same is not str)
    for number in np.flatnonzero(has_its_end.to_numpy()).tolist():
        rank = _match(same(graph.ids[number]), graph.types[number], same(wanted))
        if rank:
            ranks.setdefault(rank, []).append(number)
    if not ranks and (plain := _PLAIN.sub(".", name)) != name:  # as Rust, C++, PHP do
        return _best(graph, plain, same)
    return ranks[min(ranks)] if ranks else []


def _overloads(graph: OpenGraph, name: str) -> Iterator[int]:
    """The nodes of a whole name: those of its overloads have a number behind it, from 2."""
    names = chain([name], (f"{name}~{number}" for number in count(2)))
    yield from (graph.numbers[each] for each in takewhile(graph.numbers.__contains__, names))


def _match(identifier: str, kind: str, wanted: str) -> int:
    """How well a node fits a name, 1 the best; 0 not at all."""
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
    """How well the names before a qualified name fit its file: as the end of its module's name, or of a package.

    Go names a package, C# and PHP a namespace, which folders follow in part: so names in their order may do, beginning
    with that of the source.
    """
    module = [name for name in _PARTS.split(path.rpartition(".")[0]) if name != "__init__"]
    names = len(wanted)
    if module[-names:] == wanted:
        return 2
    if any(module[at : at + names] == wanted for at in range(len(module) - names)):
        return 3
    remaining = iter([source.rpartition("/")[2].partition("@")[0], *module])
    return 4 if all(name in remaining for name in wanted) else 0


def symbols(graph: OpenGraph, name: str) -> list[list[int]]:
    """The symbols that a name fits best, each as its nodes: overloads count as one symbol.

    Raises:
        QueryError: there is none, or there are more than can be answered for.
    """
    groups: dict[str, list[int]] = {}
    for number in find(graph, name):
        groups.setdefault(symbol_of(graph, number), []).append(number)
    if not groups:
        like = _like(graph, name)
        hint = f"did you mean {like}?" if like else "give a qualified name, as Class.method, or PATH::Class.method"
        gaps = graph.unread_files, graph.unlinked_files
        raise QueryError("; ".join(filter(None, (f"the graph has no {name!r}: {hint}", *gaps))))
    if len(groups) > _MOST_SYMBOLS:
        raise _ambiguous(name, groups)
    return [groups[symbol] for symbol in sorted(groups)]


def one(graph: OpenGraph, name: str) -> list[int]:
    """The nodes of one symbol; its overloads count as one.

    Raises:
        QueryError: there is none, or there are several.
    """
    found = symbols(graph, name)
    if len(found) > 1:
        raise _ambiguous(name, [symbol_of(graph, nodes[0]) for nodes in found])
    return found[0]


def symbol_of(graph: OpenGraph, node: int) -> str:
    """The symbol of a node: its name without the number of an overload."""
    return graph.ids[node].partition("~")[0]


def _ambiguous(name: str, found: Collection[str]) -> QueryError:
    names = ", ".join(sorted(found)[:_MOST_SYMBOLS])
    more = f" and {len(found) - _MOST_SYMBOLS} more" if len(found) > _MOST_SYMBOLS else ""
    return QueryError(f"{name!r} names {len(found)} things: {names}{more}; give one of them")


def _like(graph: OpenGraph, name: str) -> str:
    """The symbols whose last names are like that of one that is not there."""
    last = LAST.split(name)[-1]
    is_symbol = pc.match_substring(graph.nodes["id"], SYMBOL_MARK)
    names = graph.nodes["name"].filter(
        pc.and_(is_symbol, pc.starts_with(graph.nodes["name"], last[:1], ignore_case=True))
    )
    found = get_close_matches(last, pc.unique(names).to_pylist(), _MOST_LIKE)
    return " or ".join(found)
