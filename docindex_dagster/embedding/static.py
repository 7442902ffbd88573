"""The default provider: a static model of our own, whose weights lie in the package. No network, no key, no GPU.

A text's vector is the sum of its tokens' rows, each times the square root of how often it occurs, at unit length. It is
summed in double precision: in single precision, the order in which a processor adds would show in what is stored, and
machines that share an index would not agree on its version.
`training/` makes the rows; docs/model.md says of what.
"""

import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import pairwise
from threading import Lock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from docindex_dagster.core.errors import EmbeddingError
from docindex_dagster.core.tokenizer import words
from docindex_dagster.embedding.protocol import Vectors

_BATCH = 256  # texts: what is in memory at once is a few hundred MiB at most, and fewer caches are missed
_LONGEST_WORD = 64  # characters that are looked at of a word that has no row of its own
_MOST_KEPT = 100_000  # pieces of such words
_loading = Lock()
_FEW = 2_000  # words that are looked up one by one: to look up many, the whole vocabulary is hashed first
FILE = "static.npz"
SHA256 = "e932ff3d10bf4956225179ae714e37bc528a61d1a41cc508af48df6092567c53"
# Other weights give other vectors, which must not meet these.
NAME = f"docindex-static-{SHA256[:8]}"
DIMENSION = 256


@cache
def load_weights() -> tuple[tuple[str, ...], Vectors]:
    """The tokens and their rows, float32 of shape (tokens, 256).

    Raises:
        EmbeddingError: the file is not the one that belongs to this version.
    """
    data = (files("docindex_dagster.embedding") / FILE).read_bytes()
    if hashlib.sha256(data).hexdigest() != SHA256:
        raise EmbeddingError(f"{FILE}, the weights of the static model, is damaged: install docindex again")
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        tokens = arrays["tokens"].tobytes().decode().split("\n")
        rows: Vectors = arrays["rows"] * arrays["scales"].astype(np.float32)[:, None]
    return tuple(tokens), rows


class StaticEmbedder:
    """Token vectors trained on code and documentation, pooled."""

    name = NAME
    dimension = DIMENSION
    max_tokens = 1 << 20  # of any length: a token more costs a row of a table
    batch_size = 4096  # a fifth of a second of work
    concurrency = 1

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Vectors of shape (len(texts), 256) and unit length.

        A text without a single known token has no direction of its own; it gets a fixed one, since a zero vector could
        never be found nor verified.

        Raises:
            EmbeddingError: the weights are damaged.
        """
        vectors = np.empty((len(texts), self.dimension), np.float64)
        for start in range(0, len(texts), _BATCH):
            batch = texts[start : start + _BATCH]
            vectors[start : start + len(batch)] = _model().pooled(batch)
        vectors[~vectors.any(axis=1), 0] = 1.0
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors.astype(np.float32)

    def embed_query(self, text: str) -> Vectors:
        """A vector of shape (256,) and unit length.

        Raises:
            EmbeddingError: the weights are damaged.
        """
        vector: Vectors = self.embed_documents([text])[0]
        return vector


@dataclass(frozen=True, slots=True)
class Bags:
    """The distinct tokens of texts with their weights, end to end; a text's are those from its begin to the next."""

    tokens: NDArray[np.int64]  # positions in the vocabulary: shape (tokens,)
    weights: NDArray[np.float32]  # shape (tokens,)
    begins: NDArray[np.int64]  # shape (texts + 1,): the last is the end


