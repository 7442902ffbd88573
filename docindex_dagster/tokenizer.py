"""The tokenizer of the default embedding model: token counts for chunk sizes, and the model's own input.

It and its weights lie inside the `wordllama` wheel, so that nothing is fetched. That package itself is not imported.
"""

from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_WORD_START = "\u2581"  # stands for a space in the tokenizer's vocabulary
_NEWLINE = "<0x0A>"
_WORDS = 64  # tokenizing takes longer than in proportion to the length of a text

MODEL_NAME = "wordllama-l2-supercat-256"

TokenCounter = Callable[[Sequence[str]], list[int]]


def model_file(relative: str) -> Path:
    """A file of the installed model."""
    spec = find_spec("wordllama")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("wordllama is not installed, though docindex depends on it: install docindex again")
    return Path(spec.submodule_search_locations[0]) / relative


@cache
def load_tokenizer() -> "Tokenizer":
    """The tokenizer, loaded once a process. It takes texts that `normalize` has prepared."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(model_file("tokenizers/l2_supercat_tokenizer_config.json")))
    tokenizer.normalizer = None
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def normalize(texts: Sequence[str]) -> list[str]:
    """What the tokenizer's own normalizer does, in about half of the time that tokenizing takes with it."""
    return [_WORD_START + text.replace(" ", _WORD_START) if text else "" for text in texts]


def count_tokens(texts: Sequence[str]) -> list[int]:
    """Tokens of each text: as many as the tokenizer gives, in half of its time.

    No token of the vocabulary spans the place before a run of spaces or beside a newline. So a text has the tokens of
    its words together, and of all the texts' words each is tokenized once.
    """
    words, begins = _words(texts)
    distinct = words.dictionary_encode()
    counts = _count_in_words(distinct.dictionary.to_pylist())[distinct.indices.to_numpy()]
    totals = np.concatenate([[0], np.cumsum(counts)])
    numbers: list[int] = np.diff(totals[begins]).tolist()
    return numbers


def _words(texts: Sequence[str]) -> tuple[pa.LargeStringArray, np.ndarray]:
    """The words of all texts, and the number of words before each text and after the last.

    A word is a newline, or a run of spaces with what follows it up to the next space or newline.
    """
    encoded = [b" " + text.replace(_WORD_START, " ").encode() if text else b"" for text in texts]
    data = b"".join(encoded)
    characters = np.frombuffer(data, np.uint8)
    is_space, is_newline = characters == ord(" "), characters == ord("\n")
    is_begin = is_space | is_newline
    is_begin[1:] &= ~is_space[:-1] | is_newline[1:]
    is_begin[1:] |= is_newline[:-1]
    text_begins = np.cumsum([0, *map(len, encoded)])
    is_begin[text_begins[:-1][text_begins[:-1] < len(data)]] = True
    word_begins = np.flatnonzero(is_begin)
    offsets = np.append(word_begins, len(data)).astype(np.int64)
    words = pa.LargeStringArray.from_buffers(len(word_begins), pa.py_buffer(offsets), pa.py_buffer(data))
    return words, np.searchsorted(word_begins, text_begins)


def _count_in_words(words: Sequence[str]) -> np.ndarray:
    """Tokens of each word. Many are tokenized as one text, a line each, since a text costs more than its tokens."""
    is_newline = np.array([word == "\n" for word in words], bool)
    lines = ["" if word == "\n" else word.replace(" ", _WORD_START) for word in words]
    texts = ["\n".join([*lines[start : start + _WORDS], ""]) for start in range(0, len(lines), _WORDS)]
    encodings = load_tokenizer().encode_batch_fast(texts, add_special_tokens=False)
    ids = np.concatenate([np.empty(0, np.int64), *(np.array(encoding.ids) for encoding in encodings)])
    ends = np.flatnonzero(ids == load_tokenizer().token_to_id(_NEWLINE))
    counts: np.ndarray = np.diff(ends, prepend=-1) - 1 + is_newline
    return counts
