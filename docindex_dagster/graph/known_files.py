"""What a graph says of its files, from which an update goes on: what they were made from, offered and looked at."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.callgraph.program import Index
from docindex_dagster.graph.offered import Offered
from docindex_dagster.graph.source_graph import UNREADABLE, Graph


@dataclass(frozen=True, slots=True)
class News:
    """What looks different now: keys, and the files that changed or are gone."""

    keys: frozenset[int]
    paths: frozenset[str]


@dataclass(frozen=True, eq=False)
class KnownFiles:
    """The files of a graph: what their nodes say of them."""

    files: pa.Table
    rows: Mapping[str, int]  # by path
    made_from: Mapping[str, str]  # by path, of files with all their edges: of others nothing can be taken over

    @classmethod
    def of(cls, graph: Graph) -> "KnownFiles":
        """The files of a graph."""
        columns = graph.nodes.select(["path", "made_from", "offers", "fingerprints", "depends", "problem"])
        files = columns.filter(pc.equal(graph.nodes["type"], "file")).combine_chunks()
        paths, made_from, problems = (files[name].to_pylist() for name in ("path", "made_from", "problem"))
        rows = {path: row for row, path in enumerate(paths)}
        whole = {path: row for path, row in rows.items() if (problems[row] or UNREADABLE).startswith(UNREADABLE)}
        return cls(files, rows, {path: made_from[row] for path, row in whole.items()})

    def fingerprints(self, path: str) -> dict[int, int]:
        """The keys that a file offered, and fingerprints of what was found there; none of a file that is not known."""
        row = self.rows.get(path)
        if row is None:
            return {}
        keys, found = (self.files[name][row].as_py() for name in ("offers", "fingerprints"))
        return dict(zip(keys, found, strict=True))

    def looking(self, keys: AbstractSet[int]) -> list[str]:
        """The files that looked at one of some keys."""
        depends = self.files["depends"].combine_chunks()
        wanted = pa.array(sorted(keys), pa.uint32())
        rows = pc.list_parent_indices(depends).filter(pc.is_in(pc.list_flatten(depends), wanted))
        found: list[str] = pc.unique(self.files["path"].take(rows)).to_pylist()
        return found

    def index(self, paths: Sequence[str], seen: Offered) -> Index:
        """The index of the files of some paths, of which some were seen again, and all others are known."""
        positions = np.full(self.files.num_rows, -1)
        for position, path in enumerate(paths):
            if path not in seen:
                positions[self.rows[path]] = position
        offers = self.files["offers"].combine_chunks()
        files = positions[pc.list_parent_indices(offers).to_numpy()]
        keys = pc.list_flatten(offers).to_numpy().astype(np.int64)
        is_taken = files >= 0
        again = seen.keys_at({path: at for at, path in enumerate(paths) if path in seen})
        parts = zip((files[is_taken], keys[is_taken]), again, strict=True)
        return Index.of(paths, *map(np.concatenate, parts))


def news_of(seen: Mapping[str, Mapping[int, int]], known: KnownFiles, gone: AbstractSet[str]) -> News:
    """What looks different in files that were seen again, and in those that are gone."""
    keys: set[int] = set()
    for path in {*seen, *gone}:
        old, new = known.fingerprints(path), seen.get(path, {})
        keys.update(key for key in {*old, *new} if old.get(key) != new.get(key))
    return News(frozenset(keys), frozenset({*seen, *gone}))
