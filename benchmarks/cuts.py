"""Measure the effect of the chunk size and of the header line on search quality.

    python -m benchmarks.cuts BENCH CORPORA

Answers the questions of `benchmarks.quality` over indexes with different budgets for code chunks (in non-whitespace
characters), and over an index whose embedded texts have no header line. Gains are relative to the first row, with 95 %
intervals by paired bootstrap over questions.
"""

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa

from benchmarks.pipeline import index
from benchmarks.quality import tables
from benchmarks.quality.evaluate import Build, Variation, evaluate
from benchmarks.quality.questions import Scores, read_questions
from docindex_dagster.core.schemas import CHUNKS
from docindex_dagster.core.settings import ChunkingSettings
from docindex_dagster.search.model import Mode

_BUDGETS = (750, 1000, 1500, 2000)
_HEADER = ("path", "qualified_name", "symbol_kind", "heading_path")
_MODES = (Variation("hybrid"), Variation("bm25", Mode.BM25), Variation("vector", Mode.VECTOR))


def without_header(chunks: pa.Table) -> pa.Table:
    """Return the chunks without their location. Their embedded text starts with an empty line."""
    for name in _HEADER:
        field = CHUNKS.field(name)
        empty: object = [] if pa.types.is_list(field.type) else None if field.nullable else ""
        chunks = chunks.set_column(CHUNKS.get_field_index(name), field, pa.array([empty] * len(chunks), field.type))
    return chunks


def builds() -> Iterator[tuple[str, Build]]:
    """Return the indexes to compare; the first uses the defaults."""
    default = ChunkingSettings().code_chars
    budgets: list[int] = [default, *(budget for budget in _BUDGETS if budget != default)]
    yield from ((f"{budget} characters", _build(budget)) for budget in budgets)
    yield f"{default}, no header", _build(default, without_header)


def _build(budget: int, embedded: Callable[[pa.Table], pa.Table] = lambda chunks: chunks) -> Build:
    return partial(index, settings=ChunkingSettings(code_chars=budget), embedded=embedded)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path)
    parser.add_argument("corpora", type=Path)
    arguments = parser.parse_args()
    questions = read_questions(arguments.bench)
    scores: dict[str, list[Scores]] = {}
    for name, build in builds():
        found = evaluate(arguments.corpora, questions, _MODES, build)
        scores |= {f"{name}, {variation.name}": found[variation.name] for variation in _MODES}
        print(name, flush=True)
    results = tables.Results(questions, scores)
    tables.means(results, [*scores])
    tables.passages(results, [*scores])
    first = next(builds())[0]
    for variation in _MODES:
        names = [name for name in scores if name.endswith(f", {variation.name}")]
        tables.gains(results, names[1:], f"{first}, {variation.name}")


if __name__ == "__main__":
    main()
