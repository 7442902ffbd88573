"""Names that lead from one source to another."""

from collections import defaultdict
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.graph.triple import EXTERNAL

_ENDINGS = (".py", ".pyi", ".js", ".ts", ".tsx", ".jsx", ".mjs", ".go", ".rs", ".java", ".kt", ".rb", ".php", ".cs")
_ROOTS = frozenset({"src", "lib", "python", "packages", "pkg"})
_ACROSS = 0.9  # how much an edge into another source is to be believed: the name alone decides


def linked(nodes: pa.Table, triples: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Let the edges to a name outside a source reach what another source, and only one thing in it, has under it.

    Nodes that no edge reaches any more are left out.
    """
    wanted = nodes.filter(pc.is_in(nodes["type"], pa.array([EXTERNAL])))
    found = dict(_found(nodes, wanted))
    if not found:
        return nodes, triples
    old = pa.array([*found], pa.string())
    new = pa.array([*found.values()], pa.string())
    position = pc.index_in(triples["object"], old)
    is_linked = pc.is_valid(position)
    columns = {
        "object": pc.if_else(is_linked, new.take(position.combine_chunks()), triples["object"]),
        "confidence": pc.if_else(
            is_linked,
            pc.min_element_wise(triples["confidence"], pa.scalar(_ACROSS, pa.float32())),
            triples["confidence"],
        ),
        "resolution": pc.if_else(is_linked, pa.scalar("name in another source"), triples["resolution"]),
    }
    for name, values in columns.items():
        triples = triples.set_column(triples.schema.get_field_index(name), name, values)
    return nodes.filter(pc.invert(pc.is_in(nodes["id"], old))), triples


def _found(nodes: pa.Table, wanted: pa.Table) -> Iterator[tuple[str, str]]:
    """The names of nodes outside their source, and of the nodes that they stand for."""
    if not wanted.num_rows:
        return
    by_name: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    last = {name.rpartition(".")[2] for name in wanted["name"].to_pylist()}
    is_symbol = pc.and_(pc.is_valid(nodes["path"]), pc.match_substring(nodes["node"], "::"))
    symbols = nodes.filter(pc.and_(is_symbol, pc.is_in(nodes["name"], pa.array(sorted(last), pa.string()))))
    for row in symbols.select(["id", "source", "node", "name"]).to_pylist():
        by_name[row["name"]].append((row["id"], row["source"], dotted(row["node"])))
    for row in wanted.select(["id", "source", "name"]).to_pylist():
        name = row["name"]
        matches = [
            identifier
            for identifier, source, full in by_name.get(name.rpartition(".")[2], ())
            if source != row["source"] and is_meant(name, full)
        ]
        if len(matches) == 1:
            yield row["id"], matches[0]


def is_meant(name: str, full: str) -> bool:
    """Whether a dotted name, as it is written elsewhere, is that of a symbol whose whole name is known."""
    first, _, rest = name.partition(".")
    if full == name or full.endswith(f".{name}"):
        return bool(rest)
    parts = full.split(".")
    # A package passes on what its modules define: click.echo is click.utils.echo.
    return bool(rest) and first in parts[:-1] and ".".join(parts).endswith(f".{rest}")


def dotted(node: str) -> str:
    """The name of a symbol behind those of its file and folders: `src/click/utils.py::echo` is click.utils.echo."""
    path, _, qualified = node.partition("::")
    for ending in _ENDINGS:
        path = path.removesuffix(ending)
    parts = [part for part in path.split("/") if part not in {"__init__", "index", "mod"}]
    while parts and parts[0] in _ROOTS:
        parts = parts[1:]
    return ".".join([*parts, qualified.partition("~")[0]])
