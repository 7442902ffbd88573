"""Measure late interaction over static vectors.

    python -m benchmarks.quality.late BENCH CORPORA [--homes FOLDER]

MaxSim as in ColBERT (Khattab and Zaharia, SIGIR 2020) is the sum, over the query's tokens, of the highest cosine with
any token of a text. Tokens are weighted by the length of their row times their inverse document frequency in the
repository. As a share of the best candidate's value, times a weight, it is added to the relevance of hybrid candidates
or replaces the cosine of the whole text. The normal ranking follows.

Each repository uses the weight that is best on the files of all others; 0 is among the weights. The output has gains
over hybrid with 95 % intervals by paired bootstrap, gains for each weight, and the CPU time for 50 candidates.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.files import TOP
from benchmarks.pipeline import index
from benchmarks.quality.evaluate import interval
from benchmarks.quality.questions import SETS, Question, read_questions
from docindex_dagster.chunking.embedding_text import COLUMNS, embed_texts
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.schemas import CHUNKS
from docindex_dagster.core.tokenizer import words
from docindex_dagster.embedding.static import StaticEmbedder, StaticModel, load_weights
from docindex_dagster.search import candidates
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.hits import rows_of
from docindex_dagster.search.model import Scored
from docindex_dagster.search.query import Query, Wording, understand
from docindex_dagster.search.query_hints import keep_one_translation
from docindex_dagster.search.ranking import fuse, rank
from docindex_dagster.search.weights import WEIGHTS
from docindex_dagster.stores.reader import Reader, open_reader

Values = NDArray[np.floating[Any]]
GRID = (0.1, 0.2, 0.3, 0.5, 1.0)
_POOL, _RANKED = 100, 75
_MANY, _FEW = 50, 25  # candidates
_WINDOW = 60  # words; each window shares half of them with the next
_SAME = 0.999  # the cosine of a token with itself, with a tolerance for rounding
_MODEL = StaticModel(*load_weights())
_LENGTHS: Values = np.linalg.norm(_MODEL.rows.astype(np.float32), axis=1)
_DIRECTIONS: Values = _MODEL.rows.astype(np.float32) / np.maximum(_LENGTHS, 1e-9)[:, None]


@dataclass(slots=True)
class Asked:
    """A question with its candidates, best first, and their MaxSim values by text variant."""

    question: Question
    query: Query
    wording: Wording
    found: Sequence[Scored]
    rows: Mapping[str, Mapping[str, Any]]
    late: Mapping[str, Values] = field(default_factory=dict)
    cost_s: float = 0.0

    def score(self, found: Sequence[Scored]) -> float:
        """Return the NDCG@10 of candidates with a changed relevance."""
        ordered = sorted(found, key=lambda item: (-item.score, item.chunk_id))
        best = rank(self.query, ordered, self.rows, TOP, WEIGHTS, wording=self.wording)
        return self.question.score([SimpleNamespace(**self.rows[item.chunk_id]) for item in best]).ndcg


def added(name: str, most: int) -> Callable[[Asked, float], Sequence[Scored]]:
    """Return a function that adds MaxSim to the relevance of the first candidates, as a share of the best value."""

    def change(asked: Asked, weight: float) -> Sequence[Scored]:
        values = np.append(asked.late[name][:most], np.zeros(max(0, len(asked.found) - most), np.float32))
        unit = weight * asked.found[0].score / (float(values.max()) or 1.0)
        return [item.plus("late", unit * float(value)) for item, value in zip(asked.found, values, strict=True)]

    return change


def replaced(asked: Asked, weight: float) -> Sequence[Scored]:
    """Return a function that replaces a share of the cosine's contribution with that of MaxSim."""
    ids = [item.chunk_id for item in asked.found]
    ranking = sorted(zip(ids, asked.late["text"].tolist(), strict=True), key=lambda pair: (-pair[1], pair[0]))
    shares = {"late": WEIGHTS.vector}
    late = {item.chunk_id: WEIGHTS.vector * item.score for item in fuse({"late": ranking}, shares, _POOL, WEIGHTS)}
    own = [sum(signal.contribution for signal in item.signals if signal.name == "vector") for item in asked.found]
    return [
        item.plus("late", weight * (late[item.chunk_id] - before))
        for item, before in zip(asked.found, own, strict=True)
    ]


VARIANTS: Mapping[str, Callable[[Asked, float], Sequence[Scored]]] = {
    f"text, {_MANY} candidates": added("text", _MANY),
    f"text, {_FEW} candidates": added("text", _FEW),
    "text, instead of the cosine": replaced,
    "text, only tokens without an exact match": added("not literal", _MANY),
    f"best window of {_WINDOW} words": added("window", _MANY),
    "path and symbol": added("names", _MANY),
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path)
    parser.add_argument("corpora", type=Path)
    parser.add_argument("--homes", type=Path, help="Folder to keep indexes in.")
    arguments = parser.parse_args()
    with TemporaryDirectory() as temporary:
        asked = list(_asked(read_questions(arguments.bench), arguments.corpora, arguments.homes or Path(temporary)))
    before = np.array([one.score(one.found) for one in asked])
    members = {name: np.array([name in one.question.columns for one in asked]) for name in SETS}
    print("hybrid", {name: round(float(before[inside].mean()), 4) for name, inside in members.items()})
    for name, change in VARIANTS.items():
        tried = [before, *(np.array([one.score(change(one, weight)) for one in asked]) for weight in GRID)]
        after = _chosen(asked, tried, members["files"])
        cells = []
        for inside in members.values():
            low, high = interval((after - before)[inside])
            cells.append(f"{(after - before)[inside].mean():+.3f} ({low:+.3f} {high:+.3f})")
        print(f"{name:<36}" + "  ".join(cells), flush=True)
        for weight, values in zip(GRID, tried[1:], strict=True):
            each = "".join(f"{(values - before)[inside].mean():>+24.3f}" for inside in members.values())
            print(f"  {weight:<14g}{each}")
    costs = 1000 * np.array([one.cost_s for one in asked])
    print(f"CPU ms of {_MANY} candidates: {np.median(costs):.1f}, 95th percentile {np.quantile(costs, 0.95):.1f}")


