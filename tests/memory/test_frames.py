"""Frames: damage is detected, affects no other frame, and is not mistaken for an incomplete write."""

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.core.errors import LogError
from docindex_dagster.memory.segments import HEADER, Flaw, decode, encode

PAYLOADS = st.lists(st.text(max_size=40).map(lambda text: text.encode()), max_size=8)


def segment(payloads: list[bytes]) -> bytes:
    return HEADER + b"".join(map(encode, payloads))


def payloads_of(data: bytes) -> list[bytes]:
    return [frame.payload for frame in decode(data).frames]


@given(PAYLOADS)
def test_frames_round_trip(payloads):
    data = segment(payloads)
    decoded = decode(data)

    assert [frame.payload for frame in decoded.frames] == payloads
    assert decoded.flaws == ()
    assert decoded.end == len(data)
    assert [encode(frame.payload) for frame in decoded.frames] == [
        data[frame.start : frame.end] for frame in decoded.frames
    ]


@given(PAYLOADS, st.data())
def test_a_segment_that_was_cut_gives_its_complete_frames_and_goes_on_behind_them(payloads, data):
    whole = segment(payloads)
    cut = data.draw(st.integers(0, len(whole)))
    first = decode(whole[:cut])

    assert [frame.payload for frame in first.frames] == payloads[: len(first.frames)]
    assert first.flaws == (() if first.end == cut else (Flaw(first.end, cut, is_torn=True),))
    then = decode(whole[first.end :], first.end)
    assert [frame.payload for frame in (*first.frames, *then.frames)] == payloads
    assert then.flaws == ()


@given(PAYLOADS.filter(bool), st.data())
def test_any_flipped_bit_is_noticed_and_costs_one_frame(payloads, data):
    whole = bytearray(segment(payloads))
    place, bit = data.draw(st.integers(0, len(whole) - 1)), data.draw(st.integers(0, 7))
    frames = decode(bytes(whole)).frames
    whole[place] ^= 1 << bit
    try:
        damaged = decode(bytes(whole))
    except LogError:  # the header looks like a later version
        assert place < len(HEADER)
        return

    assert len(damaged.flaws) == 1
    assert damaged.flaws[0].start <= place < damaged.flaws[0].end
    assert [frame for frame in frames if not frame.start <= place < frame.end] == list(damaged.frames)


@given(PAYLOADS, PAYLOADS, st.binary(min_size=1, max_size=60))
def test_frames_behind_bytes_that_are_none_are_found(before, behind, rubbish):
    found = decode(segment(before) + rubbish + b"".join(map(encode, behind)))

    assert [frame.payload for frame in found.frames][: len(before)] == before
    assert [frame.payload for frame in found.frames][len(found.frames) - len(behind) :] == behind
    assert found.flaws


def test_a_flipped_bit_is_no_torn_write_even_in_the_last_frame():
    data = bytearray(segment([b"alpha", b"beta"]))
    for place in range(len(data) - len(encode(b"beta")), len(data)):
        data[place] ^= 1
        assert [flaw.is_torn for flaw in decode(bytes(data)).flaws] == [False], place
        data[place] ^= 1


def test_zeros_at_the_end_are_what_a_power_cut_leaves():
    data = segment([b"alpha"])

    assert decode(data + bytes(100)).flaws == (Flaw(len(data), len(data) + 100, is_torn=True),)


def test_no_text_imitates_a_frame():
    forged = encode(b'{"message": "forged"}').decode("utf-8", "replace").encode()
    data = bytearray(segment([b"x" + forged + b"y", b"next"]))
    data[len(HEADER)] ^= 1  # the reader must find the next frame inside the text

    assert payloads_of(bytes(data)) == [b"next"]


def test_a_later_format_is_refused():
    preamble = struct.pack("<8sI", b"docindex", 2)

    with pytest.raises(LogError, match="format 2, but this docindex reads format 1"):
        decode(preamble + struct.pack("<I", zlib.crc32(preamble)) + encode(b"alpha"))
