"""The graph of one source as it is kept: what reads it need not load what builds it."""

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.callgraph.tabling import TIME_OUT
from docindex_dagster.core.hashing import digest_parts

NODES_TABLE, TRIPLES_TABLE = "graph_nodes", "graph_triples"
"""The names of the tables that hold the two halves of a graph."""

UNREADABLE = "configuration: "
"""How the problem of a file begins that says where imports lead and cannot be read; its edges are complete."""

CHUNKS_DIGITS = 32
"""The length of the part of `made_from` that identifies the chunks of a file."""


def made_from(row_hashes: Iterable[str], references: str) -> str:
    """Identify what the rows of a file are made from: its chunks, then the version of its references."""
    return digest_parts(*row_hashes) + references


@dataclass(frozen=True, slots=True)
class Graph:
    """What one source adds to the graph: tables of the schemas NODES and TRIPLES."""

    nodes: pa.Table
    triples: pa.Table

    @property
    def is_settled(self) -> bool:
        """Whether the same chunks would give the same graph again: no file ran out of time."""
        return not any(problem.startswith(TIME_OUT) for problem in self.problems.values())

    @property
    def problems(self) -> dict[str, str]:
        """Why files have no edges but those to their definitions, by path."""
        return {path: problem for path, problem in self._noted().items() if not problem.startswith(UNREADABLE)}

    @property
    def unreadable(self) -> dict[str, str]:
        """Return why configurations of imports cannot be read, by path."""
        return {
            path: problem.removeprefix(UNREADABLE)
            for path, problem in self._noted().items()
            if problem.startswith(UNREADABLE)
        }

    def _noted(self) -> dict[str, str]:
        rows = self.nodes.filter(pc.is_valid(self.nodes["problem"]))
        return dict(zip(rows["path"].to_pylist(), rows["problem"].to_pylist(), strict=True))

    @property
    def files(self) -> int:
        """How many files it is of."""
        return pc.sum(pc.equal(self.nodes["type"], "file"), min_count=0).as_py() or 0
