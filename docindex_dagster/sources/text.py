"""Decoding of file bytes to text."""

import codecs
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from unicodedata import category

from docindex_dagster.core.hashing import digest
from docindex_dagster.sources.paths import name_to_path, read_complete

_BOMS = (  # UTF-32 first, because its little-endian mark starts with the UTF-16 one
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CONTROLS = bytes(byte for byte in range(0x20) if byte not in b"\t\n\v\f\r\b\x1b") + b"\x7f"
_MAX_CONTROLS = 0.05  # random bytes contain 10 %, text in any encoding almost none
_MAX_DAMAGED = 0.1  # share of the non-ASCII characters in a file still treated as UTF-8
_SAMPLE = 1 << 16  # bytes examined
_LIKELY = ("cp1252", "iso8859_2")  # most common first
# A symbol inside a word, a control character, or an undefined byte.
_MISREAD = re.compile("[A-Za-zÀ-ž][¡-©«-´¶¸¹»-¿×÷][A-Za-zÀ-ž]|[\x80-\x9f\ufffd]")  # noqa: RUF001
# Encodings in actual use. The others, which hardly anyone writes, would fit about as well.
_COMMON = [
    *(
        "ascii",
        "big5",
        "cp1250",
        "cp1251",
        "cp1252",
        "cp1253",
        "cp1254",
        "cp1255",
        "cp1256",
        "cp1257",
        "cp1258",
        "cp866",
    ),
    *(
        "cp874",
        "cp932",
        "cp949",
        "euc_jp",
        "gb18030",
        "iso2022_jp",
        "iso8859_2",
        "iso8859_5",
        "iso8859_7",
        "iso8859_15",
    ),
    *("koi8_r", "koi8_u", "mac_cyrillic", "mac_roman"),
]
_LATIN_SHARE = 0.4  # of the characters of UTF-16 text; the text contains as many NUL bytes
_ASCII = bytes(range(0x20, 0x7F)) + b"\0\t\n\v\f\r"
_NOT_TEXT = {"Cc", "Cn", "Co", "Cs"}  # Unicode categories
_UNKNOWN = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True, slots=True)
class Decoded:
    """The text of a file, without a byte-order mark and always encodable as UTF-8."""

    text: str
    encoding: str
    is_lossy: bool  # invalid bytes were replaced, or the encoding is a last-resort guess


def read_document(root: Path, path: str, most: int = sys.maxsize) -> tuple[Decoded, str]:
    """Read the file that a table calls `path` below `root`; return its text and the hash of its bytes.

    Raises:
        OSError: The file is unreadable, reached through a symlink, or has more than `most` bytes.
    """
    data = read_complete(os.fsencode(root), name_to_path(path), most)
    return decode(data), digest(data)


def decode(data: bytes) -> Decoded:
    """Decode bytes as UTF-8, according to a byte-order mark, or with a detected encoding. Never raises."""
    if encoding := _detect_utf_16(data):
        return _decode_as(data, encoding)
    try:
        return Decoded(data.removeprefix(codecs.BOM_UTF8).decode(), "utf-8", is_lossy=False)
    except UnicodeDecodeError as error:
        is_cut_off = error.reason == "unexpected end of data"
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return _decode_as(data[len(mark) :], encoding)
    damaged = _decode_as(data, "utf-8")
    if is_cut_off or _is_mostly_intact(damaged.text):
        return damaged
    detected = _detect(data)
    if detected is not None:
        return _decode_as(data, detected)
    return Decoded(data.decode("latin-1"), "latin-1", is_lossy=True)


def is_binary(data: bytes) -> bool:
    """Return whether bytes are not text: NUL bytes or many control characters that no byte-order mark explains."""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            text = data[len(mark) : _SAMPLE].decode(encoding, "replace")
            return "\0" in text or text.count(_UNKNOWN) > _MAX_DAMAGED * len(text) + 1
    if b"\0" in data:
        return _detect_utf_16(data) is None
    sample = data[:_SAMPLE]
    return len(sample) - len(sample.translate(None, _CONTROLS)) > _MAX_CONTROLS * len(sample)


def is_guessed(encoding: str) -> bool:
    """Return whether `decode` reports this encoding only as a guess."""
    return not encoding.startswith("utf-")


def _detect_utf_16(data: bytes) -> str | None:
    """Return the encoding of UTF-16 text without a byte-order mark; None for anything else.

    One of the two bytes of each ASCII character is NUL, always on the same side.
    """
    if b"\0" not in data or len(data) % 2 or data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return None
    sample = data[:_SAMPLE]
    nuls = sample[::2].count(0), sample[1::2].count(0)
    if all(nuls):
        return None
    is_latin = sum(nuls) * 2 >= _LATIN_SHARE * len(sample)
    if not is_latin and len(sample.translate(None, _ASCII)) * 10 < len(sample):  # ASCII with stray NUL bytes
        return None
    encoding = "utf-16-be" if nuls[0] else "utf-16-le"
    text = sample.decode(encoding, "replace").strip("\ufffd")  # the sample may end within a character
    is_text = _UNKNOWN not in text and not any(
        category(char) in _NOT_TEXT and char not in "\t\n\v\f\r" for char in set(text)
    )
    return encoding if is_text else None


def _decode_as(data: bytes, encoding: str) -> Decoded:
    try:
        text, is_lossy = data.decode(encoding), False
    except UnicodeDecodeError:
        text, is_lossy = data.decode(encoding, "replace"), True
    try:
        text.encode()
    except UnicodeEncodeError:  # some decoders let lone surrogates through
        text, is_lossy = text.encode("utf-8", "replace").decode(), True
    return Decoded(text, encoding, is_lossy)


def _is_mostly_intact(text: str) -> bool:
    """Return whether text decoded as UTF-8 has few replacement characters compared to valid non-ASCII characters."""
    damaged = text.count(_UNKNOWN)
    beyond_ascii = len(text) - len(text.encode("ascii", "ignore"))
    return damaged <= _MAX_DAMAGED * beyond_ascii


def _detect(data: bytes) -> str | None:
    """Guess a legacy encoding from the first lines."""
    from charset_normalizer import from_bytes

    sample = data[: data.rfind(b"\n", 0, _SAMPLE) + 1 or _SAMPLE] if len(data) > _SAMPLE else data
    matches = from_bytes(sample, cp_isolation=_COMMON)
    best = matches.best()
    if best is None:  # happens with Polish, whose letter pairs look unusual
        return next((encoding for encoding in _LIKELY if _is_plausible(sample, encoding)), None)
    fitting = {
        name
        for match in matches
        if match.chaos <= best.chaos
        for name in (match.encoding, *match.could_be_from_charset)
    }
    for encoding in _LIKELY:  # code with only a few accented letters fits any code page
        if encoding in fitting and _is_plausible(sample, encoding):
            return encoding
    return best.encoding


def _is_plausible(sample: bytes, encoding: str) -> bool:
    """Return whether bytes make sense in an encoding."""
    return not _MISREAD.search(sample.decode(encoding, "replace"))
