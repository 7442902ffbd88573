"""The weights of the signals that decide the order of results.

The weights are few and round. `python -m benchmarks.quality` measures the effect of each, on questions about files and
passages, and how much the results depend on the repositories used for tuning. For the weights of graph edges, see
`graph/links.py`; for the number of ranked candidates, `search/engine.py`.
"""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight of each signal; the comments name the value that disables it."""

    # BM25: a term in this field, relative to a term in the text. 0 disables the field.
    symbols: float = 0.75
    headings: float = 1.0
    path_terms: float = 0.25
    # Fusion: the weight of vectors, the rest being that of BM25; and the weight of a chunk's score as a fraction of the
    # best score, relative to its reciprocal rank.
    vector: float = 0.35
    score: float = 4.0  # 0: ranks only
    rrf_k: float = 60.0  # of reciprocal rank fusion: larger values favor the top ranks less
    # Graph: its weight relative to vectors in its own mode; in other modes, the maximum boost of a chunk that the graph
    # reaches, as a fraction of the best score (disabled by 0).
    reached: float = 0.3
    graph: float = 0.0
    source: float = 1.0  # boost for a chunk of the source that the query names; 0
    # Code-aware signals.
    definition: float = 0.5  # as a fraction of the best score, for a chunk that defines the requested symbol; 0
    path: float = 0.4  # boost for a file if all words of its name are in the query; 0
    test: float = 0.3  # factor for tests, unless the query asks for tests; 1
    alone: float = 2.0  # times the share of query words that occur in no code: reduces the penalty of tests and docs; 0
    # Factors for documents and settings. If the query does not ask for documentation, `stray` applies if no other best
    # candidate is one, `fitting` if all are, with interpolation in between. If it does ask, `answer` applies to a
    # document with all words of the question, and decreases with the square of the share that it has.
    stray: float = 0.6  # 1
    fitting: float = 1.2  # 1
    answer: float = 2.0  # 1
    heading: float = 0.5  # boost for a section whose heading equals the query; 0
    file: float = 0.2  # as a fraction of the best score, for the best chunk of the file with the highest total score; 0
    repeat: float = 0.9  # factor for each additional chunk of a file; 1
    # The views of a report, see `search/locate.py`: only their ratios matter. 0
    title: float = 2.0
    words: float = 1.0
    names: float = 1.5
    path_words: float = 1.0
    identifiers: float = 1.0
    prose: float = 1.5  # the vector of title and prose
    mention: float = 1.0
    history: float = 1.0


WEIGHTS = Weights()


def for_reports(weights: Weights) -> Weights:
    """Return the weights for a report, which has the words of many names by chance, and wants code that will change."""
    return replace(weights, path=0.0, alone=0.0, heading=0.0, file=0.0, test=0.5, stray=0.5, fitting=0.5)


# A context may contain many chunks of one file, and tests show how code is used:
# `python -m benchmarks.questions`.
WEIGHTS_OF_CONTEXT = replace(WEIGHTS, repeat=1.0, test=0.7)


@dataclass(frozen=True, slots=True)
class Closeness:
    """The threshold for weak results, based on the weighted share of query words that occur nowhere.

    `python -m benchmarks.quality.closeness BENCH CORPORA` determined the values and prints their error rates.
    """

    share: float = 0.62  # weak above this share, if there is no cosine or the model is unknown
    # With the cosine of the nearest chunk: weak if the share exceeds slope * cosine - offset. None: ignore the cosine.
    slope: float | None = None
    offset: float = 0.0

    def is_weak(self, share: float, cosine: float | None) -> bool:
        """Return whether no result is close to the query."""
        if cosine is None or self.slope is None:
            return share > self.share
        return share > max(0.0, self.slope * cosine - self.offset)


def closeness_of(model: str) -> Closeness:
    """Return the thresholds for a model by name, since cosines of different models are not comparable."""
    return _CLOSENESS.get(model, Closeness())


_CLOSENESS = {"docindex-static-e932ff3d": Closeness(slope=2.1, offset=0.1)}
