"""The calls that an index proves, put into the graph of a source in the place of those that were inferred.

A merge looks at each file on its own, and what it gives is merged again without a change. So files of which an earlier
graph is taken over need no other care than those that are resolved anew.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.callgraph.units import Chunks
from docindex_dagster.graph.cross_references import dotted, is_meant
from docindex_dagster.graph.scip.sites import RESULT, last_of
from docindex_dagster.graph.source_graph import (
    EXTERNAL,
    OUTSIDE,
    UNRESOLVED,
    Graph,
    Triple,
    outside_nodes,
    triple_table,
)

PRECISE = "precise"
"""How the resolution of an edge begins that an index proves; the name of its tool is behind it."""
_CALLS = "calls"
_NAMED = 3


class _Target(NamedTuple):
    """What is called at a site: one of some nodes, which define the same."""

    nodes: Sequence[str]
    type: str
    tool: str

    @property
    def is_one(self) -> bool:
        """Whether it is one thing of the source, of which there may be overloads.

        scip-python has one symbol for all functions of a name that stand in the methods of a class.
        """
        return self.type != EXTERNAL and len({node.partition("~")[0] for node in self.nodes}) == 1


@dataclass(frozen=True, eq=False)
class _Site:
    """A call site, and what the index knows of it."""

    line: int
    byte: int
    name: str
    caller: str
    caller_type: str
    targets: Sequence[_Target]

    @property
    def outside(self) -> Sequence[_Target]:
        """What is called and lies outside of the source."""
        return [target for target in self.targets if target.type == EXTERNAL]

    def supports(self, edge: Mapping[str, Any]) -> bool:
        """Whether an edge that was inferred may be of this site, for all that the index knows."""
        if not self.targets:
            return True
        if edge["object_type"] in OUTSIDE:
            return edge["object_type"] == EXTERNAL and bool(self.outside)
        # Where the package is installed as well, what a test calls lies there, as an index has it.
        own = dotted(edge["object"])
        return any(is_meant(target.nodes[0].partition(":")[2], own) for target in self.outside)


def merged(graph: Graph, precise: pa.Table, chunks: pa.Table) -> Graph:
    """A graph with the calls that an index proves.

    Args:
        graph: of the source, also one of which a part is merged already.
        precise: what was imported, of the schema `table.PRECISE`.
        chunks: from which the graph was made.
    """
    current = _current(precise, graph, chunks)
    is_call = pc.and_(pc.equal(graph.triples["predicate"], _CALLS), pc.is_in(graph.triples["path"], current.paths))
    calls: dict[str, list[dict[str, Any]]] = {}
    positions = pc.indices_nonzero(is_call).to_pylist()
    for position, row in zip(positions, graph.triples.filter(is_call).to_pylist(), strict=True):
        calls.setdefault(row["path"], []).append({**row, "position": position})
    source = chunks["source"][0].as_py() if chunks.num_rows else ""
    changes = _Changes()
    for path, sites in current.sites.items():
        _File(path, source, current, sites).merge(calls.get(path, ()), changes)
    return changes.applied(graph)


def stale_files(precise: pa.Table, chunks: pa.Table) -> list[str]:
    """The files that changed since an index was imported: of their calls it proves nothing any more."""
    now = _hashes(chunks)
    known = zip(precise["path"].to_pylist(), precise["content_hash"].to_pylist(), strict=True)
    return sorted({path for path, content in known if path in now and now[path] != content})


def stale_sentence(precise: pa.Table, chunks: pa.Table) -> str:
    """The same in words; empty where there is none."""
    stale = stale_files(precise, chunks)
    more = f" and {len(stale) - _NAMED:,} more" if len(stale) > _NAMED else ""
    named = f"{', '.join(stale[:_NAMED])}{more}"
    return f"{len(stale):,} files changed since their precise index was imported: {named}" if stale else ""


def without_doubtful(previous: Graph, precise: pa.Table, made_from: Mapping[str, str]) -> Graph:
    """A graph to go on from, in which those files count as changed that an index lets call what is in a changed one.

    Args:
        previous: the graph of what the source held before.
        precise: what was imported.
        made_from: what the files that hold targets are made from now, by path.
    """
    before = dict(zip(*(previous.nodes[name].to_pylist() for name in ("node", "made_from")), strict=True))
    leads = set(zip(precise["path"].to_pylist(), precise["target_path"].to_pylist(), strict=True))
    targets = {target for _, target in leads if target is not None}
    changed = {target for target in targets if before.get(target) != made_from.get(target)}
    doubtful = sorted({path for path, target in leads if target in changed})
    kept = pc.if_else(
        pc.is_in(previous.nodes["node"], pa.array(doubtful, pa.string())),
        pa.scalar(None, pa.string()),
        previous.nodes["made_from"],
    )
    place = previous.nodes.schema.get_field_index("made_from")
    nodes = previous.nodes.set_column(place, previous.nodes.schema.field(place), kept)
    return Graph(nodes, previous.triples)


@dataclass(frozen=True, eq=False)
class _Current:
    """What an index says still, and the chunks of the files of which it says that."""

    sites: Mapping[str, Sequence[_Site]]  # by path
    chunks: Mapping[str, Chunks]  # by path

    @property
    def paths(self) -> pa.Array:
        """The files."""
        return pa.array([*self.sites], pa.string())


def _hashes(chunks: pa.Table) -> dict[str, str]:
    return dict(zip(chunks["path"].to_pylist(), chunks["content_hash"].to_pylist(), strict=True))


def _current(precise: pa.Table, graph: Graph, chunks: pa.Table) -> _Current:
    now = _hashes(chunks)
    nodes = set(graph.nodes["node"].to_pylist())
    sites: dict[str, dict[tuple[int, str, str], list[_Target]]] = {}
    about: dict[tuple[str, int, str, str], dict[str, Any]] = {}
    for row in precise.to_pylist():
        path, caller = row["path"], row["caller"]
        if now.get(path) != row["content_hash"] or caller not in nodes:
            continue
        key = row["byte"], row["name"], caller
        about[path, *key] = row
        found = sites.setdefault(path, {}).setdefault(key, [])
        if targets := [node for node in row["targets"] if _is_there(row, node, nodes, now)]:
            found.append(_Target(targets, row["target_type"], row["tool"]))
    return _Current(
        {path: [_site(about[path, *key], found) for key, found in of.items()] for path, of in sites.items()},
        _chunks(chunks.filter(pc.is_in(chunks["path"], pa.array([*sites], pa.string())))),
    )


def _is_there(row: Mapping[str, Any], node: str, nodes: set[str], now: Mapping[str, str]) -> bool:
    """Whether a target is the same still: of a file that changed, one that has its name alone."""
    if row["target_path"] is None:
        return True
    return node in nodes and (now.get(row["target_path"]) == row["target_hash"] or "~" not in node)


def _site(row: Mapping[str, Any], targets: Sequence[_Target]) -> _Site:
    return _Site(row["line"], row["byte"], row["name"], row["caller"], row["caller_type"], targets)


def _chunks(rows: pa.Table) -> dict[str, Chunks]:
    columns = ("chunk_id", "start_line", "start_byte")
    by_path: dict[str, list[list[Any]]] = {}
    for row in rows.select(["path", *columns]).to_pylist():
        for values, column in zip(by_path.setdefault(row["path"], [[], [], []]), columns, strict=True):
            values.append(row[column])
    return {path: Chunks(*values) for path, values in by_path.items()}


@dataclass(eq=False)
class _Changes:
    """What becomes of triples: rows to leave out, to replace, by their positions, and new ones."""

    dropped: set[int] = field(default_factory=set)
    replaced: dict[int, Triple] = field(default_factory=dict)
    added: list[Triple] = field(default_factory=list)

    def applied(self, graph: Graph) -> Graph:
        """The graph that comes of it: sorted by path, what is new at the end of its file."""
        stay = [at for at in range(graph.triples.num_rows) if at not in self.dropped]
        fresh = triple_table([*self.replaced.values(), *self.added])
        numbers = {at: graph.triples.num_rows + number for number, at in enumerate(self.replaced)}
        order = [numbers.get(at, at) for at in stay]
        order += range(graph.triples.num_rows + len(numbers), graph.triples.num_rows + fresh.num_rows)
        triples = pa.concat_tables([graph.triples, fresh]).take(pa.array(order, pa.int64()))
        triples = triples.take(pc.sort_indices(triples["path"])).combine_chunks()  # a stable sort
        inside = graph.nodes.filter(pc.invert(pc.is_in(graph.nodes["type"], pa.array(OUTSIDE))))
        return Graph(pa.concat_tables([inside, outside_nodes(triples)]).combine_chunks(), triples)


@dataclass(frozen=True, eq=False)
class _File:
    """A file whose calls are merged."""

    path: str
    source: str
    current: _Current
    sites: Sequence[_Site]

    def merge(self, edges: Sequence[Mapping[str, Any]], changes: _Changes) -> None:
        """Note what becomes of its edges."""
        known = {(edge["subject"], edge["object"]) for edge in edges}
        new = self._missing(known)
        for edge in edges:
            sites = self._sites[edge["subject"], edge["line"]]
            proof = next(self._proofs(edge, sites), None) or next(self._proofs(edge, self._of[edge["subject"]]), None)
            around = [site for site in sites if site.name.removesuffix(RESULT) == last_of(edge["object"])]
            if proof is not None:
                changes.replaced[edge["position"]] = self._triple(edge["object"], *proof)
            elif around and not any(site.supports(edge) for site in around):
                new |= {(site.caller, one.nodes[0]): (site, one) for site in around for one in site.outside}
                self._refuted(edge, around, changes)
        changes.added += [self._triple(key[1], *found) for key, found in new.items() if key not in known]

    @cached_property
    def _sites(self) -> Mapping[tuple[str, int], Sequence[_Site]]:
        """The call sites by caller and line."""
        found: dict[tuple[str, int], list[_Site]] = defaultdict(list)
        for site in self.sites:
            found[site.caller, site.line].append(site)
        return found

    @cached_property
    def _of(self) -> Mapping[str, Sequence[_Site]]:
        """The call sites by caller."""
        found: dict[str, list[_Site]] = defaultdict(list)
        for site in self.sites:
            found[site.caller].append(site)
        return found

    @staticmethod
    def _proofs(edge: Mapping[str, Any], sites: Sequence[_Site]) -> Iterator[tuple[_Site, _Target]]:
        """The calls of which the index says that they lead where an edge does."""
        for site in sites:
            yield from ((site, one) for one in site.targets if one.type != EXTERNAL and edge["object"] in one.nodes)

    def _missing(self, inferred: set[tuple[str, str]]) -> dict[tuple[str, str], tuple[_Site, _Target]]:
        """The edges inside the source that the index knows and nothing has inferred, each with the first place."""
        found: dict[tuple[str, str], tuple[_Site, _Target]] = {}
        for site in self.sites:
            for target in site.targets:
                is_known = any((site.caller, node) in inferred for node in target.nodes)
                if target.is_one and not is_known:
                    found.setdefault((site.caller, target.nodes[-1]), (site, target))
        return found

    def _refuted(self, edge: Mapping[str, Any], around: Sequence[_Site], changes: _Changes) -> None:
        """An edge that the index contradicts goes; a name that lies outside may still be meant by another call."""
        is_inside = edge["object_type"] not in {EXTERNAL, UNRESOLVED}
        other = None if is_inside else self._elsewhere(edge, around)
        if other is None:
            changes.dropped.add(edge["position"])
        else:
            changes.replaced[edge["position"]] = self._moved(edge, other)

    def _elsewhere(self, edge: Mapping[str, Any], around: Sequence[_Site]) -> _Site | None:
        """Another call of the same name, by the same caller, that an edge may be of."""
        names = {site.name for site in around}
        others = (site for site in self._of[edge["subject"]] if site.name in names)
        return next((site for site in others if site.supports(edge)), None)

    def _triple(self, node: str, site: _Site, target: _Target) -> Triple:
        at = self.source, self.path, self.current.chunks[self.path].at(site), site.line
        return Triple(
            *(site.caller, site.caller_type, _CALLS, node, target.type), *at, 1.0, f"{PRECISE}, {target.tool}"
        )

    def _moved(self, edge: Mapping[str, Any], site: _Site) -> Triple:
        at = self.source, self.path, self.current.chunks[self.path].at(site), site.line
        ends = edge["subject"], edge["subject_type"], _CALLS, edge["object"], edge["object_type"]
        return Triple(*ends, *at, edge["confidence"], edge["resolution"])
