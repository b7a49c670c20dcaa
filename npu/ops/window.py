# SPDX-License-Identifier: Apache-2.0
"""The padded, upscaled input of a windowed operation, and the accumulator handling such operations share."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from npu import isa
from npu.errors import NotModelled, StreamError
from npu.execution import Execution
from npu.featuremap import MAX_ELEMENTS
from npu.operation import Operation
from npu.ops.output import OutputStage
from npu.scaling import ChannelScales, magnitude


def padded_input(run: Execution, op: Operation, dtype: type | np.dtype, fill: int) -> np.ndarray:
    """The IFM with padding of `fill`: [(oh - 1) * stride + kh, (ow - 1) * stride + kw, c].

    Upscaling doubles both axes: by repeating, or by putting elements of value `fill` in between. The IFM may
    be empty: a window then lies in the padding alone (edges of a transposed convolution).
    """
    kernel, pad = op.kernel, op.padding
    height, width, _ = op.ofm_shape
    shape = (
        (height - 1) * kernel.stride_y + kernel.height,
        (width - 1) * kernel.stride_x + kernel.width,
        op.ifm.shape[2],
    )
    if np.prod(shape, dtype=np.float64) > MAX_ELEMENTS:
        raise NotModelled(f"padded input of shape {shape}")
    if not op.ifm.elements:
        return np.full(shape, fill, dtype)
    if shape == op.ifm.shape and op.upscale is isa.Upscale.NONE:
        return run.load(op.ifm, dtype)
    target = np.full(shape, fill, dtype)
    inner = target[pad.top : shape[0] - pad.bottom, pad.left : shape[1] - pad.right]
    if op.upscale is isa.Upscale.NONE:
        run.load_into(op.ifm, inner)
        return target
    small = run.load(op.ifm)
    inner[::2, ::2] = small
    if op.upscale is isa.Upscale.NEAREST:
        rows, columns, _ = inner.shape
        inner[:, 1::2] = inner[:, : columns // 2 * 2 : 2]
        inner[1::2] = inner[: rows // 2 * 2 : 2]
    return target


MAX_TAPS = 1 << 16


def taps(op: Operation) -> Iterator[tuple[int, int, slice, slice]]:
    """(row, column, input rows, input columns) of every kernel element: the input elements it meets."""
    kernel = op.kernel
    height, width, _ = op.ofm_shape
    if kernel.taps[0] * kernel.taps[1] > MAX_TAPS:
        raise NotModelled(f"kernel of {kernel.taps[0]} x {kernel.taps[1]} elements")
    for row in range(kernel.taps[0]):
        for column in range(kernel.taps[1]):
            top, left = row * kernel.dilation_y, column * kernel.dilation_x
            yield (
                row,
                column,
                slice(top, top + (height - 1) * kernel.stride_y + 1, kernel.stride_y),
                slice(left, left + (width - 1) * kernel.stride_x + 1, kernel.stride_x),
            )


class RowAccumulator:
    """Takes an operation's accumulators from the top row down and passes them on to where they belong.

    They go straight to the output stage, or are collected where the operation joins them with others (U85).
    """

    def __init__(
        self, run: Execution, op: Operation, scales: ChannelScales, correction: np.ndarray, bound: int
    ):
        """
        Args:
            correction: int64[c] that the accumulators lack (zero point times sum of weights).
            bound: a magnitude no accumulator (without bias and correction) exceeds.
        """
        self._run, self._op, self._scales, self._correction = run, op, scales, correction
        self._stage: OutputStage | None = None
        if op.accumulator.source is isa.AccInput.RESET and op.accumulator.output:
            self._stage = OutputStage(run, op, scales.with_bias(correction), bound)
        else:
            self._total = np.empty(op.ofm_shape, np.int64)

    def rows(self, top: int, acc: np.ndarray) -> None:
        """Accumulators [rows, w, c] (exact integers of any type) of the rows from `top` on."""
        if self._stage is not None:
            self._stage.rows(top, acc)
        else:
            self._total[top : top + len(acc)] = acc

    def close(self) -> None:
        """All rows have come."""
        if self._stage is not None:
            self._stage.close()
        else:
            accumulate(self._run, self._op, self._total + self._correction, self._scales)


def accumulate(
    run: Execution,
    op: Operation,
    acc: np.ndarray,
    scales: ChannelScales,
    combine: Callable[[np.ndarray, np.ndarray], np.ndarray] = np.add,
    *,
    checked: bool = True,
) -> None:
    """Output stage for a whole int64 accumulator [h, w, c], joined with what it has to start from.

    U85 can start from the accumulator the operation before kept, or from IFM2, and can keep the accumulator
    for the next operation instead of storing a result. `combine` is how a new value joins: sum, maximum or
    minimum. `checked`: the values must fit the accumulator.
    """
    if acc.shape != op.ofm_shape:
        raise StreamError(f"result of shape {acc.shape} for an OFM of shape {op.ofm_shape}")
    source = op.accumulator.source
    if source is isa.AccInput.IFM2:
        acc = combine(acc, ifm2_accumulator(run, op))
    elif source is isa.AccInput.KEEP:
        if run.accumulator is None or run.accumulator.shape != acc.shape:
            raise StreamError("no accumulator of this shape has been kept")
        acc = combine(acc, run.accumulator)
    run.accumulator = None
    if not op.accumulator.output:
        run.accumulator = acc
        return
    # A power of two: one requantiser then serves many operations.
    stage = OutputStage(run, op, scales, 1 << magnitude(acc).bit_length(), checked=checked)
    stage.rows(0, np.ascontiguousarray(acc))
    stage.close()


def ifm2_accumulator(run: Execution, op: Operation) -> np.ndarray:
    """Accumulator values [h, w, c] loaded from IFM2."""
    if op.ifm2 is None:
        raise NotModelled("accumulator from IFM2 in an operation that has none")
    return run.load(op.ifm2).astype(np.int64) - op.ifm2.zero_point
