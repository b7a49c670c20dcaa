# SPDX-License-Identifier: Apache-2.0
"""Requantisation: multiply, round, shift right, by every rounding rule of the three families.

For a value v (the accumulator with its bias), multiplier m and shift s the result is `(v * m + r) >> s` with
an arithmetic shift, where r depends on the rounding and on the sign of v, and is 0 for s = 0:

    natural              2^(s-1)
    double symmetric     2^(s-1) + D for v >= 0, 2^(s-1) - D for v < 0;  D = 2^(30-d) if s > 31-d else 0
    double asymmetric    2^(s-1) + D
    symmetric            2^(s-1) for v >= 0, 2^(s-1) - 1 for v < 0
    truncate to zero     0 for v >= 0, 2^s - 1 for v < 0
    truncate to lower    0

d is the double-round field of U85 (0, or 20 and 15 for TensorFlow Lite's 8- and 16-bit additions). U55 and
U65 name
three of the rules: double, truncate (to zero) and natural.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from npu.isa import Round5x, Rounding

_INT64_SAFE = 1 << 62
_INT32_SAFE = 1 << 30
_SPLIT_BITS = 16

FROM_ROUND5X = {
    Round5x.DOUBLE: Rounding.DOUBLE_SYMMETRIC,
    Round5x.TRUNCATE: Rounding.TRUNCATE_TO_ZERO,
    Round5x.NATURAL: Rounding.NATURAL,
}


@dataclass(frozen=True)
class Scale:
    """A fixed-point factor: multiplier / 2^shift with its rounding rule."""

    multiplier: int = 1
    shift: int = 0
    rounding: Rounding = Rounding.NATURAL
    double_round: int = 0

    @property
    def is_identity(self) -> bool:
        """Factor one: the rounding term is below 2^shift and leaves no trace."""
        return self.multiplier == 1 << self.shift


def rounding_terms(shift: int, rounding: Rounding, double_round: int = 0) -> tuple[int, int]:
    """r of the module's table for v >= 0 and for v < 0."""
    if shift == 0:
        return 0, 0
    half = 1 << (shift - 1)
    extra = 1 << (30 - double_round) if shift > 31 - double_round and double_round <= 30 else 0
    if rounding is Rounding.NATURAL:
        return half, half
    if rounding is Rounding.DOUBLE_SYMMETRIC:
        return half + extra, half - extra
    if rounding is Rounding.DOUBLE_ASYMMETRIC:
        return half + extra, half + extra
    if rounding is Rounding.SYMMETRIC:
        return half, half - 1
    if rounding is Rounding.TRUNCATE_TO_ZERO:
        return 0, (1 << shift) - 1
    return 0, 0


def apply_scale(values: np.ndarray, scale: Scale, bound: int | None = None) -> np.ndarray:
    """Scale int64 `values` of any magnitude; results beyond 2^62 saturate there.

    Args:
        bound: a magnitude no value exceeds, where the caller knows one; else it is looked up.
    """
    if scale.is_identity or not values.size:
        return values
    above, below = rounding_terms(scale.shift, scale.rounding, scale.double_round)
    if bound is None:
        bound = magnitude(values)
    if bound * scale.multiplier + max(above, below) >= _INT64_SAFE:
        return _multiply_shift_wide(values, scale.multiplier, scale.shift, above, below)
    product = values * np.int64(scale.multiplier)
    product += np.int64(above) if above == below else np.where(values < 0, np.int64(below), np.int64(above))
    product >>= scale.shift
    return product


def magnitude(values: np.ndarray) -> int:
    """Largest absolute value."""
    return max(abs(int(values.min())), abs(int(values.max()))) if values.size else 0


def scaled_magnitude(bound: int, scale: Scale) -> int:
    """A magnitude that no result of `apply_scale` on values up to `bound` exceeds."""
    return (bound * scale.multiplier >> scale.shift) + 2


