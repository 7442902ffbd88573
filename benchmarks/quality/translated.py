"""Measure search in Chinese, Japanese, Korean and Thai pages.

    python -m benchmarks.quality.translated FOLDER

FOLDER has the translated documentation for the questions in `translated.json`, with a folder for each language: `zh`,
`ja` and `ko` from fastapi/fastapi (the files in `docs/LANGUAGE/docs`), and `th` from
MicrosoftDocs/Dynamics-365-Operations.th-th (in `articles`: `finance/fixed-assets`, `finance/cash-bank-management`,
`supply-chain/inventory`, `supply-chain/procurement`). The questions are written for this benchmark in the words of a
native speaker.

For each language and mode, the output has the share of questions with a correct page among the first three, and the
share with a warning that no result is close.
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.pipeline import index
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.search.engine import search
from docindex_dagster.search.model import Granularity, Mode
from docindex_dagster.stores.reader import Reader

_QUESTIONS = Path(__file__).with_name("translated.json")
_TOP = 3


def main() -> None:
    """Print a table with a row for each language."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--misses", action="store_true", help="print the wrong results")
    arguments = parser.parse_args()
    questions = json.loads(_QUESTIONS.read_text(encoding="utf-8"))
    print("| language | pages | bm25 | hybrid | reported weak |\n|---|---|---|---|---|")
    for language in sorted({question["language"] for question in questions}):
        asked = [question for question in questions if question["language"] == language]
        with tempfile.TemporaryDirectory() as home:
            indexed = index(arguments.folder / language, Path(home) / "home")
            words, hybrid, doubted = _measured(indexed.reader, asked, show_misses=arguments.misses)
        print(
            f"| {language} | {indexed.files} | {words}/{len(asked)} | {hybrid}/{len(asked)} | {doubted}/{len(asked)} |"
        )


def _measured(reader: Reader, questions: list[dict[str, Any]], *, show_misses: bool) -> tuple[int, int, int]:
    """Return the number of questions answered in `bm25` and hybrid modes, and the number of warnings."""
    hits = dict.fromkeys((Mode.BM25, Mode.HYBRID), 0)
    doubts: list[str] = []
    for question in questions:
        for mode in hits:
            warn = doubts.append if mode is Mode.HYBRID else lambda _: None
            found = search(
                reader,
                question["question"],
                StaticEmbedder,
                mode=mode,
                top_k=_TOP,
                granularity=Granularity.FILE,
                warn=warn,
            )
            paths = [hit.path for hit in found]
            is_hit = not set(paths).isdisjoint(question["answers"])
            hits[mode] += is_hit
            if show_misses and not is_hit:
                print(mode, question["question"], *paths, sep="\n    ")
    if show_misses:
        print(*doubts, sep="\n")
    return hits[Mode.BM25], hits[Mode.HYBRID], len(doubts)


if __name__ == "__main__":
    main()
