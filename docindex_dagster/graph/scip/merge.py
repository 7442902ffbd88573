"""Merging of precise calls: calls that an index proves replace the inferred ones in the graph of a source.

The merge handles each file independently and is idempotent, so files reused from an earlier graph need no special
care.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.callgraph.units import Chunks
from docindex_dagster.graph.cross_references import full_name, is_match
from docindex_dagster.graph.scip.sites import RESULT, last_name_of
from docindex_dagster.graph.source_graph import (
    EXTERNAL,
    OUTSIDE_TYPES,
    UNRESOLVED,
    Graph,
    Triple,
    outside_nodes,
    triple_table,
)

PRECISE = "precise"
"""Prefix of the resolution of an edge that an index proves, followed by the name of its tool."""
_CALLS = "calls"
_MAX_LISTED = 3


class _Target(NamedTuple):
    """Callee of a site, as one or more nodes that define it."""

    nodes: Sequence[str]
    type: str
    tool: str

    @property
    def is_unambiguous(self) -> bool:
        """Whether it is one symbol of the source, possibly with overloads.

        scip-python uses one symbol for all functions of the same name nested in the methods of a class.
        """
        return self.type != EXTERNAL and len({node.partition("~")[0] for node in self.nodes}) == 1


@dataclass(frozen=True, eq=False)
class _Site:
    """Call site, with what the index knows about it."""

    line: int
    byte: int
    name: str
    caller: str
    caller_type: str
    targets: Sequence[_Target]

    @property
    def outside(self) -> Sequence[_Target]:
        """Targets outside the source."""
        return [target for target in self.targets if target.type == EXTERNAL]

    def supports(self, edge: Mapping[str, Any]) -> bool:
        """Return whether an inferred edge may belong to this site, given what the index knows."""
        if not self.targets:
            return True
        if edge["object_type"] in OUTSIDE_TYPES:
            return edge["object_type"] == EXTERNAL and bool(self.outside)
        # If the package is also installed, the index takes what a test calls from the installed copy.
        own = full_name(edge["object"])
        return any(is_match(target.nodes[0].partition(":")[2], own) for target in self.outside)


def merge_precise(graph: Graph, precise: pa.Table, chunks: pa.Table) -> Graph:
    """Return a graph with the calls that an index proves.

    Args:
        graph: The graph of the source; parts of it may be merged already.
        precise: The imported index, with the schema `table.PRECISE`.
        chunks: The chunks that the graph was built from.
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
    """Return the files that changed since an index was imported; it no longer proves any of their calls."""
    now = _hashes(chunks)
    known = zip(precise["path"].to_pylist(), precise["content_hash"].to_pylist(), strict=True)
    return sorted({path for path, content in known if path in now and now[path] != content})


def stale_sentence(precise: pa.Table, chunks: pa.Table) -> str:
    """Say which files changed since their import; return "" if none did."""
    stale = stale_files(precise, chunks)
    more = f" and {len(stale) - _MAX_LISTED:,} more" if len(stale) > _MAX_LISTED else ""
    named = f"{', '.join(stale[:_MAX_LISTED])}{more}"
    return f"{len(stale):,} files changed since their precise index was imported: {named}" if stale else ""


def mark_doubtful_as_changed(previous: Graph, precise: pa.Table, made_from: Mapping[str, str]) -> Graph:
    """Return a graph in which files count as changed if the index lets them call into a changed file.

    Args:
        previous: The graph of the previous state of the source.
        precise: The imported index.
        made_from: The current `made_from` of files with targets, by path.
    """
    before = dict(zip(*(previous.nodes[name].to_pylist() for name in ("node", "made_from")), strict=True))
    precise_edges = set(zip(precise["path"].to_pylist(), precise["target_path"].to_pylist(), strict=True))
    targets = {target for _, target in precise_edges if target is not None}
    changed = {target for target in targets if before.get(target) != made_from.get(target)}
    doubtful = sorted({path for path, target in precise_edges if target in changed})
    kept = pc.if_else(
        pc.is_in(previous.nodes["node"], pa.array(doubtful, pa.string())),
        pa.scalar(None, pa.string()),
        previous.nodes["made_from"],
    )
    column_index = previous.nodes.schema.get_field_index("made_from")
    nodes = previous.nodes.set_column(column_index, previous.nodes.schema.field(column_index), kept)
    return Graph(nodes, previous.triples)


@dataclass(frozen=True, eq=False)
class _Current:
    """Part of an index that is still valid, and the chunks of its files."""

    sites: Mapping[str, Sequence[_Site]]  # by path
    chunks: Mapping[str, Chunks]  # by path

    @property
    def paths(self) -> pa.Array:
        """Paths of the files."""
        return pa.array([*self.sites], pa.string())


def _hashes(chunks: pa.Table) -> dict[str, str]:
    return dict(zip(chunks["path"].to_pylist(), chunks["content_hash"].to_pylist(), strict=True))


def _current(precise: pa.Table, graph: Graph, chunks: pa.Table) -> _Current:
    now = _hashes(chunks)
    nodes = set(graph.nodes["node"].to_pylist())
    sites: dict[str, dict[tuple[int, str, str], list[_Target]]] = {}
    site_rows: dict[tuple[str, int, str, str], dict[str, Any]] = {}
    for row in precise.to_pylist():
        path, caller = row["path"], row["caller"]
        if now.get(path) != row["content_hash"] or caller not in nodes:
            continue
        key = row["byte"], row["name"], caller
        site_rows[path, *key] = row
        found = sites.setdefault(path, {}).setdefault(key, [])
        if targets := [node for node in row["targets"] if _is_unchanged(row, node, nodes, now)]:
            found.append(_Target(targets, row["target_type"], row["tool"]))
    return _Current(
        {
            path: [_site(site_rows[path, *key], found) for key, found in by_site.items()]
            for path, by_site in sites.items()
        },
        _chunks(chunks.filter(pc.is_in(chunks["path"], pa.array([*sites], pa.string())))),
    )


