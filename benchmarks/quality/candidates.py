"""The files that a search finds for a question, with values from which an order can be learned."""

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.files import TOP, is_same_file, ndcg, targets_of
from benchmarks.pipeline import index
from docindex_dagster.core.layout import Layout
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.search.engine import search
from docindex_dagster.search.model import Hit
from docindex_dagster.search.query import Wording, understand
from docindex_dagster.search.ranking import name_overlap
from docindex_dagster.stores.reader import Reader, open_reader

Values = NDArray[np.float64]
VALUES = (
    "score",
    "bm25",
    "vector",
    "definition",
    "heading",
    "document",
    "test",
    "rest of the file",
    "name",
    "folder",
    "coverage",
    "incoming references",
    "length",
    "depth",
)
_FOUND = 75  # hits per search


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with the files found for it, best first; `values` has a row per file, with the columns `VALUES`."""

    repository: str
    category: str
    paths: Sequence[str]
    targets: Sequence[str]
    values: Values

    @property
    def is_right(self) -> NDArray[np.bool_]:
        """Return which files are targets."""
        return np.array([any(is_same_file(path, target) for target in self.targets) for path in self.paths])

    def ndcg(self, scores: Values) -> float:
        """Return the NDCG of the order by scores."""
        order = np.argsort(-scores, kind="stable")[:TOP]
        return ndcg([self.paths[at] for at in order], self.targets)


def ask(questions: Path, corpora: Path, homes: Path, tables: Path | None = None) -> Iterator[Asked]:
    """Search for each question of a folder, in the repository with the name of its file.

    Args:
        questions: a folder with `NAME.json`.
        corpora: a folder with the repositories; questions about missing repositories are excluded.
        homes: a folder for their indexes, which are reused.
        tables: a folder for search results, which are reused; None disables it.
    """
    for file in sorted(questions.glob("*.json")):
        if not (corpora / file.stem).is_dir():
            continue
        table = tables / f"{file.stem}.parquet" if tables else None
        if table is not None and table.exists():
            yield from _read(table)
            continue
        found = list(_search(file, corpora / file.stem, homes / file.stem))
        if table is not None:
            _write(table, found)
        yield from found


def _search(file: Path, corpus: Path, home: Path) -> Iterator[Asked]:
    layout, embedder = Layout(home), StaticEmbedder()
    reader = open_reader(layout) if layout.current.exists() else index(corpus, home).reader
    referring = _referring(reader)
    for row in json.loads(file.read_text("utf-8")):
        hits = _best_of_files(search(reader, row["query"], lambda: embedder, top_k=_FOUND))
        if hits:
            wording = Wording.of(understand(row["query"]), reader)
            values = np.array([_values(hit, hits[0].score, wording, referring) for hit in hits])
            yield Asked(file.stem, row["category"], [hit.path for hit in hits], targets_of(row), values)


def _best_of_files(hits: Sequence[Hit]) -> list[Hit]:
    first = {hit.path: hit for hit in reversed(hits)}
    return [hit for hit in hits if first[hit.path] is hit]


def _referring(reader: Reader) -> Mapping[str, int]:
    """Return how many other files refer to each file."""
    places = reader.graph.nodes["path"].to_pylist()
    found: dict[str, set[str]] = defaultdict(set)
    for path, target in zip(reader.graph.edges["path"].to_pylist(), reader.graph.objects.tolist(), strict=True):
        if places[target] is not None and places[target] != path:
            found[places[target]].add(path)
    return {path: len(others) for path, others in found.items()}


def _values(hit: Hit, best: float, wording: Wording, referring: Mapping[str, int]) -> list[float]:
    added = {signal.name: signal.contribution / best for signal in hit.signals}
    signals = ("bm25", "vector", "definition", "heading", "document", "test", "file")
    query = tuple(wording.shares)
    folder = hit.path.rpartition("/")[0].rpartition("/")[2]
    return [
        hit.score / best,
        *(added.get(name, 0.0) for name in signals),
        name_overlap(hit.path, query) ** 2,
        name_overlap(folder, query),
        wording.in_chunk(asdict(hit)),
        math.log1p(referring.get(hit.path, 0)),
        math.log1p(len(hit.text)),
        float(hit.path.count("/")),
    ]


def _write(file: Path, found: Sequence[Asked]) -> None:
    rows = [asdict(one) | {"values": one.values.ravel().tolist()} for one in found]
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), file)


def _read(file: Path) -> Iterator[Asked]:
    for row in pq.read_table(file).to_pylist():
        yield Asked(**row | {"values": np.array(row["values"]).reshape(-1, len(VALUES))})