@dataclass(frozen=True, slots=True)
class StaticModel:
    """A vocabulary and a row for each of its tokens. A token that begins with `##` goes on inside a word."""

    vocabulary: Sequence[str]
    rows: Vectors  # of any length: shape (vocabulary, dimension)
    _tokens: pa.BinaryArray = field(init=False)
    _ids: dict[str, int] = field(init=False)
    _pieces: dict[bytes, NDArray[np.int32]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_tokens", pa.array([token.encode() for token in self.vocabulary], pa.binary()))
        object.__setattr__(self, "_ids", {token: index for index, token in enumerate(self.vocabulary)})

    def pooled(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """The sums of rows, float64 of shape (len(texts), dimension); zero where no token is known."""
        bags = self.bags(texts)
        found = np.empty((len(texts), self.rows.shape[1]), np.float64)
        for text, (begin, end) in enumerate(pairwise(bags.begins)):
            found[text] = bags.weights[begin:end] @ self.rows[bags.tokens[begin:end]].astype(np.float64)
        return found

    def bags(self, texts: Sequence[str], most: int | None = None) -> "Bags":
        """The tokens of each text, and the square root of how often it occurs; of each text `most` are looked at."""
        text, token = self._occurrences(texts)
        if most is not None:
            is_early = np.arange(len(text)) - np.searchsorted(text, text) < most
            text, token = text[is_early], token[is_early]
        key, count = np.unique(text * len(self.vocabulary) + token, return_counts=True)
        text, token = np.divmod(key, len(self.vocabulary))
        return Bags(token, np.sqrt(count, dtype=np.float32), np.searchsorted(text, np.arange(len(texts) + 1)))

    def _occurrences(self, texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Of each token of the texts, the position of its text, and its own in the vocabulary: each (tokens,)."""
        found = words(texts)
        encoded = found.values.dictionary_encode()
        distinct = encoded.dictionary
        known = self._known(distinct)
        pieces = [self._cut(word) for word in distinct.filter(pa.array(known < 0)).to_pylist()]
        tokens = np.concatenate([known[known >= 0], *pieces])
        # The tokens of each distinct word, which is itself one if it is known.
        counts = np.ones(len(distinct), np.int64)
        counts[known < 0] = [len(piece) for piece in pieces]
        begins = np.empty(len(distinct), np.int64)
        begins[known >= 0] = np.arange(np.count_nonzero(known >= 0))
        begins[known < 0] = np.count_nonzero(known >= 0) + _begins(counts[known < 0])
        word = encoded.indices.to_numpy()
        repeated = counts[word]
        within = np.arange(repeated.sum()) - np.repeat(_begins(repeated), repeated)
        return np.repeat(found.texts, repeated), tokens[np.repeat(begins[word], repeated) + within]

    def _known(self, words: pa.BinaryArray) -> NDArray[np.int32]:
        """The position of each word in the vocabulary, -1 where it is none: shape (words,)."""
        if len(words) > _FEW:
            found: NDArray[np.int32] = pc.fill_null(pc.index_in(words, self._tokens), -1).to_numpy()
            return found
        # Bytes that are no text become characters that no token has.
        each = (self._ids.get(word.decode("utf-8", "surrogateescape"), -1) for word in words.to_pylist())
        return np.fromiter(each, np.int32, len(words))

    def _cut(self, word: bytes) -> NDArray[np.int32]:
        """The longest tokens that a word begins with, one after the other (WordPiece): shape (tokens,).

        What none begins is left out.
        """
        kept = self._pieces.get(word)
        if kept is not None:
            return kept
        text = word.decode("utf-8", "ignore")[:_LONGEST_WORD]
        found = []
        at, mark = 0, ""
        while at < len(text):
            end = next((end for end in range(len(text), at, -1) if mark + text[at:end] in self._ids), None)
            if end is not None:
                found.append(self._ids[mark + text[at:end]])
            at, mark = end or at + 1, "##"
        pieces = np.array(found, np.int32)
        if len(self._pieces) < _MOST_KEPT:
            self._pieces[word] = pieces
        return pieces


def _begins(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each of some runs begins that lie end to end: shape (runs,), as their counts."""
    begins: NDArray[np.int64] = np.cumsum(counts) - counts
    return begins


def load_model() -> None:
    """Load the model, which takes a fifth of a second, before a text is embedded.

    Raises:
        EmbeddingError: its weights are damaged.
    """
    _model()


def _model() -> StaticModel:
    with _loading:  # so that another thread that needs it meanwhile waits, instead of loading it as well
        return _loaded()


@cache
def _loaded() -> StaticModel:
    return StaticModel(*load_weights())
