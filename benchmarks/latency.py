"""Measure how long answers take.

    python -m benchmarks.latency BENCH FOLDER... [--sizes 5000,20000,100000]

All folders are chunked and embedded once. For each size, the benchmark publishes that many chunks, from all files in
rotation, and asks 100 questions for files of BENCH in each mode, in a warm process after 20 others. It prints
milliseconds (median and 95th percentile) of `search`, of a context of 4,000 tokens, and of an answer of `docindex mcp`
at its client, then seconds of `docindex search` in a new process (median of five).
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import anyio
import numpy as np
import pyarrow as pa
from mcp import Client, StdioServerParameters, stdio_client

from docindex_dagster.callgraph.table import as_table
from docindex_dagster.chunking.build import build_chunks
from docindex_dagster.chunking.inputs import gather
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import CONFIG_NAME, ChunkingSettings, load_settings
from docindex_dagster.embedding.build import build_embeddings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.graph.extraction import EVERYTHING, extract
from docindex_dagster.search.engine import search
from docindex_dagster.search.model import Mode
from docindex_dagster.search.service import Request, context_of
from docindex_dagster.search.weights import WEIGHTS, Weights
from docindex_dagster.sources.discovery import discover
from docindex_dagster.sources.model import Source
from docindex_dagster.stores.publish import publish
from docindex_dagster.stores.reader import open_reader
from docindex_dagster.stores.rows import SourceRows
from docindex_dagster.stores.staging import Model

WARM_UP, ASKED = 20, 100
COLD_RUNS = 5
CONTEXT_TOKENS = 4000
BOOST = 0.15  # of the graph, in a hybrid search
SCANS = 10  # of all texts, for the longest word of a question


class Cut(NamedTuple):
    """A chunked folder: its key, chunks, references and vectors."""

    key: str
    chunks: pa.Table
    references: pa.Table
    vectors: pa.Table


def cut(folders: Sequence[Path]) -> list[Cut]:
    """Chunk and embed each folder."""
    found = []
    for folder in folders:
        source = Source(f"library/{folder.name}", "library", folder.name, folder)
        inputs = gather(discover(source), ChunkingSettings())
        made = build_chunks(source, inputs, None, ChunkingSettings(), wants_references=True)
        chunks, references = made.table, as_table(made.references, "")
        vectors = build_embeddings(chunks, None, StaticEmbedder(), source.key).table
        found.append(Cut(source.key, chunks, references, vectors))
        print(f"{source.key}: {chunks.num_rows:,} chunks", file=sys.stderr)
    return found


def publish_share(layout: Layout, sources: Sequence[Cut], size: int) -> None:
    """Publish the same share of each source's chunks, in complete files where possible."""
    share = size / sum(each.chunks.num_rows for each in sources)
    for key, chunks, references, vectors in sources:
        count = min(chunks.num_rows, round(chunks.num_rows * share))
        part = chunks.slice(0, count)
        graph = extract(layout, key, part, references, plan=EVERYTHING, previous=None)
        rows = SourceRows(key, part, vectors.slice(0, count), graph)
        publish(layout, rows, Model(StaticEmbedder.name, StaticEmbedder.dimension))


def questions(bench: Path) -> list[str]:
    """Return a reproducible sample of the questions for files."""
    found = [
        row["query"] for file in sorted((bench / "queries").glob("*.json")) for row in json.loads(file.read_text())
    ]
    return random.Random(0).sample(found, WARM_UP + ASKED)


def milliseconds(ask: Callable[[str], object], asked: Sequence[str]) -> str:
    """Return the median and the 95th percentile after a warm-up."""
    seconds = []
    for query in asked:
        started = time.perf_counter()
        ask(query)
        seconds.append(time.perf_counter() - started)
    return figures(seconds)


def figures(seconds: Sequence[float]) -> str:
    p50, p95 = np.quantile(np.array(seconds[WARM_UP:]) * 1000, [0.5, 0.95])
    return f"{p50:7.1f} {p95:7.1f}"


async def over_mcp(root: Path, asked: Sequence[str]) -> tuple[float, str]:
    """Return the seconds until the server's first answer, and the milliseconds of later answers."""
    started = time.perf_counter()
    server = StdioServerParameters(command=sys.executable, args=["-m", "docindex_dagster.cli", "mcp"], cwd=root)
    seconds = []
    first = 0.0
    async with Client(stdio_client(server)) as client:
        for query in asked:
            before = time.perf_counter()
            await client.call_tool("search", {"query": query})
            seconds.append(time.perf_counter() - before)
            first = first or time.perf_counter() - started
    return first, figures(seconds)


def cold(root: Path, mode: Mode) -> float:
    """Return the seconds of a search in a new process."""
    command = [sys.executable, "-m", "docindex_dagster.cli", "search", "open a connection", "--mode", mode.value]
    seconds = []
    for _ in range(COLD_RUNS):
        started = time.perf_counter()
        subprocess.run(command, cwd=root, check=True, capture_output=True)
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def measure(root: Path, asked: Sequence[str]) -> None:
    """Print the results for one index."""
    settings = load_settings(root)
    reader = open_reader(Layout(settings.home))
    embedder = StaticEmbedder()

    def ask(mode: Mode, weights: Weights, query: str) -> None:
        search(reader, query, lambda: embedder, mode=mode, weights=weights)

    for mode in (Mode.HYBRID, Mode.VECTOR, Mode.BM25):
        print(f"  {mode.value:<10}{milliseconds(partial(ask, mode, WEIGHTS), asked)}")
    started = time.perf_counter()
    edges = len(reader.links.weights)
    print(f"  the graph, opened in {time.perf_counter() - started:.2f} s: {edges:,} links of chunks")
    print(f"  {Mode.GRAPH.value:<10}{milliseconds(partial(ask, Mode.GRAPH, WEIGHTS), asked)}")
    print(f"  + graph   {milliseconds(partial(ask, Mode.HYBRID, replace(WEIGHTS, graph=BOOST)), asked)}")
    words = [max(query.replace("`", " ").split(), key=len).strip("().,?*+[]") for query in asked]
    for mode in (Mode.LITERAL, Mode.REGEX):
        print(f"  {mode.value:<10}{milliseconds(partial(ask, mode, WEIGHTS), words[: WARM_UP + SCANS])}")

    def read(query: str) -> None:
        context_of(settings, reader, Request(query), CONTEXT_TOKENS)

    print(f"  context   {milliseconds(read, asked)}")
    first, others = anyio.run(over_mcp, root, asked)
    print(f"  mcp       {others}; the first answer {first:.2f} s after the start")
    times = [f"{mode.value} {cold(root, mode):.2f} s" for mode in (Mode.BM25, Mode.HYBRID, Mode.GRAPH)]
    print("  a new process: " + ", ".join(times), flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path)
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--sizes", default="5000,20000,100000", help="Comma-separated numbers of chunks.")
    arguments = parser.parse_args()
    asked = questions(arguments.bench)
    sources = cut(arguments.folders)
    for size in map(int, arguments.sizes.split(",")):
        with tempfile.TemporaryDirectory(prefix="docindex-latency-") as folder:
            root = Path(folder)
            (root / CONFIG_NAME).write_text("")
            publish_share(Layout(root / ".docindex"), sources, size)
            count = open_reader(Layout(root / ".docindex")).searcher.num_docs
            print(f"{count:,} chunks of {len(sources)} sources{'':<4} p50     p95  ms")
            measure(root, asked)


if __name__ == "__main__":
    os.environ.pop("DOCINDEX_ROOT", None)
    main()
