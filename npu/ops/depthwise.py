# SPDX-License-Identifier: Apache-2.0
"""OP_DEPTHWISE: accumulator = sum over the kernel of (ifm - ifm zero point) * weight, channel by channel.

Done as a sum over kernel elements of whole rows of pixels; arithmetic and zero point as in a convolution.
"""

from __future__ import annotations

import numpy as np

from npu.execution import Execution
from npu.operation import Operation
from npu.ops.weights import load_scales, load_weights
from npu.ops.window import RowAccumulator, padded_input, taps

_BLOCK = 1 << 16


def execute(run: Execution, op: Operation) -> int:
    """Depthwise convolution; IFM and OFM depth are equal."""
    height, width, depth = op.ofm_shape
    weights = load_weights(run, op)
    data = padded_input(run, op, weights.matrix.dtype, op.ifm.zero_point)
    factors = [_row_of(factor, width) for factor in weights.matrix]
    correction = -op.ifm.zero_point * weights.sums
    acc = RowAccumulator(run, op, load_scales(run, op), correction, weights.bound)
    step = max(1, _BLOCK // (width * depth))
    for top in range(0, height, step):
        acc.rows(top, _block(op, data, factors, top, min(step, height - top)))
    acc.close()
    return height * width * depth * len(factors)


def _row_of(factor: np.ndarray, width: int) -> np.ndarray:
    """A kernel element's weights [c] for a whole row of pixels: with few channels, longer inner loops."""
    if factor.size * width > _BLOCK:
        return factor
    return np.tile(factor, width).reshape(width, -1)


def _block(op: Operation, data: np.ndarray, factors: list[np.ndarray], top: int, rows: int) -> np.ndarray:
    """Accumulators of output rows top to top + rows."""
    data = data[top * op.kernel.stride_y :]
    acc = np.zeros((rows, *op.ofm_shape[1:]), data.dtype)
    product = np.empty_like(acc)
    for factor, (_, _, lines, columns) in zip(factors, taps(op), strict=True):
        np.multiply(data[lines, columns][:rows], factor, out=product)
        acc += product
    return acc
