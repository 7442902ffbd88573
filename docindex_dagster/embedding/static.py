"""The default provider: docindex's own static model, bundled with the package. No network, no key, no GPU.

The vector of a text is the sum of its tokens' rows, each weighted by the square root of the token's count, normalized
to unit length. The sum uses double precision. With single precision, the stored values would depend on the processor's
order of addition, and machines that share an index would disagree on its version.
`training/` produces the rows; docs/explanation/static-model.md describes the training data.
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

_BATCH = 256  # texts: uses at most a few hundred MiB of memory, and causes fewer CPU cache misses
_MAX_WORD = 64  # characters of an unknown word that are split into tokens
_MAX_CACHED_WORDS = 100_000  # cached splits of unknown words
_loading = Lock()
_BULK_THRESHOLD = 2_000  # words: below this, look up each one, since a bulk lookup hashes the entire vocabulary
FILE = "static.npz"
SHA256 = "e932ff3d10bf4956225179ae714e37bc528a61d1a41cc508af48df6092567c53"
# Different weights produce incompatible vectors, so they need a different name.
NAME = f"docindex-static-{SHA256[:8]}"
DIMENSION = 256


@cache
def load_weights() -> tuple[tuple[str, ...], Vectors]:
    """Return the tokens and their rows, float32 of shape (tokens, 256).

    Raises:
        EmbeddingError: the file does not match this version.
    """
    data = (files("docindex_dagster.embedding") / FILE).read_bytes()
    if hashlib.sha256(data).hexdigest() != SHA256:
        raise EmbeddingError(f"{FILE}, the weights of the static model, is damaged. Reinstall docindex")
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        tokens = arrays["tokens"].tobytes().decode().split("\n")
        rows: Vectors = arrays["rows"] * arrays["scales"].astype(np.float32)[:, None]
    return tuple(tokens), rows


class StaticEmbedder:
    """Pooled token vectors, trained on code and documentation."""

    name = NAME
    dimension = DIMENSION
    max_tokens = 1 << 20  # effectively unlimited: an extra token costs only one table row
    batch_size = 4096  # about 0.2 seconds of work
    concurrency = 1

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return vectors of shape (len(texts), 256) and unit length.

        A text without any known token gets a fixed vector, since a zero vector could be neither found nor verified.

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
        """Return a vector of shape (256,) and unit length.

        Raises:
            EmbeddingError: the weights are damaged.
        """
        vector: Vectors = self.embed_documents([text])[0]
        return vector


@dataclass(frozen=True, slots=True)
class Bags:
    """The distinct tokens of texts and their weights, concatenated; text i spans begins[i] to begins[i + 1]."""

    tokens: NDArray[np.int64]  # positions in the vocabulary: shape (tokens,)
    weights: NDArray[np.float32]  # shape (tokens,)
    begins: NDArray[np.int64]  # shape (texts + 1,): the last value is the total number of tokens


@dataclass(frozen=True, slots=True)
class StaticModel:
    """A vocabulary with a row per token. A token that starts with `##` continues a word."""

    vocabulary: Sequence[str]
    rows: Vectors  # shape (vocabulary, dimension), not normalized
    _tokens: pa.BinaryArray = field(init=False)
    _ids: dict[str, int] = field(init=False)
    _pieces: dict[bytes, NDArray[np.int32]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_tokens", pa.array([token.encode() for token in self.vocabulary], pa.binary()))
        object.__setattr__(self, "_ids", {token: index for index, token in enumerate(self.vocabulary)})

    def pooled(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the weighted sums of rows, float64 of shape (len(texts), dimension); zero if no token is known."""
        bags = self.bags(texts)
        sums = np.empty((len(texts), self.rows.shape[1]), np.float64)
        for text, (begin, end) in enumerate(pairwise(bags.begins)):
            sums[text] = bags.weights[begin:end] @ self.rows[bags.tokens[begin:end]].astype(np.float64)
        return sums

    def bags(self, texts: Sequence[str], most: int | None = None) -> "Bags":
        """Return the tokens of each text with the square root of their counts, using its first `most` tokens."""
        text, token = self._occurrences(texts)
        if most is not None:
            is_early = np.arange(len(text)) - np.searchsorted(text, text) < most
            text, token = text[is_early], token[is_early]
        key, count = np.unique(text * len(self.vocabulary) + token, return_counts=True)
        text, token = np.divmod(key, len(self.vocabulary))
        return Bags(token, np.sqrt(count, dtype=np.float32), np.searchsorted(text, np.arange(len(texts) + 1)))

    def _occurrences(self, texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return, for each token occurrence, its text's position and its vocabulary position: shape (tokens,) each."""
        found = words(texts)
        encoded = found.values.dictionary_encode()
        distinct = encoded.dictionary
        known = self._known(distinct)
        pieces = [self._split(word) for word in distinct.filter(pa.array(known < 0)).to_pylist()]
        tokens = np.concatenate([known[known >= 0], *pieces])
        # The tokens of each distinct word; a known word is itself a token.
        counts = np.ones(len(distinct), np.int64)
        counts[known < 0] = [len(piece) for piece in pieces]
        begins = np.empty(len(distinct), np.int64)
        begins[known >= 0] = np.arange(np.count_nonzero(known >= 0))
        begins[known < 0] = np.count_nonzero(known >= 0) + _run_starts(counts[known < 0])
        word = encoded.indices.to_numpy()
        repeated = counts[word]
        within = np.arange(repeated.sum()) - np.repeat(_run_starts(repeated), repeated)
        return np.repeat(found.texts, repeated), tokens[np.repeat(begins[word], repeated) + within]

    def _known(self, words: pa.BinaryArray) -> NDArray[np.int32]:
        """Return the position of each word in the vocabulary, -1 for unknown words: shape (words,)."""
        if len(words) > _BULK_THRESHOLD:
            found: NDArray[np.int32] = pc.fill_null(pc.index_in(words, self._tokens), -1).to_numpy()
            return found
        # Invalid UTF-8 decodes to characters that no token contains.
        each = (self._ids.get(word.decode("utf-8", "surrogateescape"), -1) for word in words.to_pylist())
        return np.fromiter(each, np.int32, len(words))

    def _split(self, word: bytes) -> NDArray[np.int32]:
        """Split a word greedily into its longest tokens (WordPiece): shape (tokens,).

        Skips characters that start no token.
        """
        cached = self._pieces.get(word)
        if cached is not None:
            return cached
        text = word.decode("utf-8", "ignore")[:_MAX_WORD]
        tokens = []
        start, prefix = 0, ""
        while start < len(text):
            end = next((end for end in range(len(text), start, -1) if prefix + text[start:end] in self._ids), None)
            if end is not None:
                tokens.append(self._ids[prefix + text[start:end]])
            start, prefix = end or start + 1, "##"
        pieces = np.array(tokens, np.int32)
        if len(self._pieces) < _MAX_CACHED_WORDS:
            self._pieces[word] = pieces
        return pieces


def _run_starts(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the start of each of several concatenated runs: shape (runs,), like their counts."""
    begins: NDArray[np.int64] = np.cumsum(counts) - counts
    return begins


def load_model() -> None:
    """Load the model before the first text is embedded; takes about 0.2 seconds.

    Raises:
        EmbeddingError: its weights are damaged.
    """
    _model()


def _model() -> StaticModel:
    with _loading:  # a second thread waits instead of loading the model again
        return _loaded()


@cache
def _loaded() -> StaticModel:
    return StaticModel(*load_weights())