def _multiply_shift_wide(
    values: np.ndarray, multiplier: int, shift: int, above: int, below: int
) -> np.ndarray:
    """For products beyond 64 bits: v = high * 2^16 + low, and a shift of 16 or more in two steps."""
    if shift < _SPLIT_BITS:
        return _multiply_shift_exact(values, multiplier, shift, above, below)
    high = (values >> _SPLIT_BITS) * np.int64(multiplier)
    low = (values & ((1 << _SPLIT_BITS) - 1)) * np.int64(multiplier)
    low += np.where(values < 0, np.int64(below), np.int64(above))
    return (high + (low >> _SPLIT_BITS)) >> (shift - _SPLIT_BITS)


def _multiply_shift_exact(
    values: np.ndarray, multiplier: int, shift: int, above: int, below: int
) -> np.ndarray:
    """Python integers: only for products beyond 64 bits with a small shift, whose result saturates anyway."""
    limit = _INT64_SAFE
    flat = [
        max(-limit, min(limit, (v * multiplier + (below if v < 0 else above)) >> shift))
        for v in values.reshape(-1).tolist()
    ]
    return np.array(flat, np.int64).reshape(values.shape)


# --- per-channel output scaling -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ChannelScales:
    """Bias, multiplier and shift of every channel (or one for all): int64 arrays of equal length.

    Compared and hashed by content.
    """

    bias: np.ndarray
    multiplier: np.ndarray
    shift: np.ndarray
    rounding: Rounding
    double_round: int = 0

    @classmethod
    def uniform(cls, scale: Scale, channels: int = 1) -> ChannelScales:
        """One scale for all channels, no bias; arrays not to be written to, as others have them too."""
        return _uniform(scale, channels)

    @cached_property
    def _content(self) -> tuple:
        arrays = (self.bias.tobytes(), self.multiplier.tobytes(), self.shift.tobytes())
        return *arrays, self.rounding, self.double_round

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ChannelScales) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)

    def with_bias(self, extra: np.ndarray) -> ChannelScales:
        """The same with `extra` (int64[channels]) added to the bias."""
        return replace(self, bias=self.bias + extra)


@lru_cache(maxsize=1024)
def _uniform(scale: Scale, channels: int) -> ChannelScales:
    ones = np.ones(channels, np.int64)
    return ChannelScales(
        0 * ones, ones * scale.multiplier, ones * scale.shift, scale.rounding, scale.double_round
    )


