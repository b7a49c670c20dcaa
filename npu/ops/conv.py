# SPDX-License-Identifier: Apache-2.0
"""OP_CONV: accumulator = sum over kernel and IFM depth of (ifm - ifm zero point) * weight.

The zero point is folded into the bias (sum of the weights), so products are of raw elements; they are matrix
products in a floating-point type wide enough for every partial sum to be exact.
"""

from __future__ import annotations

import numpy as np

from npu.errors import NotModelled
from npu.execution import Execution
from npu.operation import Operation
from npu.ops.weights import PreparedWeights, element_magnitude, load_scales, load_weights, prepare
from npu.ops.window import RowAccumulator, padded_input
from npu.scaling import ChannelScales

MAX_MACS = 1 << 38
_BLOCK = 1 << 18
_MAX_PRODUCT = 1 << 24


def execute(run: Execution, op: Operation) -> int:
    """Convolution with weights from a stream, or from IFM2 (matrix product, U85)."""
    if op.weights is None:
        return _matmul(run, op)
    macs = _macs(op)
    weights = load_weights(run, op)
    _convolve(run, op, weights, load_scales(run, op))
    return macs


def _macs(op: Operation) -> int:
    height, width, depth = op.ofm_shape
    macs = height * width * depth * op.kernel.taps[0] * op.kernel.taps[1] * op.ifm.shape[2]
    if macs > MAX_MACS:
        raise NotModelled(f"operation of {macs} MACs (at most {MAX_MACS})")
    return macs


def _matmul(run: Execution, op: Operation) -> int:
    """IFM2 is read as [1, oc, ic] and plays the weights; one scale for all channels, no bias."""
    if op.kernel.taps != (1, 1):
        raise NotModelled(f"{op.kernel.taps[0]}x{op.kernel.taps[1]} kernel with weights from IFM2")
    macs = _macs(op)
    assert op.ifm2 is not None, "npu.state gives a convolution without weights its IFM2"
    tensor = run.load(op.ifm2)[0].astype(np.int32) - op.ifm2.zero_point
    weights = prepare(tensor[:, None, None, :], element_magnitude(op.ifm.dtype))
    _convolve(run, op, weights, ChannelScales.uniform(op.ofm_scale, op.ofm_shape[2]))
    return macs


def _convolve(run: Execution, op: Operation, weights: PreparedWeights, scales: ChannelScales) -> None:
    height, width, depth = op.ofm_shape
    data = padded_input(run, op, weights.matrix.dtype, op.ifm.zero_point)
    windows = _windows(data, op)
    acc = RowAccumulator(run, op, scales, -op.ifm.zero_point * weights.sums, weights.bound)
    step = max(1, _BLOCK // (width * max(depth, len(weights.matrix))))
    for top in range(0, height, step):
        acc.rows(top, _products(windows[top : top + step], weights.matrix))
    acc.close()


def _products(windows: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Accumulators [rows, ow, oc] of windows [rows, ow, kh, kw, c]; wide rows in pieces to bound memory."""
    rows, width = windows.shape[:2]
    piece = max(1, _MAX_PRODUCT // (rows * len(matrix)))
    if piece >= width:
        return (windows.reshape(-1, len(matrix)) @ matrix).reshape(rows, width, -1)
    result = np.empty((rows, width, matrix.shape[1]), matrix.dtype)
    for left in range(0, width, piece):
        part = windows[:, left : left + piece]
        columns = part.reshape(-1, len(matrix))
        result[:, left : left + piece] = (columns @ matrix).reshape(*part.shape[:2], -1)
    return result


def _windows(data: np.ndarray, op: Operation) -> np.ndarray:
    """View [oh, ow, kh, kw, c] of the padded input."""
    kernel = op.kernel
    stride_y, stride_x, stride_c = data.strides
    return np.lib.stride_tricks.as_strided(
        data,
        (*op.ofm_shape[:2], *kernel.taps, data.shape[2]),
        (
            kernel.stride_y * stride_y,
            kernel.stride_x * stride_x,
            kernel.dilation_y * stride_y,
            kernel.dilation_x * stride_x,
            stride_c,
        ),
        writeable=False,
    )
