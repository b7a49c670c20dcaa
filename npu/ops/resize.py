# SPDX-License-Identifier: Apache-2.0
"""OP_RESIZE (U85): output element i lies at (offset + i * step) / n of the IFM, on each axis.

Bilinear: with p the position in units of 1/n, the neighbours floor(p / n) and the next weigh n - f and f, f
    = p mod n.
Nearest: position rounded half up, weight 1. Replicate: position rounded down, weight 1; that this is what
    the name means is a guess. Indices are clamped to the IFM. The accumulator is the weighted
sum times 2^16; OFM_SCALE takes the factor back.
"""

from __future__ import annotations

import numpy as np

from npu.execution import Execution
from npu.guesses import Guess
from npu.isa import ResizeMode
from npu.operation import Operation, ResizeAxis
from npu.ops.window import accumulate
from npu.scaling import ChannelScales

_ACC_SHIFT = 16


def execute(run: Execution, op: Operation) -> int:
    """All modes."""
    mode = op.command.mode(ResizeMode)
    if mode is ResizeMode.REPLICATE:
        run.assume(Guess.RESIZE_REPLICATE)
    assert op.resize is not None, "npu.state gives a resize its axes"
    data = run.load(op.ifm).astype(np.int64) - op.ifm.zero_point
    for axis in (0, 1):
        data = _INTERPOLATE[mode](data, axis, op.ofm_shape[axis], op.resize[axis])
    # The weighted sum fits the accumulator; that its 2^16 does not is how this is written down here.
    accumulate(run, op, data << _ACC_SHIFT, ChannelScales.uniform(op.ofm_scale), checked=False)
    return 0


def _positions(count: int, axis: ResizeAxis) -> np.ndarray:
    return axis.offset + np.arange(count, dtype=np.int64) * axis.step


def _nearest(data: np.ndarray, axis: int, count: int, resize: ResizeAxis) -> np.ndarray:
    index = (2 * _positions(count, resize) + resize.denominator) // (2 * resize.denominator)
    return np.take(data, index.clip(0, data.shape[axis] - 1), axis)


def _replicated(data: np.ndarray, axis: int, count: int, resize: ResizeAxis) -> np.ndarray:
    index = _positions(count, resize) // resize.denominator
    return np.take(data, index.clip(0, data.shape[axis] - 1), axis)


def _bilinear(data: np.ndarray, axis: int, count: int, resize: ResizeAxis) -> np.ndarray:
    index, fraction = np.divmod(_positions(count, resize), resize.denominator)
    last = data.shape[axis] - 1
    shape = [1, 1, 1]
    shape[axis] = count
    fraction = fraction.reshape(shape)
    low, high = np.take(data, index.clip(0, last), axis), np.take(data, (index + 1).clip(0, last), axis)
    return low * (resize.denominator - fraction) + high * fraction


_INTERPOLATE = {
    ResizeMode.BILINEAR: _bilinear,
    ResizeMode.NEAREST: _nearest,
    ResizeMode.REPLICATE: _replicated,
}
