"""Frames: how records follow each other in a segment, so that each flipped bit and each torn write is noticed.

A segment begins with a header. A frame is a head and a payload; the head has a mark, the payload's length, its CRC, and
the CRC of these three. The mark's bytes occur in no UTF-8: so the next frame is found behind a damaged one, and no text
can imitate one.
"""

import struct
import zlib
from dataclasses import dataclass

from docindex_dagster.core.errors import LogError

_MAGIC = b"docindex"
_VERSION = 1  # also of the records: a field more is another version
_PREAMBLE = struct.Struct("<8sI")
_CRC = struct.Struct("<I")
_MARK = b"\xff\xfe"
_FIELDS = struct.Struct("<2sII")
_HEAD_BYTES = _FIELDS.size + _CRC.size


def _sealed(data: bytes) -> bytes:
    """Bytes and their CRC."""
    return data + _CRC.pack(zlib.crc32(data))


HEADER = _sealed(_PREAMBLE.pack(_MAGIC, _VERSION))


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame whose bytes are those that were written."""

    start: int
    end: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Flaw:
    """Bytes that are no frame."""

    start: int
    end: int
    is_torn: bool  # a write at the end that is not complete, or not yet; else damage


@dataclass(frozen=True, slots=True)
class Decoded:
    """What bytes of a segment hold, and from where to go on."""

    frames: tuple[Frame, ...]
    flaws: tuple[Flaw, ...]
    end: int


def encode(payload: bytes) -> bytes:
    """The frame of a payload, which is UTF-8."""
    return _sealed(_FIELDS.pack(_MARK, len(payload), zlib.crc32(payload))) + payload


def decode(data: bytes, start: int = 0) -> Decoded:
    """What the bytes of a segment from `start` on hold. Damage costs the frame in which it is, and no other.

    Raises:
        LogError: a later version of docindex wrote them.
    """
    frames: list[Frame] = []
    flaws: list[Flaw] = []
    place = 0 if start else _after_header(data, flaws)
    while place < len(data):
        head = _head(data, place)
        if head is None:
            behind = _next_head(data, place + 1)
            if behind is None:
                flaws.append(Flaw(start + place, start + len(data), _is_torn(data[place:])))
                break
            flaws.append(Flaw(start + place, start + behind, is_torn=False))
            place = behind
            continue
        length, crc = head
        end = place + _HEAD_BYTES + length
        if end > len(data):
            flaws.append(Flaw(start + place, start + len(data), is_torn=True))
            break
        payload = data[place + _HEAD_BYTES : end]
        if zlib.crc32(payload) == crc:
            frames.append(Frame(start + place, start + end, payload))
        else:
            flaws.append(Flaw(start + place, start + end, is_torn=False))
        place = end
    return Decoded(tuple(frames), tuple(flaws), start + place)


def _after_header(data: bytes, flaws: list[Flaw]) -> int:
    """Where the frames begin: at the start of a header that is not complete, else after it, whatever it holds."""
    if len(data) < len(HEADER):
        return 0
    if data.startswith(HEADER):
        return len(HEADER)
    preamble = data[: _PREAMBLE.size]
    magic, version = _PREAMBLE.unpack(preamble)
    if magic == _MAGIC and data.startswith(_sealed(preamble)):
        raise LogError(f"the log has format {version}, and this docindex reads {_VERSION}: install a newer one")
    flaws.append(Flaw(0, len(HEADER), is_torn=False))
    return len(HEADER)


def _head(data: bytes, place: int) -> tuple[int, int] | None:
    """The length and the CRC of the payload, as the head at a place says; None where none stands there."""
    head = data[place : place + _HEAD_BYTES]
    if len(head) < _HEAD_BYTES or _sealed(head[: _FIELDS.size]) != head:
        return None
    mark, length, crc = _FIELDS.unpack_from(head)
    return (length, crc) if mark == _MARK else None


def _next_head(data: bytes, place: int) -> int | None:
    """The next place at which a head stands."""
    while (place := data.find(_MARK, place)) >= 0:
        if _head(data, place) is not None:
            return place
        place += 1
    return None


def _is_torn(rest: bytes) -> bool:
    """Whether the last bytes are what remains of one write: part of a header or head, or zeros after a power cut."""
    is_part = len(rest) < _HEAD_BYTES and (rest.startswith(_MARK) or _MARK.startswith(rest))
    return is_part or HEADER.startswith(rest) or not rest.strip(b"\0")
