"""Search for the code to change, from a bug report: several views of the report, fused by file.

Chunks are ranked by the title, by all words, by identifiers and by the vector of title and prose. Files also gain from
being mentioned (in a traceback, as a path, or in a dotted name), and from earlier commits whose messages resemble the
report. The best chunk of a file represents it: it also receives what other chunks of the file contribute to each view.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from docindex_dagster.chunking.commits import changed_files
from docindex_dagster.core.schemas import COMMIT
from docindex_dagster.core.traces import spanned
from docindex_dagster.embedding.protocol import Vectors
from docindex_dagster.search import candidates
from docindex_dagster.search.candidates import Pool, Ranking
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.hits import rows_by_id
from docindex_dagster.search.model import Scored, Signal
from docindex_dagster.search.query import FUNCTION_WORDS, idf
from docindex_dagster.search.ranking import FOLDER_NAMES
from docindex_dagster.search.report import Report
from docindex_dagster.search.weights import Weights
from docindex_dagster.stores.analysis import stems, terms

File = tuple[str, str]
"""A source and a path."""
_MAX_TERMS = 150  # the most informative ones; more take longer without better results
POOL = 400  # chunks of each view
_COMMITS = 40  # earlier commits whose files gain
_MAX_NAMESAKES = 5  # a name that more files share mentions none of them
_TEXT, _SYMBOLS, _PATH = {"body": 1.0}, {"symbols": 1.0}, {"path_terms": 1.0}
# What a mention is worth: a path, a dotted name, a file name, the innermost frame.
_OF_PATH, _OF_NAME, _OF_FILE_NAME, _OF_FRAME = 1.0, 0.5, 0.3, 0.5


def rank_views(pool: Pool, text: str, report: Report, vector: Vectors | None) -> dict[str, Ranking]:
    """Return the ranking of chunks by each view that finds any.

    Args:
        pool: the candidates.
        text: the whole report.
        report: its parts.
        vector: of its title and prose: float32, shape (dimension,); None without a model.
    """
    title, words = _weighted(pool, terms(report.title)), _weighted(pool, terms(text))
    identifiers = dict.fromkeys((word.lower() for word in report.identifiers), 1.0)
    rankings = {
        "title": candidates.by_terms(pool, title, _TEXT),
        "words": candidates.by_terms(pool, words, _TEXT),
        "names": candidates.by_terms(pool, words, _SYMBOLS),
        "path_words": candidates.by_terms(pool, words, _PATH),
        "identifiers": candidates.by_terms(pool, identifiers, _TEXT),
    }
    if vector is not None:
        rankings["prose"] = candidates.vector(pool, vector)
    return {name: ranking for name, ranking in rankings.items() if ranking}


@spanned("locate")
def locate(
    pool: Pool, report: Report, rankings: Mapping[str, Ranking], weights: Weights, most: int, *, is_by_file: bool
) -> list[Scored]:
    """Return chunks, best first; the best one of each file has the score of the file: 0 to 1.

    Args:
        pool: the candidates.
        report: the parts of the report.
        rankings: of `rank_views`, for the same pool.
        weights: of the views.
        most: maximum number of chunks.
        is_by_file: whether to return only the best chunk of each file.
    """
    listed = _files(pool)
    values = {"mention": _mentioned(listed, report), "history": _changed_before(pool, report, listed)}
    total = sum(getattr(weights, name) for name in (*rankings, *values)) or 1.0
    shares = {name: getattr(weights, name) / total for name in (*rankings, *values)}
    found = [chunk_id for ranking in rankings.values() for chunk_id, _ in ranking]
    ids = [*dict.fromkeys([*found, *(listed[file] for of_files in values.values() for file in of_files)])]
    if not ids:
        return []
    position = {chunk_id: at for at, chunk_id in enumerate(ids)}
    views = [_View.of_chunks(name, ranking, position, shares[name], pool.limit) for name, ranking in rankings.items()]
    places = pool.reader.parts.values(ids, ("source", "path"))
    files = [(source, path) for source, path in (places[chunk_id] for chunk_id in ids)]
    views += [_View.of_files(name, of_name, files, shares[name]) for name, of_name in values.items()]
    return _best(ids, files, views, most, is_by_file=is_by_file)


def embedded_text(report: Report) -> str:
    """Return the text whose vector `locate` expects."""
    return f"{report.title}\n{report.prose}"


@dataclass(frozen=True, slots=True, eq=False)
class _View:
    """The contribution of a view to the score of each chunk: shape (chunks,)."""

    name: str
    contributions: NDArray[np.float64]
    found: Mapping[int, tuple[int, float]] = field(default_factory=dict)  # rank and score by position

    @classmethod
    def of_chunks(cls, name: str, ranking: Ranking, position: Mapping[str, int], share: float, limit: int) -> "_View":
        """Weigh each score as a fraction of the best. A full ranking may omit chunks as good as its last one."""
        best = max(ranking[0][1], 0.0) or 1.0
        last = max(ranking[-1][1], 0.0) if len(ranking) >= limit else 0.0
        contributions = np.full(len(position), share * last / best)
        found = {position[chunk_id]: (rank, score) for rank, (chunk_id, score) in enumerate(ranking, start=1)}
        contributions[[*found]] = [share * max(score, 0.0) / best for _, score in found.values()]
        return cls(name, contributions, found)

    @classmethod
    def of_files(cls, name: str, values: Mapping[File, float], files: Sequence[File], share: float) -> "_View":
        """Weigh the value of each chunk's file."""
        return cls(name, np.array([share * values.get(file, 0.0) for file in files]))

    def signal(self, at: int) -> Signal:
        """Return the contribution to a chunk."""
        return Signal(self.name, float(self.contributions[at]), *self.found.get(at, (None, None)))


