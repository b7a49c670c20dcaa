# SPDX-License-Identifier: Apache-2.0
"""The standard weight stream against Arm's own encoder and decoder (ethosu.mlw_codec)."""

from __future__ import annotations

import numpy as np
import pytest
from ethosu import mlw_codec
from hypothesis import given, settings
from hypothesis import strategies as st

from npu.errors import WeightStreamError
from npu.weights.mlw import decode_standard

_RANDOM = {
    "uniform": lambda rng, n: rng.integers(-128, 128, n),
    "nine bits": lambda rng, n: rng.integers(-255, 256, n),
    "wide normal": lambda rng, n: rng.normal(0, 25, n),
    "narrow normal": lambda rng, n: rng.normal(0, 2, n),
    "laplace": lambda rng, n: rng.laplace(0, 8, n),
    "few values": lambda rng, n: rng.choice([-255, -3, 0, 5, 7, 100], n),
    "two values": lambda rng, n: rng.choice([-9, 9], n),
    "constant": lambda rng, n: np.full(n, rng.integers(-255, 256)),
    "half zero": lambda rng, n: rng.integers(-128, 128, n) * (rng.random(n) < 0.5),
    "pruned": lambda rng, n: rng.normal(0, 30, n) * (rng.random(n) < 0.1),
    "nearly all zero": lambda rng, n: rng.choice([1, -4], n) * (rng.random(n) < 0.01),
    "zero": lambda _, n: np.zeros(n),
}


@st.composite
def weight_lists(draw: st.DrawFn, longest: int = 1500) -> list[int]:
    """Weights of one to three statistics in a row, which makes an encoder change its parameters."""
    rng = np.random.default_rng(draw(st.integers(0, 1 << 32)))
    kinds = draw(st.lists(st.sampled_from(sorted(_RANDOM)), min_size=1, max_size=3))
    parts = [_RANDOM[kind](rng, draw(st.integers(1, longest))) for kind in kinds]
    return [int(value) for value in np.clip(np.rint(np.concatenate(parts)), -255, 255)]


@settings(max_examples=200, deadline=None)
@given(weight_lists())
def test_decodes_what_the_encoder_makes(weights: list[int]) -> None:
    assert decode_standard(bytes(mlw_codec.encode(weights)), len(weights)).tolist() == weights


@pytest.mark.parametrize("kind", _RANDOM)
def test_decodes_streams_of_many_slices(kind: str) -> None:
    values = np.clip(np.rint(_RANDOM[kind](np.random.default_rng(7), 100_000)), -255, 255)
    weights = [int(value) for value in values]
    stream = mlw_codec.encode(weights)
    decoded = decode_standard(bytes(stream), len(weights))
    assert decoded.tolist() == mlw_codec.decode(stream) == weights


@settings(max_examples=30, deadline=None)
@given(weight_lists(longest=200), weight_lists(longest=200))
def test_a_stream_may_follow_the_end_of_another(first: list[int], second: list[int]) -> None:
    joined = bytes(mlw_codec.encode(first) + mlw_codec.encode(second))
    assert decode_standard(joined, len(first) + len(second)).tolist() == first + second


def test_nothing_is_a_stream_of_no_weights() -> None:
    assert decode_standard(b"", 0).size == 0
    assert decode_standard(b"\xff" * 16, 0).size == 0


@settings(max_examples=100, deadline=None)
@given(weight_lists(longest=300), st.data())
def test_a_cut_stream_is_an_error(weights: list[int], data: st.DataObject) -> None:
    stream = bytes(mlw_codec.encode(weights))
    content = len(stream.rstrip(b"\xff"))
    cut = data.draw(st.integers(0, content - 1))
    with pytest.raises(WeightStreamError) as caught:
        decode_standard(stream[:cut], len(weights))
    assert caught.value.bit is not None
    assert 0 <= caught.value.bit <= 8 * cut


@settings(max_examples=60, deadline=None)
@given(weight_lists(longest=300), st.sampled_from([-1, 1, 1000]))
def test_another_count_is_an_error(weights: list[int], difference: int) -> None:
    with pytest.raises(WeightStreamError):
        decode_standard(bytes(mlw_codec.encode(weights)), len(weights) + difference)


@settings(max_examples=300, deadline=None)
@given(weight_lists(longest=300), st.lists(st.tuples(st.integers(0), st.integers(1, 255)), min_size=1))
def test_a_corrupt_stream_gives_weights_or_a_typed_error(
    weights: list[int], changes: list[tuple[int, int]]
) -> None:
    stream = bytearray(mlw_codec.encode(weights))
    for position, change in changes:
        stream[position % len(stream)] ^= change
    try:
        decoded = decode_standard(bytes(stream), len(weights))
    except WeightStreamError:
        return
    assert decoded.shape == (len(weights),)
    assert np.abs(decoded).max() <= 255


def _bits(*fields: tuple[int, int]) -> bytes:
    """Fields (value, width), LSB first, then end markers."""
    value = width = 0
    for field, bits in fields:
        value |= field << width
        width += bits
    return ((value | -1 << width) & (1 << 512) - 1).to_bytes(64, "little")


_HEADER = ((6, 3), (3, 15), (0, 3), (0, 1), (1, 1))  # no runs, four weights, divisor 0, new palette
_PALETTE = ((0, 5), (0, 5), (0, 3))


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        (_bits((4, 3), *_HEADER[1:], *_PALETTE), "reserved divisor"),
        (_bits((6, 3), (3, 15), (6, 3), (0, 1), (1, 1), *_PALETTE), "reserved divisor"),
        (_bits(*_HEADER[:4], (0, 1)), "no palette"),
        (_bits(*_HEADER)[:2], "ends in a slice header"),
        (_bits(*_HEADER, (0, 5), (30, 5), (7, 3))[:8], "ends in a palette"),
        (_bits(*_HEADER, *_PALETTE, (0, 12))[:5], "ends inside a slice"),
        # A slice whose unary bits never complete a weight.
        (_bits(*_HEADER, *_PALETTE), "ends inside a slice"),
        (_bits(*_HEADER, *_PALETTE, (0, 12))[:6], "no end marker"),
    ],
)
def test_malformed_streams(stream: bytes, message: str) -> None:
    with pytest.raises(WeightStreamError, match=message):
        decode_standard(stream, 4)


def test_an_index_beyond_nine_bits_is_an_error() -> None:
    # Divisor 5; 25 positions of 2 make a quotient above 15, so an index of 512 or more.
    header = ((6, 3), (0, 15), (5, 3), (0, 1), (1, 1))
    stream = _bits(*header, *_PALETTE, (0xFFF, 12), (0xFFF, 12), (0, 12), (0, 5))
    with pytest.raises(WeightStreamError, match="nine bits"):
        decode_standard(stream, 1)