class Requantiser:
    """Output scaling of whole accumulator blocks: int64 in cache-sized pieces, constants folded once.

    With P = max shift, every channel's (v*m + r) >> s equals (v * (m << P-s) + (r << P-s)) >> P, so bias,
    rounding and zero point become one addend per channel and the shift a scalar, as long as the products fit
    64 bits.
    """

    BLOCK = 1 << 14

    def __init__(self, scales: ChannelScales, zero_point: int, limits: tuple[int, int] | None, bound: int):
        """
        Args:
            zero_point: added after the shift.
            limits: smallest and largest result; None leaves the result to wrap into the output type.
            bound: largest magnitude an accumulator (without its bias) can have; a tight one keeps the fast
                path.
        """
        self._scales = scales
        self._zero_point = zero_point
        self._limits = limits
        self._plan = self._fold(bound)

    def _fold(self, bound: int) -> _Plan | None:
        """The folded constants, or None when 64 bits do not hold the products."""
        scales = self._scales
        common = int(scales.shift.max())
        lift = common - scales.shift
        above, below = self._terms()
        largest = (bound + np.abs(scales.bias).astype(np.float64)) * scales.multiplier + np.maximum(
            above, below
        )
        if float((largest * 2.0**lift).max()) + abs(self._zero_point) * 2.0**common >= _INT64_SAFE:
            return None
        multiplier = scales.multiplier << lift
        fixed = scales.bias * multiplier + (self._zero_point << common)
        addend, negative = fixed + (above << lift), fixed + (below << lift)
        signed = not np.array_equal(addend, negative)
        narrow = float((largest * 2.0**-scales.shift).max()) + abs(self._zero_point) < _INT32_SAFE
        return _Plan(multiplier, addend, negative if signed else None, -scales.bias, common, narrow)

    def _terms(self) -> tuple[np.ndarray, np.ndarray]:
        """Rounding terms of every channel, for values >= 0 and < 0."""
        scales = self._scales
        shifts, index = np.unique(scales.shift, return_inverse=True)
        terms = [rounding_terms(shift, scales.rounding, scales.double_round) for shift in shifts.tolist()]
        table = np.array(terms, np.int64)
        return table[index, 0], table[index, 1]

    def __call__(self, acc: np.ndarray, out: np.ndarray) -> None:
        """Scale `acc` into `out`: flat arrays of whole pixels, channels innermost.

        `acc` holds exact integers (any dtype) without bias; `out` takes the result with its own type's wrap.
        """
        channels = len(self._scales.multiplier)
        pixels = max(1, min(self.BLOCK, len(acc)) // channels)
        plan = self._plan.repeated(pixels) if self._plan else None
        block = pixels * channels
        scratch = np.empty(block, np.int64)
        narrow = np.empty(block, np.int32) if plan and plan.narrow else None
        for start in range(0, len(acc), block):
            values: np.ndarray = scratch[: len(acc) - start]
            values[...] = acc[start : start + block]
            if plan:
                plan.apply(values)
            else:
                self._scale_channels(values.reshape(-1, channels))
            if narrow is not None:
                narrow[: len(values)] = values
                values = narrow[: len(values)]
            if self._limits:
                np.maximum(values, self._limits[0], out=values)
                np.minimum(values, self._limits[1], out=values)
            out[start : start + block] = values

    def _scale_channels(self, values: np.ndarray) -> None:
        """Channel by channel with products of any size, in place; `values` is [pixels, channels]."""
        scales = self._scales
        for channel, (bias, multiplier, shift) in enumerate(
            zip(scales.bias.tolist(), scales.multiplier.tolist(), scales.shift.tolist(), strict=True)
        ):
            scale = Scale(multiplier, shift, scales.rounding, scales.double_round)
            values[:, channel] = apply_scale(values[:, channel] + bias, scale) + self._zero_point


@lru_cache(maxsize=1024)
def requantiser(
    scales: ChannelScales, zero_point: int, limits: tuple[int, int] | None, bound: int
) -> Requantiser:
    """A Requantiser, kept for the next operation or run with the same parameters."""
    return Requantiser(scales, zero_point, limits, bound)


@dataclass(frozen=True)
class _Plan:
    """Folded constants of a channel or element each: result = (v * multiplier + addend) >> shift.

    `negative` replaces the addend where v is below `threshold` (minus the bias); None when there is no
    difference.
    """

    multiplier: np.ndarray
    addend: np.ndarray
    negative: np.ndarray | None
    threshold: np.ndarray
    shift: int
    narrow: bool

    def repeated(self, pixels: int) -> _Plan:
        """For blocks of `pixels` pixels, so that each step is one long inner loop."""
        if len(self.multiplier) == 1:
            return self
        return _Plan(
            np.tile(self.multiplier, pixels),
            np.tile(self.addend, pixels),
            None if self.negative is None else np.tile(self.negative, pixels),
            self.threshold if self.negative is None else np.tile(self.threshold, pixels),
            self.shift,
            self.narrow,
        )

    def apply(self, values: np.ndarray) -> None:
        """In place, on at most one block."""
        size = len(values)
        addend = self.addend[:size]
        if self.negative is not None:
            addend = np.where(values < self.threshold[:size], self.negative[:size], addend)
        values *= self.multiplier[:size]
        values += addend
        values >>= self.shift
