"""Word splitting and token counting, vectorized over batches of texts.

Words are the components of identifiers: `parseHTTPHeader_2` consists of parse, http, header and 2. The static model
has vectors for words.

Tokens are the unit of sizes and budgets. A token is a word, a run of punctuation or a line end, with one token for
every four bytes or part of them. Counts approximate those of an LLM tokenizer without loading a vocabulary: for nine
in ten of 6,000 chunks of code and documents, they are 0.79 to 1.18 times Llama 2's, and 0.97 times in total.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

TokenCounter = Callable[[Sequence[str]], list[int]]

# Part of the chunking version, since different counts give different chunks.
TOKENS_VERSION = "words-1"

_END, _SPACE, _PUNCTUATION, _LOWER, _UPPER, _DIGIT = range(6)
_BYTES_PER_TOKEN = 4
# Scripts written without spaces, where each character is a word.
_UNSPACED = re.compile(r"([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff])")
_NON_WORD = re.compile(r"[^\w\s\x00-\x7f]")


def _classes() -> NDArray[np.uint8]:
    """Return the class of each byte, shape (256,)."""
    table = np.full(256, _PUNCTUATION, np.uint8)
    table[0] = _END  # terminates each text
    table[np.frombuffer(b"\t\n\v\f\r ", np.uint8)] = _SPACE
    table[np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", np.uint8)] = _LOWER
    table[128:] = _LOWER  # non-ASCII letters, which `_letters` lower-cases
    table[np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", np.uint8)] = _UPPER
    table[np.frombuffer(b"0123456789", np.uint8)] = _DIGIT
    return table


_CLASSES = _classes()


@dataclass(frozen=True, slots=True)
class Words:
    """The words of several texts, in order."""

    values: pa.BinaryArray  # lower case, UTF-8
    texts: NDArray[np.int64]  # index of each word's text, shape (words,)


def words(texts: Sequence[str]) -> Words:
    """Split texts into words at whitespace, punctuation, capitals and digits."""
    data, ends = _joined([text if text.isascii() else _letters(text) for text in texts])
    classes = _CLASSES[data]
    begins, is_in_word = _word_begins(classes)
    small = (data | ((classes == _UPPER).astype(np.uint8) << 5))[is_in_word]
    starts = np.flatnonzero(begins)
    # Without the bytes between them, words are contiguous.
    offsets = np.append(np.cumsum(is_in_word, dtype=np.int32)[starts] - 1, len(small)).astype(np.int32)
    values = pa.BinaryArray.from_buffers(pa.binary(), len(starts), [None, pa.py_buffer(offsets), pa.py_buffer(small)])
    return Words(values, np.searchsorted(ends, starts, side="right"))


def count_tokens(texts: Sequence[str]) -> list[int]:
    """Estimate how many tokens each text has for an LLM.

    A text has at most as many tokens as its parts together, plus one for each word split at a camel-case hump
    (AA|bbbb is A, Abbbb).
    """
    data, ends = _joined([text if text.isascii() else _spaced(text) for text in texts])
    classes = _CLASSES[data]
    begins, is_in_word = _word_begins(classes)
    is_punctuation = classes == _PUNCTUATION
    begins |= is_punctuation & ~_after(is_punctuation)
    starts = np.flatnonzero(begins)
    # A run ends before the next run or whitespace.
    is_end = (is_in_word | is_punctuation) & np.append(begins[1:] | (classes[1:] <= _SPACE), True)
    lengths = np.flatnonzero(is_end) - starts + 1
    line_ends = np.flatnonzero((data == ord("\n")) & ~_after(classes == _SPACE))
    counted = np.bincount(
        np.searchsorted(ends, starts, side="right"), -(-lengths // _BYTES_PER_TOKEN), minlength=len(texts)
    )
    counted += np.bincount(np.searchsorted(ends, line_ends, side="right"), minlength=len(texts) + 1)[: len(texts)]
    numbers: list[int] = counted.astype(np.int64).tolist()
    return numbers


def _joined(texts: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the NUL-terminated bytes of all texts, shape (bytes,), and their end offsets, shape (texts,)."""
    encoded = [text.encode("utf-8", "replace") for text in texts]
    data = np.frombuffer(b"\0".join([*encoded, b""]), np.uint8)
    return data, np.cumsum([len(text) + 1 for text in encoded], dtype=np.int64)


def _letters(text: str) -> str:
    """Lower-case the non-ASCII letters of a text, and replace its other non-ASCII characters with spaces."""
    spaced = _spaced(_NON_WORD.sub(" ", text))
    return "".join(character if character < "\x80" else character.lower() for character in spaced)


def _spaced(text: str) -> str:
    return _UNSPACED.sub(r" \1 ", text)


def _word_begins(classes: NDArray[np.uint8]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return masks of the bytes where words start and of those inside words, each with the shape of the classes."""
    is_in_word = classes >= _LOWER
    before = np.concatenate([[_END], classes[:-1]])
    after = np.append(classes[1:], _END)
    is_digit, is_upper = classes == _DIGIT, classes == _UPPER
    is_hump = is_upper & ((before == _LOWER) | ((before == _UPPER) & (after == _LOWER)))  # fooBar, HTTPServer
    return is_in_word & ((before < _LOWER) | ((before == _DIGIT) != is_digit) | is_hump), is_in_word


def _after(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Shift a mask by one byte: each value is that of the preceding byte. The shape stays the same."""
    return np.concatenate([[False], mask[:-1]])
