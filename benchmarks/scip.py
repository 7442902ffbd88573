"""Compare calls with those of a compiler's SCIP index.

    python -m benchmarks.scip INDEX.scip FOLDER [-v] [--differences N]

Both are compared as pairs of caller and callee within the indexed files. A called name counts if the index assigns it
to a function or class of these files. Overloads and redefinitions count as one, and a constructor as its class. Create
the index with scip-python or scip-typescript in the folder.
"""

import argparse
import random
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.graph.scip.format import read_index
from docindex_dagster.graph.scip.importing import import_calls
from docindex_dagster.graph.source_graph import OUTSIDE_TYPES
from tests.graph.built import build_graph
from tests.graph.calls import chunks_of

_Pair = tuple[str, str]
_CONSTRUCTORS = (".__init__", ".constructor")


class Agreement(NamedTuple):
    """Pairs of caller and callee, each with the first line that has it."""

    ours: dict[_Pair, str]
    theirs: dict[_Pair, str]

    @property
    def both(self) -> set[_Pair]:
        """The pairs in both."""
        return self.ours.keys() & self.theirs.keys()


def main() -> None:
    """Print the agreement, and differences to judge by hand."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("index", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("-v", "--verbose", action="store_true", help="Print all differences.")
    parser.add_argument("--differences", type=int, default=0, help="Print N random differences.")
    arguments = parser.parse_args()
    agreement = compared(arguments.index, arguments.folder.resolve())
    both, ours, theirs = agreement.both, agreement.ours, agreement.theirs
    print(f"{'folder':<12}{'both':>7}{'only docindex':>15}{'only index':>13}{'agreement':>11}{'index pairs found':>17}")
    print(
        f"{arguments.folder.name:<12}{len(both):>7}{len(ours) - len(both):>15}{len(theirs) - len(both):>13}"
        f"{len(both) / max(1, len(ours | theirs)):>11.1%}{len(both) / max(1, len(theirs)):>17.1%}"
    )
    only_ours, only_theirs = (
        sorted(f"{place}: {a} -> {b}" for (a, b), place in of.items() if (a, b) not in both) for of in (ours, theirs)
    )
    if not arguments.verbose:  # as many from either side, since the more accurate side has few
        only_theirs = _some(only_theirs, (arguments.differences + 1) // 2)
        only_ours = _some(only_ours, arguments.differences - len(only_theirs))
    for who, lines in (("docindex", only_ours), ("index", only_theirs)):
        print(*(f"  {who} {line}" for line in lines), sep="\n")


def _some(lines: list[str], count: int) -> list[str]:
    return sorted(random.Random(0).sample(lines, min(count, len(lines))))


def compared(index: Path, folder: Path) -> Agreement:
    """Return the calls of docindex and of an index for the indexed folder.

    Raises:
        ScipError: if the index is unreadable or does not match the folder.
    """
    chunks = chunks_of(folder)
    found = import_calls(read_index(index), folder, chunks)
    for sentence in found.refusals():
        print(sentence)
    files = set(found.files)
    ours = _ours(chunks, files)
    return Agreement(ours, _theirs(found.table, ours))


def _ours(chunks: pa.Table, files: set[str]) -> dict[_Pair, str]:
    triples = build_graph(chunks).triples
    calls = triples.filter(pc.equal(triples["predicate"], "calls"))
    return {
        (plain(row["subject"]), plain(row["object"])): f"{row['path']}:{row['line']} ({row['resolution']})"
        for row in calls.to_pylist()
        if row["object_type"] not in OUTSIDE_TYPES
        and row["path"] in files
        and row["object"].partition("::")[0] in files
    }


def _theirs(table: pa.Table, ours: dict[_Pair, str]) -> dict[_Pair, str]:
    """Return the calls in an index. If a name has several symbols, prefer the callee that docindex has."""
    theirs: dict[_Pair, str] = {}
    for row in table.to_pylist():
        if not row["targets"] or row["target_path"] is None:
            continue
        pairs = [(plain(row["caller"]), plain(target)) for target in row["targets"]]
        pair = next((pair for pair in pairs if pair in ours), pairs[-1])
        theirs.setdefault(pair, f"{row['path']}:{row['line']}")
    return theirs


def plain(node: str) -> str:
    """Return a node without its number among equal names; a constructor becomes its class."""
    name = node.partition("~")[0]
    return next((name.removesuffix(ending) for ending in _CONSTRUCTORS if name.endswith(ending)), name)


if __name__ == "__main__":
    main()
