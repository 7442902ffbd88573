"""Measure NDCG@10 of questions for files, by repository and search mode.

    python -m benchmarks.files BENCH CORPORA

BENCH has `repos.json` and `queries/NAME.json`; CORPORA has each repository of `repos.json` by name at its pinned
revision. A question has target files. The rank of a target is that of the first chunk from its file among the ten
best, and the ideal ranking has min(10, number of targets) hits.
"""

import argparse
import json
import math
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.pipeline import index
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.search.engine import search
from docindex_dagster.search.model import Mode

TOP = 10


def ndcg(paths: Sequence[str], targets: Sequence[str]) -> float:
    """Return the binary NDCG@10 of chunks by file; `paths` are those of the hits, best first."""
    gains = 0.0
    for target in targets:
        rank = next((rank for rank, path in enumerate(paths[:TOP], start=1) if is_same_file(path, target)), None)
        if rank is not None:
            gains += 1 / math.log2(rank + 1)
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(TOP, len(targets)) + 1))
    return gains / ideal


def targets_of(question: Mapping[str, Any]) -> list[str]:
    """Return the paths of the files that answer a question, without the line ranges that a few targets have."""
    return [target if isinstance(target, str) else target["path"] for target in question["targets"]]


def is_same_file(left: str, right: str) -> bool:
    """Return whether one path is a suffix of the other on a `/` boundary."""
    return f"/{left}".endswith(f"/{right}") or f"/{right}".endswith(f"/{left}")


def evaluate(bench: Path, corpora: Path, modes: Sequence[Mode]) -> dict[str, dict[Mode, list[float]]]:
    """Return the scores of all questions by repository and mode."""
    scores: dict[str, dict[Mode, list[float]]] = {}
    embedder = StaticEmbedder()
    for queries in sorted((bench / "queries").glob("*.json")):
        name = queries.stem
        by_mode: dict[Mode, list[float]] = defaultdict(list)
        with tempfile.TemporaryDirectory() as home:
            indexed = index(corpora / name, Path(home))
            questions: list[dict[str, Any]] = json.loads(queries.read_text())
            for question in questions:
                for mode in modes:
                    hits = search(indexed.reader, question["query"], lambda: embedder, mode=mode, top_k=TOP)
                    by_mode[mode].append(ndcg([hit.path for hit in hits], targets_of(question)))
        scores[name] = by_mode
        row = "  ".join(f"{sum(by_mode[mode]) / len(by_mode[mode]):.3f}" for mode in modes)
        print(f"{name:<12} {len(questions):>4} questions {indexed.chunks:>6} chunks  {row}", flush=True)
    return scores


def main() -> None:
    """Print a row for each repository and the mean over all questions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path)
    parser.add_argument("corpora", type=Path)
    parser.add_argument("--mode", type=Mode, action="append", choices=list(Mode))
    arguments = parser.parse_args()
    modes = arguments.mode or [Mode.HYBRID, Mode.BM25, Mode.VECTOR]
    print(f"{'NDCG@10':<40} {'  '.join(mode.value for mode in modes)}")
    scores = evaluate(arguments.bench, arguments.corpora, modes)
    for mode in modes:
        values = [value for by_mode in scores.values() for value in by_mode[mode]]
        print(f"{mode.value:<8} {sum(values) / len(values):.4f}  over {len(values)} questions")


if __name__ == "__main__":
    main()
