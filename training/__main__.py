"""Train the static model, from the corpus to the weights in the package.

    python -m training BUILD [--mirrors FOLDER] [--benchmarks FOLDER...] [--commits]

Each step writes its result to BUILD and is skipped if the result exists: the pairs of each repository, the vocabulary,
the tokens of all pairs, and the rows after each epoch. The same seed gives the same weights.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.core.hashing import digest
from training.collect import Corpus, make_pairs
from training.export import export
from training.sample import read_pairs
from training.tokens import PASSAGE_TOKENS, QUERY_TOKENS, load, save, tokenize
from training.train import Data, Recipe, train
from training.vocabulary import learn

_TOKENS = 30_000


def main() -> None:
    """Run the steps whose results are missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path, help="Folder for the results of the steps.")
    parser.add_argument("--mirrors", type=Path, help="Folder of bare clones OWNER+NAME/repo; missing ones are added.")
    parser.add_argument(
        "--benchmarks", type=Path, action="append", default=[], help="Checkout whose text is excluded from the pairs."
    )
    parser.add_argument("--commits", action="store_true", help="Also make pairs of commits and changed passages.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    build: Path = arguments.build
    started = time.monotonic()

    def report(text: str) -> None:
        sys.stdout.write(f"{time.monotonic() - started:7.0f} s  {text}\n")
        sys.stdout.flush()

    corpus = Corpus(build / "pairs", arguments.mirrors or build / "mirrors", arguments.seed, arguments.commits)
    make_pairs(corpus, arguments.workers, report)
    vocabulary, data = _make_tokens(build, arguments.benchmarks, arguments.seed, report)
    rows = train(data, len(vocabulary), Recipe(arguments.seed), build / "state.pt", report)
    size, sha256 = export(vocabulary, rows)
    report(f'weights of {size / 1e6:.1f} MB; embedding/static.py: SHA256 = "{sha256}"')


def _make_tokens(
    build: Path, benchmarks: list[Path], seed: int, report: Callable[[str], None]
) -> tuple[list[str], Data]:
    """Return the vocabulary, and the pairs as tokens."""
    queries, passages, others = build / "queries.npz", build / "passages.npz", build / "others.npz"
    if not others.exists():
        pairs = read_pairs(build / "pairs", seed, benchmarks)
        report(f"{len(pairs):,} pairs: {_counts(pairs, 'kind')}; {_counts(pairs, 'language')}")
        vocabulary = learn(pairs, _TOKENS, seed)
        (build / "vocabulary.txt").write_text("\n".join(vocabulary), "utf-8")
        report(f"{len(vocabulary):,} tokens")
        save(tokenize(pairs["query"], vocabulary, QUERY_TOKENS), queries)
        save(tokenize(pairs["passage"], vocabulary, PASSAGE_TOKENS), passages)
        repository = pairs["repository"].combine_chunks().dictionary_encode().indices.to_numpy()
        np.savez(others, repository=repository, query=_hashes(pairs["query"]), passage=_hashes(pairs["passage"]))
        report("tokens of all pairs")
    with np.load(others) as arrays:
        found = Data(
            load(queries),
            load(passages),
            arrays["repository"].astype(np.int64),
            arrays["query"],
            arrays["passage"],
        )
    return (build / "vocabulary.txt").read_text("utf-8").split("\n"), found


def _counts(pairs: pa.Table, column: str) -> str:
    counts = pc.value_counts(pairs[column]).to_pylist()
    return ", ".join(f"{row['values']} {row['counts']:,}" for row in sorted(counts, key=lambda row: -row["counts"]))


def _hashes(texts: pa.ChunkedArray) -> np.ndarray:
    return np.array([int(digest(text.encode())[:15], 16) for text in texts.to_pylist()], np.int64)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"{error.cmd}: {error.stderr.decode(errors='replace')}")
