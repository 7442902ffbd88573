"""Measure the speedup from concurrent requests of the provider `openai`.

    python -m benchmarks.openai [TEXTS]

A local server with OpenAI's API delays each answer, as a remote server does. Texts are embedded as in a run, which
stores each batch as it arrives, with 1, 4 and 8 concurrent requests.
"""

import argparse
import multiprocessing
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import EmbeddingSettings
from docindex_dagster.embedding.cache import embed
from docindex_dagster.embedding.openai import OpenAIEmbedder
from tests.conftest import chunks_of
from tests.embedding.openai_server import serving

_LATENCIES_S = (0.1, 0.4)
_CONCURRENCY = (1, 4, 8)
_DIMENSION = 3072
_WORDS = 120  # per text, as in a typical chunk


def serve(pipe: Connection, latency_s: float) -> None:
    # All texts get the same vector: the benchmark measures the client, not the server.
    vector = np.random.default_rng(0).standard_normal(_DIMENSION).tolist()
    with serving() as api:
        api.vector = lambda _text, _dimension: vector
        api.latency_s = latency_s
        pipe.send(api.url)
        pipe.recv()


@contextmanager
def server(latency_s: float) -> Iterator[str]:
    """Yield the URL of a server in its own process."""
    ours, its = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(its, latency_s))
    process.start()
    yield ours.recv()
    ours.send(None)
    process.join()


def measure(url: str, texts: int, concurrency: int) -> float:
    chance = random.Random(texts)
    words = [f"word{number}" for number in range(2000)]
    files = {f"{at}.py": [f"name{at} " + " ".join(chance.choices(words, k=_WORDS))] for at in range(texts)}
    chunks = chunks_of(files)
    settings = EmbeddingSettings(provider="openai", base_url=url, dimensions=_DIMENSION, concurrency=concurrency)
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        result = embed(Layout(Path(folder)), "library/x", chunks, None, OpenAIEmbedder(settings))
        seconds = time.perf_counter() - started
    assert result.embedded == texts
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("texts", type=int, nargs="?", default=3000)
    texts = parser.parse_args().texts
    print("| latency, ms | concurrent requests | seconds | texts/s | speedup |\n|---|---|---|---|---|")
    for latency_s in _LATENCIES_S:
        with server(latency_s) as url:
            measure(url, 200, 1)  # imports and connects
            alone = 0.0
            for concurrency in _CONCURRENCY:
                seconds = measure(url, texts, concurrency)
                alone = alone or seconds
                print(
                    f"| {latency_s * 1000:.0f} | {concurrency} | {seconds:.1f} | {texts / seconds:,.0f} "
                    f"| {alone / seconds:.1f} |"
                )


if __name__ == "__main__":
    main()
