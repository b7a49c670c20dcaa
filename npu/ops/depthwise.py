# SPDX-License-Identifier: Apache-2.0
"""OP_DEPTHWISE: accumulator = sum over the kernel of (ifm - ifm zero point) * weight, channel by channel.

Done as a sum over kernel elements of whole rows of pixels; arithmetic and zero point as in a convolution.
"""

from __future__ import annotations

import numpy as np

from npu.execution import Execution
from npu.operation import Operation
from npu.ops.output import OutputStage
from npu.ops.weights import load_scales, load_weights
from npu.ops.window import accumulate, is_plain, padded_input, taps

_BLOCK = 1 << 16


def execute(run: Execution, op: Operation) -> int:
    """Depthwise convolution; IFM and OFM depth are equal."""
    height, width, depth = op.ofm_shape
    weights = load_weights(run, op)
    scales = load_scales(run, op).with_bias(-op.ifm.zero_point * weights.sums)
    data = padded_input(run, op, weights.matrix.dtype, op.ifm.zero_point)
    factors = [np.tile(row, width).reshape(width, depth) for row in weights.matrix]
    plain = is_plain(op)
    if plain:
        stage = OutputStage(run, op, scales, weights.bound)
    else:
        total = np.empty(op.ofm_shape, np.int64)
    step = max(1, _BLOCK // (width * depth))
    for top in range(0, height, step):
        acc = _block(op, data, factors, top, min(step, height - top))
        if plain:
            stage.rows(top, acc)
        else:
            total[top : top + step] = acc
    if plain:
        stage.close()
    else:
        accumulate(run, op, total, scales)
    return height * width * depth * len(factors)


def _block(op: Operation, data: np.ndarray, factors: list[np.ndarray], top: int, rows: int) -> np.ndarray:
    """Accumulators of output rows top to top + rows."""
    data = data[top * op.kernel.stride_y :]
    acc = np.zeros((rows, *op.ofm_shape[1:]), data.dtype)
    product = np.empty_like(acc)
    for factor, (_, _, lines, columns) in zip(factors, taps(op), strict=True):
        np.multiply(data[lines, columns][:rows], factor, out=product)
        acc += product
    return acc