def _chosen(asked: Sequence[Asked], tried: Sequence[np.ndarray], is_file: np.ndarray) -> np.ndarray:
    """Return each question's score with the weight that is best for the files of other repositories."""
    repositories = np.array([one.question.repository for one in asked])
    after = tried[0].copy()
    for repository in sorted(set(repositories)):
        inside = repositories == repository
        best = max(tried, key=lambda values: float(values[is_file & ~inside].mean()))
        after[inside] = best[inside]
    return after


def _asked(questions: Sequence[Question], corpora: Path, homes: Path) -> Iterator[Asked]:
    by_repository = defaultdict(list)
    for question in questions:
        by_repository[question.repository].append(question)
    for repository, of_it in by_repository.items():
        layout = Layout(homes / repository)
        is_there = layout.current.exists()
        reader = open_reader(layout) if is_there else index(corpora / repository, homes / repository).reader
        rarity = _rarity(reader)
        found = (_found(reader, question) for question in of_it)
        yield from (_with_late(one, rarity) for one in found if one.found)


def _rarity(reader: Reader) -> Values:
    """Return the inverse document frequency of each token in the chunks of an index: shape (vocabulary,)."""
    chunks = reader.table.search().select([*COLUMNS]).limit(None).to_arrow()
    frequency = np.bincount(_MODEL.bags(embed_texts(chunks).to_pylist()).tokens, minlength=len(_LENGTHS))
    rarity: Values = np.log1p((chunks.num_rows - frequency + 0.5) / (frequency + 0.5)).astype(np.float32)
    return rarity


def _found(reader: Reader, question: Question) -> Asked:
    """Return the candidates that a hybrid search ranks."""
    query = understand(question.text)
    pool = candidates.Pool(reader, Filters(), _POOL)
    rankings = {
        "bm25": candidates.bm25(pool, query, WEIGHTS) or candidates.similar_names(pool, query),
        "vector": candidates.vector(pool, StaticEmbedder().embed_query(question.text)),
    }
    shares = {"bm25": 1 - WEIGHTS.vector, "vector": WEIGHTS.vector}
    found = fuse(rankings, shares, _POOL, WEIGHTS, _RANKED)
    rows = rows_of(reader, found)
    found = list(keep_one_translation(question.text, query.intent, found, rows))
    return Asked(question, query, Wording.of(query, reader), found, {one.chunk_id: rows[one.chunk_id] for one in found})


def _with_late(asked: Asked, rarity: Values) -> Asked:
    """Return a question with the values of its candidates."""
    of_text, of_terms = (_MODEL.bags([text]).tokens for text in (asked.question.text, " ".join(asked.query.terms)))
    tokens = np.intersect1d(of_text, of_terms)  # without function words
    weights = _LENGTHS[tokens] * rarity[tokens]
    weights /= weights.sum() or 1.0
    rows = [asked.rows[item.chunk_id] for item in asked.found]
    columns = pa.schema([CHUNKS.field(name) for name in COLUMNS])
    texts: list[str] = embed_texts(pa.Table.from_pylist(rows, schema=columns)).to_pylist()
    start = time.process_time()
    _maxima(tokens, texts[:_MANY])
    asked.cost_s = time.process_time() - start
    highest = _maxima(tokens, texts)
    windows, owners = _windows(texts)
    by_window = np.zeros(len(texts), np.float32)
    np.maximum.at(by_window, owners, weights @ _maxima(tokens, windows))
    names = _maxima(tokens, [f"{row['path']} {row['qualified_name'] or ''}" for row in rows])
    asked.late = {
        "text": weights @ highest,
        "not literal": weights @ np.where(highest > _SAME, 0, highest),
        "window": by_window,
        "names": weights @ names,
    }
    return asked


def _maxima(tokens: NDArray[np.int64], texts: Sequence[str]) -> Values:
    """Return the highest cosine of each token with the tokens of each text, at least 0: shape (tokens, texts)."""
    bags = _MODEL.bags(texts)
    distinct, places = np.unique(bags.tokens, return_inverse=True)
    cosines = (_DIRECTIONS[tokens] @ _DIRECTIONS[distinct].T)[:, places]
    of_texts = [cosines[:, begin:end].max(axis=1, initial=0) for begin, end in pairwise(bags.begins)]
    return np.stack(of_texts, axis=1)


def _windows(texts: Sequence[str]) -> tuple[list[str], NDArray[np.int64]]:
    """Return windows over the words of texts, and the text index of each window."""
    found = words(texts)
    begins = np.searchsorted(found.texts, np.arange(len(texts) + 1))
    windows, owners = [], []
    for text, (begin, end) in enumerate(pairwise(begins.tolist())):
        own: list[bytes] = found.values[begin:end].to_pylist()
        for first in range(0, max(1, len(own) - _WINDOW // 2), _WINDOW // 2):
            windows.append(b" ".join(own[first : first + _WINDOW]).decode("utf-8", "replace"))
            owners.append(text)
    return windows, np.array(owners)


if __name__ == "__main__":
    main()
