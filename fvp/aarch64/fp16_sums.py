# SPDX-License-Identifier: Apache-2.0
"""Sums of products in fp16 as XNNPACK's and KleidiAI's kernels for AArch64 make them, in NumPy.

Torch adds up an fp16 convolution in fp32 and rounds once. XNNPACK's NEON kernels keep the sum in fp16: one
fused multiply-add for each product, in the order of the kernel's elements (row by row, depthwise column by
column) and then of channels, from the bias on. KleidiAI's kernels for SME keep it in fp32: the sum of two
products is rounded, then added (FMOPA, widening). Over tens of layers the first is off by several per cent,
so a network must be compared with its own arithmetic. Both run with FPCR.FZ16 set, as XNNPACK asks of its
thread pool: subnormal inputs and results are zero. Established by comparing outputs bit by bit, see
docs/validation.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

NORMAL = float(np.finfo(np.float16).smallest_normal)
_TWO_SUMS_FROM = 10
"""Elements from which XNNPACK's depthwise kernel, the one for up to 25, alternates between two sums."""

MOST_ELEMENTS = 25
"""Of a depthwise kernel; XNNPACK sums larger ones in several passes, whose order is not known here."""

_BLOCK = 1 << 15
"""Sums kept at a time: they stay in the cache."""


@dataclass(frozen=True)
class Convolution:
    """Arguments of ``aten.conv2d``."""

    stride: Sequence[int]
    padding: Sequence[int]
    dilation: Sequence[int]
    groups: int

    @classmethod
    def of(
        cls,
        stride: Sequence[int] = (1, 1),
        padding: Sequence[int] = (0, 0),
        dilation: Sequence[int] = (1, 1),
        groups: int = 1,
    ) -> Convolution:
        """With aten's default values."""
        return cls(pair(stride), pair(padding), pair(dilation), groups)


def pair(value: Sequence[int]) -> list[int]:
    """One number for each of two axes, where aten allows a single one for both."""
    return list(value) * (3 - len(value))


def flushed(values: np.ndarray) -> np.ndarray:
    """`values` without subnormals of fp16."""
    return np.where(np.abs(values) < NORMAL, 0, values)


def _wide(values: np.ndarray) -> np.ndarray:
    """Flushed, in a type in which products and their sums with an fp16 number round to fp16 only once."""
    return flushed(values).astype(np.float64)


def _add(total: np.ndarray, product: np.ndarray) -> np.ndarray:
    """A fused multiply-add in fp16, held in float64. What is tiny before rounding becomes zero."""
    return flushed(total + product).astype(np.float16).astype(np.float64)


