"""The weights of the signals that decide the order of results.

They are few and round. `python -m benchmarks.quality` measures what each is worth, on questions for files and for
passages, and how much the figures hang on the repositories by which they were chosen. How far each edge of the graph
leads stands in `graph/walk.py`, how many candidates are ranked in `search/engine.py`.
"""

from dataclasses import dataclass


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
    path: float = 0.2  # more, for a file whose name's words are all in the query; 0
    test: float = 0.3  # times, for a test, when tests are not asked for; 1
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
