"""Print the ranks of manually judged answers.

    python -m benchmarks.quality.judged PROJECT [--mode MODE]

PROJECT has a `docindex.toml` that indexes the repositories of `judged.toml` under the same names. A question with a
`source` is asked in that repository, others in all. Run it with two versions of docindex to compare them.
"""

import argparse
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from docindex_dagster import open_index
from docindex_dagster.search.model import Hit, Mode

_LOOKED_AT = 50


def main() -> None:
    """Print the rank of each answer, a dash if it is missing, and a summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("project", type=Path)
    parser.add_argument("--mode", type=Mode, choices=list(Mode), default=Mode.HYBRID)
    arguments = parser.parse_args()
    index = open_index(arguments.project)
    questions: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())["question"]
    ranks = []
    for question in questions:
        hits = index.search(question["ask"], top_k=_LOOKED_AT, mode=arguments.mode, sources=question.get("source", ()))
        ranks.append(_rank(hits, question))
        print(f"{ranks[-1] or '–':>3}  {question['ask']}")  # noqa: RUF001 as in the tables of README.md
    found = [rank for rank in ranks if rank is not None]
    counts = ", ".join(f"{sum(rank <= most for rank in found)} in the first {most}" for most in (1, 3, 10))
    print(f"of {len(ranks)}: {counts}; mean reciprocal rank {sum(1 / rank for rank in found) / len(ranks):.3f}")


def _rank(hits: Sequence[Hit], question: Mapping[str, Any]) -> int | None:
    """Return the rank of the first hit in one of the files with the expected text or heading."""
    for rank, hit in enumerate(hits, start=1):
        text = f"{' '.join(hit.heading_path)}\n{hit.text}"
        if any(hit.path == path and part in text for path, part in question["places"]):
            return rank
    return None


if __name__ == "__main__":
    main()
