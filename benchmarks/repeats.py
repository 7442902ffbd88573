"""Measure how many of ten results repeat another, with and without `--rerank mmr`.

    python -m benchmarks.repeats BENCH CORPORA

Uses 20 questions for files of BENCH (see `benchmarks/quality`), spread over its repositories. A result is a repeat if
it overlaps the lines of a better result in the same file, or has nearly the same words: a cosine of at least 0.7
between their sets of terms.
"""

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.files import TOP, ndcg
from benchmarks.pipeline import index
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.search.engine import search
from docindex_dagster.search.model import Hit
from docindex_dagster.search.reranking.providers import MarginalRelevance, similarities

QUESTIONS = 20
NEARLY_EQUAL = 0.7
LAMBDAS = (0.3, 0.5, 0.7, 0.9)


def repeats(hits: Sequence[Hit]) -> int:
    """Return the number of hits that repeat a better one."""
    alike = similarities([hit.text for hit in hits])
    return sum(
        any(alike[at, other] >= NEARLY_EQUAL or overlap(hit, hits[other]) for other in range(at))
        for at, hit in enumerate(hits)
    )


def overlap(left: Hit, right: Hit) -> bool:
    is_same = (left.source, left.path) == (right.source, right.path)
    return is_same and left.start_line <= right.end_line and right.start_line <= left.end_line


def main() -> None:
    """Print the repeats of each question, and the quality."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path)
    parser.add_argument("corpora", type=Path)
    arguments = parser.parse_args()
    files = sorted((arguments.bench / "queries").glob("*.json"))
    asked: dict[Path, list[dict[str, Any]]] = {file: json.loads(file.read_text()) for file in files}
    turns = [(file, rows[turn]) for turn in range(QUESTIONS) for file, rows in asked.items() if turn < len(rows)]
    chosen = turns[:QUESTIONS]
    rerankers = {"none": None, **{f"mmr {value:g}": MarginalRelevance(relevance=value) for value in LAMBDAS}}
    counts: dict[str, list[int]] = {name: [] for name in rerankers}
    quality: dict[str, list[float]] = {name: [] for name in rerankers}
    for file in files:
        with tempfile.TemporaryDirectory() as home:
            reader = index(arguments.corpora / file.stem, Path(home)).reader
            for question in (question for of_file, question in chosen if of_file == file):
                for name, reranker in rerankers.items():
                    hits = search(reader, question["query"], StaticEmbedder, top_k=TOP, reranker=reranker)
                    counts[name].append(repeats(hits))
                    quality[name].append(ndcg([hit.path for hit in hits], question["targets"]))
    print(f"{'':<10}{'repeats in 200 results':>24}{'NDCG@10':>10}")
    for name in rerankers:
        print(f"{name:<10}{sum(counts[name]):>24}{sum(quality[name]) / len(quality[name]):>10.3f}")


if __name__ == "__main__":
    main()