def narrow_sums(
    rows: np.ndarray, weights: np.ndarray, bias: np.ndarray, *, one_by_one: bool = False
) -> np.ndarray:
    """[P, T, C] rows x [N, T, C] weights + [N] bias as NEON kernels do, [P, N] in fp16.

    Args:
        one_by_one: whether the kernels for one row are used, as they are where there is only one.
    """
    out = np.empty((len(rows), len(weights)), np.float16)
    order = _four_sums(rows.shape[2]) if one_by_one or len(rows) == 1 else [0] * rows.shape[2]
    columns, step = _wide(_flat(weights).T), max(1, _BLOCK // len(weights))
    for start in range(0, len(rows), step):
        block = _wide(_flat(rows[start : start + step])).T[:, :, None]
        sums = np.zeros((max(order) + 1, block.shape[1], len(weights)))
        sums[0] = _wide(bias)
        for row, column, index in zip(block, columns, order * rows.shape[1], strict=True):
            sums[index] = _add(sums[index], row * column)
        while len(sums) > 1:
            sums = _add(sums[::2], sums[1::2])
        out[start : start + step] = sums[0]
    return out


def _four_sums(channels: int) -> list[int]:
    """Which of four sums each channel goes to: every fourth to one, the rest to the first two in turn."""
    whole = channels // 4 * 4
    return [channel % 4 if channel < whole else channel % 2 for channel in range(channels)]


def _flat(taps: np.ndarray) -> np.ndarray:
    """[N, T, C] -> [N, T * C]."""
    return taps.reshape(len(taps), -1)


def wide_sums(rows: np.ndarray, weights: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """[P, T, C] rows x [N, T, C] weights + [N] bias as SME kernels do, [P, N] in fp16.

    Pairs are of channels of one tap: an odd number of channels is padded.
    """
    out = np.empty((len(rows), len(weights)), np.float16)
    odd = ((0, 0), (0, 0), (0, weights.shape[2] % 2))
    rows, columns = np.pad(rows, odd), _wide(_flat(np.pad(weights, odd)).T)
    step = max(1, _BLOCK // len(weights))
    for start in range(0, len(rows), step):
        block = _wide(_flat(rows[start : start + step])).T[:, :, None]
        total = np.broadcast_to(_wide(bias).astype(np.float32), block.shape[1:2] + bias.shape)
        for k in range(0, len(columns), 2):
            both = block[k] * columns[k] + block[k + 1] * columns[k + 1]
            total = total + both.astype(np.float32)
        out[start : start + step] = flushed(total).astype(np.float16)
    return out


def depthwise_sums(patches: np.ndarray, weights: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """[P, E, C] patches x [E, C] weights + [C] bias, elements in the kernel's order; [P, C] in fp16."""
    elements = len(weights)
    products = _wide(patches) * _wide(weights)
    total = np.broadcast_to(_wide(bias), products[:, 0].shape)
    if elements < _TWO_SUMS_FROM:
        for element in range(elements):
            total = _add(total, products[:, element])
        return total.astype(np.float16)
    other = _add(np.zeros_like(total), products[:, 1])
    for element in range(elements):
        if element % 2 == 0:
            total = _add(total, products[:, element])
        elif element > 1:
            other = _add(other, products[:, element])
    return _add(total, other).astype(np.float16)


def _patches(
    image: np.ndarray, kernel: Sequence[int], how: Convolution
) -> tuple[np.ndarray, tuple[int, ...]]:
    """[N, C, H, W] -> [P, rows, columns, C], P over N and both axes of the output; the shape [N, OH, OW]."""
    (top, left), (y_step, x_step), (y_gap, x_gap) = how.padding, how.stride, how.dilation
    padded = np.pad(image, ((0, 0), (0, 0), (top, top), (left, left)))
    window = (y_gap * (kernel[0] - 1) + 1, x_gap * (kernel[1] - 1) + 1)
    axes: Any = (2, 3)
    views = np.lib.stride_tricks.sliding_window_view(padded, window, axes)
    views = views[:, :, ::y_step, ::x_step, ::y_gap, ::x_gap].transpose(0, 2, 3, 4, 5, 1)
    return views.reshape(-1, *kernel, image.shape[1]), views.shape[:3]


def convolution(
    image: np.ndarray, weights: np.ndarray, bias: np.ndarray, how: Convolution, *, sme: bool
) -> np.ndarray:
    """[N, C, H, W] image, [M, C / groups, rows, columns] weights, [M] bias -> [N, M, OH, OW] in fp16.

    Args:
        sme: whether kernels for SME are used where XNNPACK has them: not for convolutions of 1x1, nor for
            those with one input channel in a group.
    """
    patches, places = _patches(image, weights.shape[2:], how)
    channels, taps = image.shape[1], weights.reshape(*weights.shape[:2], -1).transpose(0, 2, 1)
    if how.groups == channels == len(weights):
        ordered = patches.transpose(0, 2, 1, 3).reshape(len(patches), -1, channels)
        out = depthwise_sums(ordered, weights[:, 0].transpose(2, 1, 0).reshape(-1, channels), bias)
    else:
        pointwise = taps.shape[1] == 1 and how.stride == [1, 1] and how.padding == [0, 0]
        sums = wide_sums if sme and channels > how.groups and not pointwise else narrow_sums
        rows = patches.reshape(len(patches), -1, channels)
        parts = (np.split(array, how.groups, axis) for array, axis in ((rows, 2), (taps, 0), (bias, 0)))
        out = np.concatenate([sums(*part) for part in zip(*parts, strict=True)], axis=1)
    return out.reshape(*places, -1).transpose(0, 3, 1, 2)


def linear(rows: np.ndarray, weights: np.ndarray, bias: np.ndarray, *, sme: bool) -> np.ndarray:
    """[..., K] rows x [N, K] weights + [N] bias -> [..., N] in fp16."""
    sums = wide_sums if sme else narrow_sums
    out = sums(rows.reshape(-1, 1, rows.shape[-1]), weights[:, None], bias)
    return out.reshape(*rows.shape[:-1], -1)


def transposed_convolution(
    image: np.ndarray, weights: np.ndarray, bias: np.ndarray, how: Convolution, extra: Sequence[int]
) -> np.ndarray:
    """[N, C, H, W] image, [C, M, rows, columns] weights, [M] bias -> [N, M, OH, OW] in fp16; one group.

    XNNPACK has no kernel for SME here. Zeros between the image's places add nothing to a sum.

    Args:
        extra: rows and columns behind the last ones, aten's output_padding.
    """
    (y_step, x_step), size = how.stride, image.shape[2:]
    kernel = weights.shape[2:]
    spread = np.zeros((*image.shape[:2], (size[0] - 1) * y_step + 1, (size[1] - 1) * x_step + 1), image.dtype)
    spread[:, :, ::y_step, ::x_step] = image
    around = [
        gap * (length - 1) - pad for gap, length, pad in zip(how.dilation, kernel, how.padding, strict=True)
    ]
    edges = [(front, front + behind) for front, behind in zip(around, extra, strict=True)]
    spread = np.pad(spread, ((0, 0), (0, 0), *edges))
    patches, places = _patches(spread, kernel, Convolution.of(dilation=how.dilation))
    taps = weights.reshape(*weights.shape[:2], -1).transpose(1, 2, 0)
    rows = patches.reshape(len(patches), taps.shape[1], -1)[:, ::-1]  # in the order of the kernel
    one_by_one = how.stride != [1, 1]
    return narrow_sums(rows, taps, bias, one_by_one=one_by_one).reshape(*places, -1).transpose(0, 3, 1, 2)


def product(left: np.ndarray, right: np.ndarray, *, sme: bool) -> np.ndarray:
    """[..., P, K] x [..., K, N] -> [..., P, N] in fp16, the axes in front broadcast."""
    front = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    lefts = np.broadcast_to(left, front + left.shape[-2:]).reshape(-1, *left.shape[-2:])
    rights = np.broadcast_to(right, front + right.shape[-2:]).reshape(-1, *right.shape[-2:])
    nothing = np.zeros(right.shape[-1], np.float16)
    out = [linear(a, b.T, nothing, sme=sme) for a, b in zip(lefts, rights, strict=True)]
    return np.stack(out).reshape(*front, left.shape[-2], -1)
