# SPDX-License-Identifier: Apache-2.0
"""OP_POOL: maximum, minimum, sum or average of a window, sum over depth, index of a maximum, or none.

Elements lose the IFM zero point. Padding counts as zero in sums and is left out of maxima and minima. An
average divides by the number of window elements inside the IFM wherever OFM_SCALE cannot hold the reciprocal:
on U85 always, on U55 and U65 when there is padding. The division is a multiplication by a reciprocal a hair
above 1/n, which makes halves round away from zero: with e the exponent of n - 1, scale (2^(N+e) + 2^e) / n
and shift N + e, where N is 31 on U55 and U65 and 30 on U85. That the hardware divides like this is a guess;
it is what makes compiled networks equal to their definition.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from npu import isa
from npu.config import Family
from npu.errors import NotModelled
from npu.execution import Execution
from npu.guesses import Guess
from npu.isa import PoolMode
from npu.operation import Operation
from npu.ops.weights import load_scales
from npu.ops.window import accumulate, padded_input, taps
from npu.scaling import ChannelScales, Scale, apply_scale

_COMBINE: dict[PoolMode, np.ufunc] = {PoolMode.MAX: np.maximum, PoolMode.MIN: np.minimum}
_RECIPROCAL_BITS = {Family.U55: 31, Family.U65: 31, Family.U85: 30}


def execute(run: Execution, op: Operation) -> int:
    """All pooling modes."""
    mode = op.command.mode(PoolMode)
    if mode > PoolMode.REDUCE_SUM and op.family is not Family.U85:
        raise NotModelled(f"pooling mode {mode.name} on {op.family.name}")
    if mode is PoolMode.NONE:
        _none(run, op)
        return 0
    if not op.ifm.elements:
        raise NotModelled("pool over padding alone")
    acc = _ACCUMULATE[mode](run, op)
    accumulate(run, op, acc, _scales(run, op, mode), _COMBINE.get(mode, np.add))
    return 0


def _none(run: Execution, op: Operation) -> None:
    """The accumulator as it is (from IFM2, or kept): rescale, convert, copy or transpose wide elements."""
    scales = _scales(run, op, PoolMode.NONE)
    if op.accumulator.source is isa.AccInput.RESET:
        raise NotModelled("pooling mode NONE without accumulator input")
    accumulate(run, op, np.zeros(op.ofm_shape, np.int64), scales)


def _scales(run: Execution, op: Operation, mode: PoolMode) -> ChannelScales:
    """Per-channel bias and scale from the stream, or OFM_SCALE, or none after a division."""
    if op.per_channel:
        return load_scales(run, op)
    if mode is PoolMode.AVERAGE and _divides(op):
        return ChannelScales.uniform(Scale())
    return ChannelScales.uniform(op.ofm_scale)


def _divides(op: Operation) -> bool:
    pad = op.padding
    return op.family is Family.U85 or any((pad.top, pad.left, pad.bottom, pad.right))


def _extreme(run: Execution, op: Operation) -> np.ndarray:
    mode = op.command.mode(PoolMode)
    info = np.iinfo(op.ifm.dtype)
    reduce, fill = (np.maximum, info.min) if mode is PoolMode.MAX else (np.minimum, info.max)
    return _reduce(op, padded_input(run, op, op.ifm.dtype, fill), reduce).astype(np.int64) - op.ifm.zero_point


def _reduce(op: Operation, data: np.ndarray, reduce: np.ufunc) -> np.ndarray:
    """Reduce over the window: along the rows first, then along the columns."""
    kernel = op.kernel
    height, width, _ = op.ofm_shape
    rows = _folded(
        reduce,
        (
            data[:, left : left + (width - 1) * kernel.stride_x + 1 : kernel.stride_x]
            for left in range(0, kernel.width, kernel.dilation_x)
        ),
    )
    return _folded(
        reduce,
        (
            rows[top : top + (height - 1) * kernel.stride_y + 1 : kernel.stride_y]
            for top in range(0, kernel.height, kernel.dilation_y)
        ),
    )


def _folded(reduce: np.ufunc, parts: Iterator[np.ndarray]) -> np.ndarray:
    result = next(parts).copy()
    for part in parts:
        reduce(result, part, out=result)
    return result


def _sum(run: Execution, op: Operation) -> np.ndarray:
    data = padded_input(run, op, np.int64, op.ifm.zero_point)
    return _reduce(op, data - op.ifm.zero_point, np.add)


def _average(run: Execution, op: Operation) -> np.ndarray:
    total = _sum(run, op)
    if not _divides(op):
        return total
    run.assume(Guess.AVERAGE_DIVISION)
    if not op.ofm_scale.is_identity and op.family is Family.U85:
        raise NotModelled("average with an output scale")
    counts = _valid_counts(op)
    result = np.empty_like(total)
    for count in np.unique(counts).tolist():
        where = counts == count
        result[where] = apply_scale(total[where], _reciprocal(op, count))
    return result


def _valid_counts(op: Operation) -> np.ndarray:
    """Number of window elements inside the IFM, int64 [oh, ow]."""
    kernel, pad = op.kernel, op.padding
    axes = (
        (
            op.ofm_shape[0],
            kernel.stride_y,
            kernel.dilation_y,
            kernel.taps[0],
            pad.top,
            pad.bottom,
            kernel.height,
        ),
        (
            op.ofm_shape[1],
            kernel.stride_x,
            kernel.dilation_x,
            kernel.taps[1],
            pad.left,
            pad.right,
            kernel.width,
        ),
    )
    counts = []
    for outputs, stride, dilation, count, before, after, extent in axes:
        end = (outputs - 1) * stride + extent - after
        places = np.arange(outputs)[:, None] * stride + np.arange(count) * dilation
        counts.append(((places >= before) & (places < end)).sum(axis=1))
    return counts[0][:, None] * counts[1]


def _reciprocal(op: Operation, count: int) -> Scale:
    exponent = (count - 1).bit_length()
    bits = _RECIPROCAL_BITS[op.family]
    multiplier = ((1 << (bits + exponent)) + (1 << exponent)) // max(count, 1)
    return Scale(multiplier, bits + exponent, op.ofm_scale.rounding, op.ofm_scale.double_round)


def _reduce_sum(run: Execution, op: Operation) -> np.ndarray:
    """Sum over the IFM depth (and the window, if it is larger than one element)."""
    data = padded_input(run, op, np.int64, op.ifm.zero_point) - op.ifm.zero_point
    return _reduce(op, data.sum(axis=2, keepdims=True), np.add)


def _argmax(run: Execution, op: Operation) -> np.ndarray:
    """Accumulator = index << 16 | value & 0xffff of the largest element, the first of equal ones.

    OFM_SCALE then shifts the value out.
    """
    along_x = op.command.mode(PoolMode) is PoolMode.ARGMAX_X
    lowest = int(np.iinfo(op.ifm.dtype).min)
    data = padded_input(run, op, np.int64, lowest)
    best = np.full(op.ofm_shape, lowest - 1, np.int64)
    index = np.zeros(op.ofm_shape, np.int64)
    for row, column, lines, columns in taps(op):
        part = data[lines, columns]
        better = part > best
        best[better], index[better] = part[better], column if along_x else row
    return index << 16 | best & 0xFFFF


_ACCUMULATE = {
    PoolMode.MAX: _extreme,
    PoolMode.MIN: _extreme,
    PoolMode.SUM: _sum,
    PoolMode.AVERAGE: _average,
    PoolMode.REDUCE_SUM: _reduce_sum,
    PoolMode.ARGMAX_X: _argmax,
    PoolMode.ARGMAX_Y: _argmax,
}
