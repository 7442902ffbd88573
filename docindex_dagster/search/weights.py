"""The weights of the signals that decide the order of results.

They are few and round. `python -m benchmarks.quality` measures what each is worth, on questions for files and for
passages, and how much the figures hang on the repositories by which they were chosen. How far each edge of the graph
leads stands in `graph/links.py`, how many candidates are ranked in `search/engine.py`.
"""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each signal counts; see each for the value that takes it out."""

    # BM25: a term in a field, beside one in the text. 0 takes a field out.
    symbols: float = 0.75
    headings: float = 1.0
    path_terms: float = 0.25
    # Relevance: the vectors' part, the rest being BM25's; and the share of the best score beside the reciprocal rank.
    vector: float = 0.35
    score: float = 4.0  # 0: ranks alone
    rrf_k: float = 60.0  # of reciprocal rank fusion: the larger, the less the first ranks stand out
    # The graph: its part beside the vectors in its own mode; and of the best score, at most, for what it leads to among
    # what other modes found, 0.
    reached: float = 0.3
    graph: float = 0.0
    source: float = 1.0  # more, for a chunk of the source that the query names; 0
    # Code-aware signals.
    definition: float = 0.5  # of the best score, for a chunk that defines the symbol that is asked for; 0
    path: float = 0.3  # more, for a file whose name's words are all in the query; 0
    test: float = 0.3  # times, for a test, when tests are not asked for; 1
    alone: float = 2.0  # times the share of the query that no code has: so much less a test or document stands back; 0
    # Times, for a document or setting. When documentation is not asked for: where nothing else that was found is one,
    # and where all is, with what lies between by their share. When it is asked for: for a document that has all words
    # of the question; less by the square of the share that it lacks.
    stray: float = 0.6  # 1
    fitting: float = 1.2  # 1
    answer: float = 2.0  # 1
    heading: float = 0.5  # more, for a section whose heading is the query, word for word; 0
    file: float = 0.2  # of the best score, for the best chunk of the file that has most of all scores; 0
    repeat: float = 0.9  # times, for each further chunk of a file; 1


WEIGHTS = Weights()
# What is read before an answer may be much of one file, and tests say how something is used:
# `python -m benchmarks.questions`.
WEIGHTS_OF_CONTEXT = replace(WEIGHTS, repeat=1.0, test=0.7)


@dataclass(frozen=True, slots=True)
class Closeness:
    """When an answer is weak: by the share of the query's words that occur nowhere, each weighed by how rare it is.

    `python -m benchmarks.quality.closeness BENCH CORPORA` chose the numbers, and prints how often they err.
    """

    share: float = 0.62  # more of the words is weak where no cosine tells, or none is known of the model
    # With the cosine of the nearest chunk: a share over `slope` times it, less `offset`, is weak. None: not asked.
    slope: float | None = None
    offset: float = 0.0

    def is_weak(self, share: float, cosine: float | None) -> bool:
        """Whether nothing that was found is close."""
        if cosine is None or self.slope is None:
            return share > self.share
        return share > max(0.0, self.slope * cosine - self.offset)


def closeness_of(model: str) -> Closeness:
    """That of a model, by its name: cosines of two models do not compare."""
    return _CLOSENESS.get(model, Closeness())


_CLOSENESS = {"docindex-static-e932ff3d": Closeness(slope=2.1, offset=0.1)}