def _is_unchanged(row: Mapping[str, Any], node: str, nodes: set[str], now: Mapping[str, str]) -> bool:
    """Return whether a target is unchanged; in a changed file, its name must be unique."""
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
    """Changes to triples: positions of rows to drop, replacements by position, and new rows."""

    dropped: set[int] = field(default_factory=set)
    replaced: dict[int, Triple] = field(default_factory=dict)
    added: list[Triple] = field(default_factory=list)

    def applied(self, graph: Graph) -> Graph:
        """Return the changed graph, sorted by path; new rows come last in their file."""
        kept_rows = [at for at in range(graph.triples.num_rows) if at not in self.dropped]
        new_rows = triple_table([*self.replaced.values(), *self.added])
        numbers = {at: graph.triples.num_rows + number for number, at in enumerate(self.replaced)}
        order = [numbers.get(at, at) for at in kept_rows]
        order += range(graph.triples.num_rows + len(numbers), graph.triples.num_rows + new_rows.num_rows)
        triples = pa.concat_tables([graph.triples, new_rows]).take(pa.array(order, pa.int64()))
        triples = triples.take(pc.sort_indices(triples["path"])).combine_chunks()  # a stable sort
        inside = graph.nodes.filter(pc.invert(pc.is_in(graph.nodes["type"], pa.array(OUTSIDE_TYPES))))
        return Graph(pa.concat_tables([inside, outside_nodes(triples)]).combine_chunks(), triples)


@dataclass(frozen=True, eq=False)
class _File:
    """File whose calls are merged."""

    path: str
    source: str
    current: _Current
    sites: Sequence[_Site]

    def merge(self, edges: Sequence[Mapping[str, Any]], changes: _Changes) -> None:
        """Record the changes to the edges of the file."""
        known = {(edge["subject"], edge["object"]) for edge in edges}
        new = self._missing(known)
        for edge in edges:
            sites = self._sites_by_line[edge["subject"], edge["line"]]
            proof = next(self._proofs(edge, sites), None) or next(
                self._proofs(edge, self._sites_by_caller[edge["subject"]]), None
            )
            around = [site for site in sites if site.name.removesuffix(RESULT) == last_name_of(edge["object"])]
            if proof is not None:
                changes.replaced[edge["position"]] = self._triple(edge["object"], *proof)
            elif around and not any(site.supports(edge) for site in around):
                new |= {(site.caller, target.nodes[0]): (site, target) for site in around for target in site.outside}
                self._refute(edge, around, changes)
        changes.added += [self._triple(key[1], *found) for key, found in new.items() if key not in known]

    @cached_property
    def _sites_by_line(self) -> Mapping[tuple[str, int], Sequence[_Site]]:
        """Call sites by caller and line."""
        found: dict[tuple[str, int], list[_Site]] = defaultdict(list)
        for site in self.sites:
            found[site.caller, site.line].append(site)
        return found

    @cached_property
    def _sites_by_caller(self) -> Mapping[str, Sequence[_Site]]:
        """Call sites by caller."""
        found: dict[str, list[_Site]] = defaultdict(list)
        for site in self.sites:
            found[site.caller].append(site)
        return found

    @staticmethod
    def _proofs(edge: Mapping[str, Any], sites: Sequence[_Site]) -> Iterator[tuple[_Site, _Target]]:
        """Yield the sites and targets that prove an edge, according to the index."""
        for site in sites:
            yield from (
                (site, target) for target in site.targets if target.type != EXTERNAL and edge["object"] in target.nodes
            )

    def _missing(self, inferred: set[tuple[str, str]]) -> dict[tuple[str, str], tuple[_Site, _Target]]:
        """Return the edges inside the source that only the index knows, each with its first site."""
        found: dict[tuple[str, str], tuple[_Site, _Target]] = {}
        for site in self.sites:
            for target in site.targets:
                is_known = any((site.caller, node) in inferred for node in target.nodes)
                if target.is_unambiguous and not is_known:
                    found.setdefault((site.caller, target.nodes[-1]), (site, target))
        return found

    def _refute(self, edge: Mapping[str, Any], around: Sequence[_Site], changes: _Changes) -> None:
        """Drop an edge that the index contradicts; an external name may still belong to another call."""
        is_inside = edge["object_type"] not in {EXTERNAL, UNRESOLVED}
        other = None if is_inside else self._other_site(edge, around)
        if other is None:
            changes.dropped.add(edge["position"])
        else:
            changes.replaced[edge["position"]] = self._move(edge, other)

    def _other_site(self, edge: Mapping[str, Any], around: Sequence[_Site]) -> _Site | None:
        """Return another call of the same name, by the same caller, that an edge may belong to."""
        names = {site.name for site in around}
        others = (site for site in self._sites_by_caller[edge["subject"]] if site.name in names)
        return next((site for site in others if site.supports(edge)), None)

    def _triple(self, node: str, site: _Site, target: _Target) -> Triple:
        at = self.source, self.path, self.current.chunks[self.path].at(site), site.line
        return Triple(
            *(site.caller, site.caller_type, _CALLS, node, target.type), *at, 1.0, f"{PRECISE}, {target.tool}"
        )

    def _move(self, edge: Mapping[str, Any], site: _Site) -> Triple:
        at = self.source, self.path, self.current.chunks[self.path].at(site), site.line
        ends = edge["subject"], edge["subject_type"], _CALLS, edge["object"], edge["object_type"]
        return Triple(*ends, *at, edge["confidence"], edge["resolution"])
