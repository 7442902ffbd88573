"""Measure the cost to build, update and query the graph of a source.

    python -m benchmarks.graph FOLDER

The benchmark runs in one process without Dagster. It measures parsing and chunking with and without references, and
resolution, in seconds of CPU time. Each value is the minimum of three, because load only increases times. The folder is
read once in advance to warm up grammars, queries and files.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.callgraph.resolver import calls
from docindex_dagster.callgraph.table import as_table
from docindex_dagster.graph import queries
from docindex_dagster.graph.analysis import statistics as statistics_of
from docindex_dagster.graph.build import build_graph, update_graph
from docindex_dagster.graph.open_graph import OpenGraph, open_graphs
from tests.graph.calls import chunks_of, cut

_EDITS = 10
_QUESTIONS = 30


def main() -> None:
    """Print seconds, milliseconds and MiB."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repetitions", type=int, default=3, help="repetitions; the minimum is printed")
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    least_of = partial(_least, repetitions=arguments.repetitions)
    chunks = chunks_of(folder)
    references = as_table(cut(folder, wants_references=True).references, "")
    before = _mebibytes("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak
    graph = build_graph(chunks, references)
    peak = _mebibytes() - before
    without = least_of(partial(cut, folder))
    parsed = least_of(lambda: as_table(cut(folder, wants_references=True).references, ""))
    resolved = least_of(partial(build_graph, chunks, references))
    with patch.object(calls, "targets", lambda *_: ()), patch.object(calls, "reason", lambda *_: ""):
        unfollowed = least_of(partial(build_graph, chunks, references))
    cost, least = ((parsed - without + seconds) / without for seconds in (resolved, unfollowed))
    print(f"{len(pc.unique(chunks['path']))} files, {chunks['text'].nbytes / 1e6:.1f} MB, {chunks.num_rows} chunks")
    print(f"parse and chunk {without:.1f} s, references {parsed - without:.1f} s, resolve {resolved:.1f} s", end="")
    print(f": {cost:.0%} overhead")
    print(f"without following calls: {least:.0%}")
    print(f"{graph.nodes.num_rows} nodes, {graph.triples.num_rows} edges, {peak} MiB added to the peak")
    paths = references["path"].to_pylist()
    edited = paths[:: max(1, len(paths) // _EDITS)][:_EDITS]
    times = [_seconds(partial(update_graph, graph, _edited(chunks, path), references)) for path in edited]
    print(f"one file resolved again: {_milliseconds(times)}")
    opened = open_graphs({"library/program": graph})
    _ask(opened)
    hubs = [name for name, _ in statistics_of(opened).hubs]
    times = [_seconds(partial(queries.callers, opened, hub, 2)) for hub in hubs for _ in range(3)][:_QUESTIONS]
    print(f"indirect callers of the most called symbols: {_milliseconds(times)}")
    times = [_seconds(partial(queries.impact, opened, hub, 3)) for hub in hubs]
    print(f"impact over three edges: {_milliseconds(times)}")


def _edited(chunks: pa.Table, path: str) -> pa.Table:
    """Return the chunks after an edit of a file."""
    hashes = pc.if_else(pc.equal(chunks["path"], path), pa.scalar("edited"), chunks["row_hash"])
    return chunks.set_column(chunks.schema.get_field_index("row_hash"), chunks.schema.field("row_hash"), hashes)


def _ask(opened: OpenGraph) -> None:
    """Build the caches of the first query."""
    opened.leaving(0)
    opened.incoming_edges(0)


def _seconds(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    started = clock()
    work()
    return clock() - started


def _least(work: Callable[[], object], repetitions: int) -> float:
    return min(_seconds(work, time.process_time) for _ in range(repetitions))


def _milliseconds(times: list[float]) -> str:
    return f"{statistics.median(times) * 1000:.1f} ms median, {max(times) * 1000:.1f} at most"


def _mebibytes(of: str = "VmHWM") -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition(f"{of}:")[2].split()[0]) // 1024


if __name__ == "__main__":
    main()
