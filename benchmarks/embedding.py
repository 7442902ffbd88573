"""How fast does the static model embed? embedding.py FOLDER...

The chunks of some repositories, each under the line that tells its place, in batches as a run embeds them: chunks and
MB a second of processor time, on one core; and how long the model takes to load, in a new process.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from docindex_dagster.chunking.build import build_chunks, gather
from docindex_dagster.chunking.embed_text import embed_texts
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.settings import ChunkingSettings
from docindex_dagster.sources.discover import discover
from docindex_dagster.sources.model import Source

_BATCH = 256
_ROUNDS = 5
_LOADS = """
import time, docindex_dagster.embedding.static as static
from docindex_dagster.embedding.weights import load_weights
started = time.perf_counter(); static.StaticModel(*load_weights()); print(time.perf_counter() - started)
"""


def texts_of(folder: Path) -> list[str]:
    """What is embedded of a folder."""
    source = Source("library/x", "library", "x", folder)
    settings = ChunkingSettings()
    texts: list[str] = embed_texts(
        build_chunks(source, gather(discover(source), settings), None, settings).table
    ).to_pylist()
    return texts


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    texts = [text for folder in parser.parse_args().folders for text in texts_of(folder.absolute())]
    size = sum(len(text.encode()) for text in texts) / 1e6
    embedder = StaticEmbedder()
    embedder.embed_documents(texts[:_BATCH])
    seconds = []
    for _ in range(_ROUNDS):
        started = time.process_time()
        for start in range(0, len(texts), _BATCH):
            embedder.embed_documents(texts[start : start + _BATCH])
        seconds.append(time.process_time() - started)
    taken = statistics.median(seconds)
    print(f"{len(texts):,} chunks, {size:.1f} MB: {len(texts) / taken:,.0f} chunks/s, {size / taken:.1f} MB/s")
    loads = [float(subprocess.check_output([sys.executable, "-c", _LOADS])) for _ in range(_ROUNDS)]
    print(f"loading: {statistics.median(loads) * 1000:.0f} ms")


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    main()
