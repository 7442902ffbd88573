"""Measure the speed of an embedding model.

    python -m benchmarks.embedding [--provider NAME] [--model MODEL] [--sample N] FOLDER...

The chunks of the folders, each with its header line, are embedded in batches as in a run. The benchmark prints chunks
per second on one core and on all cores, in CPU time and wall-clock time (which differ under load), and the time until
the first text is embedded, including imports. Values are medians of several rounds, each in its own process.
"""

import argparse
import os
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from docindex_dagster.chunking.build import build_chunks
from docindex_dagster.chunking.embedding_text import embed_texts
from docindex_dagster.chunking.inputs import gather
from docindex_dagster.core.settings import ChunkingSettings, EmbeddingSettings
from docindex_dagster.embedding.providers import load_embedder
from docindex_dagster.sources.discovery import discover
from docindex_dagster.sources.model import Source

_BATCH = 256
_WARMING = 32  # texts for warming up
_ROUNDS = 3
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")


def texts_of(folder: Path) -> list[str]:
    """Return the embedded texts of a folder."""
    source = Source("library/x", "library", "x", folder)
    settings = ChunkingSettings()
    texts: list[str] = embed_texts(
        build_chunks(source, gather(discover(source), settings), None, settings).table
    ).to_pylist()
    return texts


def sampled(texts: list[str], size: int) -> list[str]:
    """Return the given number of texts at equal distances, or all."""
    return texts if size >= len(texts) else [texts[at * len(texts) // size] for at in range(size)]


def timed(settings: EmbeddingSettings, texts: list[str]) -> tuple[float, float, float]:
    """Return the seconds until the first text is embedded, and for all: wall-clock and CPU time."""
    started = time.perf_counter()
    embedder = load_embedder(settings)
    embedder.embed_query("a text")
    first = time.perf_counter() - started
    embedder.embed_documents(texts[:_WARMING])
    passed, used = time.perf_counter(), time.process_time()
    for start in range(0, len(texts), _BATCH):
        embedder.embed_documents(texts[start : start + _BATCH])
    return first, time.perf_counter() - passed, time.process_time() - used


def medians(settings: EmbeddingSettings, texts: list[str], cores: int) -> list[float]:
    """Return the medians of `timed` over several rounds on the given number of cores."""
    os.environ |= dict.fromkeys(_THREADS, str(cores))
    rounds = []
    for _ in range(_ROUNDS):
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            rounds.append(process.submit(timed, settings, texts).result())
    return [statistics.median(values) for values in zip(*rounds, strict=True)]


def main() -> None:
    """Print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--provider", default="static")
    parser.add_argument("--model")
    parser.add_argument("--sample", type=int, default=1_000_000)
    given = parser.parse_args()
    settings = EmbeddingSettings(provider=given.provider, model=given.model)
    texts = sampled([text for folder in given.folders for text in texts_of(folder.absolute())], given.sample)
    size = sum(len(text.encode()) for text in texts) / 1e6
    print(f"{load_embedder(settings).name}: {len(texts):,} chunks, {size:.2f} MB")
    for cores in (1, len(os.sched_getaffinity(0))):
        first, passed, used = medians(settings, texts, cores)
        speeds = ", ".join(
            f"{len(texts) / seconds:,.0f} chunks/s ({size / seconds:.3g} MB/s) {clock}"
            for seconds, clock in ((used, "of CPU time"), (passed, "of wall-clock time"))
        )
        print(f"{cores} core(s): {speeds}; the first text after {first:.2f} s")


if __name__ == "__main__":
    main()
