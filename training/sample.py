"""Selection of training pairs, without those that repeat a benchmark."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from docindex_dagster.core.hashing import digest
from docindex_dagster.sources.discovery import discover
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.text import read_document
from training.pairs import DOCUMENTS

# Maximum per kind and language, so that none dominates the training.
_MOST_OF_CODE = {
    "docstring": 60_000,
    "name": 40_000,
    "comment": 40_000,
    "path": 15_000,
    "chunk": 40_000,
    "commit": 60_000,
}
_MOST_OF_DOCUMENTS = {"heading": 150_000, "sentence": 120_000, "path": 15_000, "chunk": 60_000, "commit": 60_000}
_LONG_LINE = 40  # characters
_SHARED = 0.4  # passages with a larger share of lines from a benchmark are excluded
_SPACES = re.compile(r"\s+")


def read_pairs(folder: Path, seed: int, benchmarks: Iterable[Path] = ()) -> pa.Table:
    """Return the pairs of all repositories with the column `repository`, from files `OWNER+NAME.parquet`.

    Args:
        folder: the folder with the files.
        seed: seed of the sample if there are too many pairs.
        benchmarks: repositories that evaluate the model; pairs that repeat their text are excluded.
    """
    files = sorted(folder.glob("*.parquet"))
    tables = [pq.read_table(file) for file in files]
    named = [
        table.append_column("repository", pa.array([file.stem.replace("+", "/")] * len(table), pa.string()))
        for file, table in zip(files, tables, strict=True)
    ]
    found = _clean(pa.concat_tables(named), benchmarks)
    chosen = [*_chosen(found, np.random.default_rng(seed))]
    return found.take(np.sort(np.concatenate(chosen)))


def _chosen(pairs: pa.Table, chance: np.random.Generator) -> Iterator[np.ndarray]:
    language = pairs["language"].to_numpy(zero_copy_only=False)
    kind = pairs["kind"].to_numpy(zero_copy_only=False)
    for name in np.unique(language):
        for of_kind, most in (_MOST_OF_DOCUMENTS if name == DOCUMENTS else _MOST_OF_CODE).items():
            yield chance.permutation(np.flatnonzero((language == name) & (kind == of_kind)))[:most]


def _clean(pairs: pa.Table, benchmarks: Iterable[Path]) -> pa.Table:
    """Return the pairs whose passages do not repeat a benchmark."""
    known = {line for folder in benchmarks for line in _lines_of(folder)}
    if not known:
        return pairs
    is_clean = [_share(text, known) <= _SHARED for text in pairs["passage"].to_pylist()]
    return pairs.filter(pa.array(is_clean))


def _lines_of(folder: Path) -> Iterator[str]:
    source = Source("library/x", "library", "x", folder)
    files = discover(source)
    for path in files.filter(pc.is_null(files["skipped_reason"]))["path"].to_pylist():
        yield from _long_lines(read_document(folder, path)[0].text)


def _share(passage: str, known: set[str]) -> float:
    lines = [*_long_lines(passage)]
    return sum(line in known for line in lines) / len(lines) if lines else 0.0


def _long_lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        short = _SPACES.sub(" ", line.strip())
        if len(short) >= _LONG_LINE:
            yield digest(short.encode())
