# SPDX-License-Identifier: Apache-2.0
"""Requantisation against the formulas in Python integers, near the limits of 64 bits too."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npu.isa import Rounding
from npu.scaling import ChannelScales, Requantiser, Scale, apply_scale, scaled_magnitude

LIMIT = 1 << 62


def exact(value: int, scale: Scale) -> int:
    """The rules, one by one, with nothing but integers."""
    product, shift = value * scale.multiplier, scale.shift
    if shift == 0:
        return product
    half, positive = 1 << shift - 1, value >= 0
    extra = 1 << 30 - scale.double_round if shift > 31 - scale.double_round else 0
    add = {
        Rounding.NATURAL: half,
        Rounding.DOUBLE_SYMMETRIC: half + extra if positive else half - extra,
        Rounding.DOUBLE_ASYMMETRIC: half + extra,
        Rounding.SYMMETRIC: half if positive else half - 1,
        Rounding.TRUNCATE_TO_ZERO: 0 if positive else (1 << shift) - 1,
        Rounding.TRUNCATE_TO_LOWER: 0,
    }[scale.rounding]
    return product + add >> shift


def saturated(value: int) -> int:
    return max(-LIMIT, min(LIMIT, value))


def scales(bits: int = 31) -> st.SearchStrategy[Scale]:
    return st.builds(
        Scale,
        st.integers(0, (1 << bits) - 1),
        st.integers(0, 62),
        st.sampled_from(Rounding),
        st.sampled_from([0, 15, 20]),
    )


@settings(max_examples=300)
@given(values=st.lists(st.integers(-(1 << 47), (1 << 47) - 1), min_size=1, max_size=8), scale=scales())
def test_apply_scale(values: list[int], scale: Scale) -> None:
    result = apply_scale(np.array(values, np.int64), scale)
    assert result.tolist() == [saturated(exact(value, scale)) for value in values]


@pytest.mark.parametrize("double_round", [0, 15, 20])
@pytest.mark.parametrize("rounding", Rounding)
def test_ties(rounding: Rounding, double_round: int) -> None:
    """Values halfway between two results, and their neighbours: random ones hardly ever are."""
    for shift in (1, 2, 7, 16, 33):
        values = [odd * (1 << shift - 1) + near for odd in (-3, -1, 1, 3) for near in (-1, 0, 1)]
        scale = Scale(1, shift, rounding, double_round)
        result = apply_scale(np.array(values, np.int64), scale)
        assert result.tolist() == [exact(value, scale) for value in values]


@given(value=st.integers(-(1 << 39), (1 << 39) - 1), scale=scales(32))
def test_forty_bit_accumulator_with_full_scale(value: int, scale: Scale) -> None:
    assert apply_scale(np.array([value]), scale).tolist() == [saturated(exact(value, scale))]


@given(value=st.integers(-(1 << 31), (1 << 31) - 1), scale=scales())
def test_scaled_magnitude_is_a_bound(value: int, scale: Scale) -> None:
    if scale.shift == 0 and scale.double_round:
        return
    assert abs(exact(value, scale)) <= scaled_magnitude(abs(value), scale) + (1 << 30)


@st.composite
def channel_scales(draw: st.DrawFn) -> ChannelScales:
    channels = draw(st.integers(1, 5))
    vector = lambda low, high: np.array(  # noqa: E731
        draw(st.lists(st.integers(low, high), min_size=channels, max_size=channels)), np.int64
    )
    return ChannelScales(
        vector(-(1 << 31), (1 << 31) - 1),
        vector(0, (1 << 31) - 1),
        vector(0, 62),
        draw(st.sampled_from(Rounding)),
        draw(st.sampled_from([0, 15, 20])),
    )


@settings(max_examples=300)
@given(data=st.data(), per_channel=channel_scales(), zero_point=st.integers(-128, 127))
def test_requantiser(data: st.DataObject, per_channel: ChannelScales, zero_point: int) -> None:
    channels = len(per_channel.shift)
    pixels = data.draw(st.integers(1, 6))
    size = channels * pixels
    bits = data.draw(st.sampled_from([8, 20, 31, 47]))
    magnitude = st.integers(-(1 << bits) + 1, (1 << bits) - 1)
    acc = np.array(data.draw(st.lists(magnitude, min_size=size, max_size=size)), np.int64)
    out = np.empty(size, np.int8)
    Requantiser(per_channel, zero_point, (-100, 90), bound=1 << bits)(acc, out)
    for index, value in enumerate(acc.tolist()):
        c = index % channels
        scale = Scale(
            int(per_channel.multiplier[c]),
            int(per_channel.shift[c]),
            per_channel.rounding,
            per_channel.double_round,
        )
        expected = saturated(exact(value + int(per_channel.bias[c]), scale)) + zero_point
        assert out[index] == max(-100, min(90, expected))


def test_requantiser_over_many_blocks_equals_one_by_one() -> None:
    rng = np.random.default_rng(1)
    channels = 24
    per_channel = ChannelScales(
        rng.integers(-(1 << 20), 1 << 20, channels),
        rng.integers(1 << 30, 1 << 31, channels),
        rng.integers(36, 44, channels),
        Rounding.DOUBLE_SYMMETRIC,
    )
    acc = rng.integers(-(1 << 22), 1 << 22, channels * 3000)
    out = np.empty(acc.size, np.int8)
    Requantiser(per_channel, -3, (-128, 127), bound=1 << 22)(acc.astype(np.float32), out)
    expected = np.empty((3000, channels), np.int64)
    for c in range(channels):
        scale = Scale(int(per_channel.multiplier[c]), int(per_channel.shift[c]), per_channel.rounding)
        expected[:, c] = apply_scale(acc.reshape(-1, channels)[:, c] + per_channel.bias[c], scale) - 3
    np.testing.assert_array_equal(out, expected.clip(-128, 127).reshape(-1))


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32])
def test_without_limits_the_result_wraps(dtype: type) -> None:
    acc = np.array([300, -300, 70000, 1 << 40], np.int64)
    out = np.empty(4, dtype)
    Requantiser(ChannelScales.uniform(Scale()), 0, None, bound=1 << 40)(acc, out)
    np.testing.assert_array_equal(out, acc.astype(dtype))