def _best(
    ids: Sequence[str], files: Sequence[File], views: Sequence[_View], limit: int, *, is_by_file: bool
) -> list[Scored]:
    """Rank chunks by the sum over views, after lifting the best chunk of each file to the best of the file's chunks."""
    codes = np.unique([f"{source}\0{path}" for source, path in files], return_inverse=True)[1]
    own = np.stack([view.contributions for view in views], axis=1)  # (chunks, views)
    of_file = np.zeros((codes.max() + 1, len(views)))
    np.maximum.at(of_file, codes, own)
    scores = own.sum(axis=1)
    order = np.lexsort((ids, -scores))
    best = order[np.unique(codes[order], return_index=True)[1]]
    gains = np.zeros(len(ids))
    gains[best] = of_file[codes[best]].sum(axis=1) - scores[best]
    among = best if is_by_file else np.arange(len(ids))
    ranked = among[np.lexsort((np.array(ids)[among], -(scores + gains)[among]))][:limit]
    return [
        Scored.of(ids[at], [view.signal(at) for view in views if view.contributions[at]]).plus("file", float(gains[at]))
        for at in ranked.tolist()
    ]


def _weighted(pool: Pool, words: Iterable[str]) -> dict[str, float]:
    """Return the most informative terms, each weighted by how often it occurs."""
    counts = {word: 1 + math.log(count) for word, count in Counter(words).items() if word not in FUNCTION_WORDS}
    if len(counts) <= _MAX_TERMS:
        return counts
    searcher = pool.reader.searcher
    value = {
        word: counts[word] * idf(searcher.doc_freq("body", stem), searcher.num_docs)
        for word, stem in zip(counts, stems(tuple(counts)), strict=True)
    }
    return {word: counts[word] for word in sorted(counts, key=lambda word: -value[word])[:_MAX_TERMS]}


def _files(pool: Pool) -> dict[File, str]:
    """Return each file, and the id of its first chunk."""
    found: dict[File, str] = {}
    for part, rows in pool.reader.parts.chosen(pool.filters, pool.filters.to_mask):
        columns = pa.table({name: part.batch[name].take(pa.array(rows)) for name in ("source", "path", "chunk_id")})
        files = columns.group_by(["source", "path"], use_threads=False).aggregate([("chunk_id", "first")])
        pairs = zip(files["source"].to_pylist(), files["path"].to_pylist(), strict=True)
        for file, chunk_id in zip(pairs, files["chunk_id_first"].to_pylist(), strict=True):
            found.setdefault(file, chunk_id)
    return found


def _mentioned(listed: Iterable[File], report: Report) -> dict[File, float]:
    """Return how clearly the report mentions each file: 0 to 1."""
    by_name: dict[str, list[File]] = defaultdict(list)
    by_ending: dict[tuple[str, ...], list[File]] = defaultdict(list)
    for file in listed:
        *folders, name = file[1].lower().split("/")
        by_name[name].append(file)
        stem = name.partition(".")[0]
        by_ending[tuple((folders if stem.strip("_") in FOLDER_NAMES else [*folders, stem])[-2:])].append(file)
    values: dict[File, float] = defaultdict(float)
    for path in report.paths:
        length, files = _longest_match(by_name, path)
        _add(values, files, _OF_PATH if length > 1 else _OF_FILE_NAME)
    for names in report.names:
        lowered = [name.lower() for name in names]
        for pair in pairwise(lowered):
            _add(values, by_ending.get(pair, ()), _OF_NAME)
    depth = 0
    for frame in report.frames:
        length, files = _longest_match(by_name, frame.path)
        if files and (length > 1 or "/" not in frame.path):  # else a file of a library has the same name
            depth += 1
            _add(values, files, _OF_FRAME / depth)
    return {file: min(1.0, value) for file, value in values.items()}


def _add(values: dict[File, float], files: Sequence[File], worth: float) -> None:
    """Divide the worth of a mention among the files that it may mean."""
    if len(files) <= _MAX_NAMESAKES:
        for file in files:
            values[file] += worth / len(files)


def _longest_match(by_name: Mapping[str, Sequence[File]], path: str) -> tuple[int, list[File]]:
    """Return the files that share the most names at the end of a path, and the number of these names."""
    wanted = path.lower().strip("./~").split("/")
    shared = {file: _shared(file[1].lower().split("/"), wanted) for file in by_name.get(wanted[-1], ())}
    most = max(shared.values(), default=0)
    return most, [file for file, length in shared.items() if length == most]


def _shared(left: Sequence[str], right: Sequence[str]) -> int:
    """Return how many names two paths share at their ends."""
    pairs = zip(reversed(left), reversed(right), strict=False)
    return next((at for at, (one, other) in enumerate(pairs) if one != other), min(len(left), len(right)))


def _changed_before(pool: Pool, report: Report, listed: Iterable[File]) -> dict[File, float]:
    """Return how far the commits that resemble the report changed each file: 0 to 1."""
    within = Filters(sources=pool.filters.sources, source_types=(COMMIT,))
    words = _weighted(pool, terms(embedded_text(report)))
    ranking = candidates.by_terms(replace(pool, filters=within, limit=_COMMITS), words, _TEXT)
    rows = rows_by_id(pool.reader, [chunk_id for chunk_id, _ in ranking])
    known = frozenset(listed)
    values: dict[File, float] = {}
    for chunk_id, score in ranking:
        row = rows[chunk_id]
        files = known.intersection((row["source"], path) for path in changed_files(row["text"]))
        for file in files:  # a commit that changes many files says little about each
            values[file] = max(values.get(file, 0.0), score / math.sqrt(len(files)))
    most = max(values.values(), default=1.0)
    return {file: value / most for file, value in values.items()}
