# SPDX-License-Identifier: Apache-2.0
"""The output stage that ends every operation: bias, scale, zero point, activation, store.

value = (accumulator + bias) * scale, rounded (npu.scaling)
value = value + OFM zero point
tanh and sigmoid act on this value; otherwise it is clipped to [ACTIVATION_MIN, ACTIVATION_MAX] or, with
clipping off, wraps to the result type; a table then maps it; the result is stored.
"""

from __future__ import annotations

import numpy as np

from npu.errors import NotModelled
from npu.execution import Execution
from npu.guesses import Guess
from npu.operation import Function, Operation
from npu.ops import functions
from npu.scaling import ChannelScales, requantiser


class OutputStage:
    """Output stage of one operation, fed with accumulators from the top row down."""

    def __init__(
        self, run: Execution, op: Operation, scales: ChannelScales, bound: int, *, checked: bool = True
    ):
        """
        Args:
            scales: of every OFM channel, or one for all.
            bound: largest magnitude of the accumulators that will come (without bias).
            checked: the values come out of accumulators, whose width they must fit.
        """
        self._op = op
        self._activation = op.activation
        self._store = run.store(op)
        self._table = _table(run, op)
        self._limit = _accumulator_limit(op, scales, bound) if checked else None
        self._bias = scales.bias
        smooth = self._activation.function in (Function.TANH, Function.SIGMOID)
        if smooth:
            run.assume(Guess.SMOOTH_TABLE)
        self._type = np.dtype(np.int64) if smooth else self._activation.table_input or op.ofm.dtype
        limits = None if smooth else self._activation.clip
        self._requantise = requantiser(scales, op.ofm.zero_point, limits, bound)

    def rows(self, top: int, acc: np.ndarray) -> None:
        """Finish `acc` [rows, w, c] (exact integers of any type, C-contiguous) and store it at row `top`."""
        if self._limit is not None:
            self._check_range(acc, self._limit)
        result = np.empty(acc.shape, self._type)
        self._requantise(acc.reshape(-1), result.reshape(-1))
        self._store.rows(top, self._activate(result))

    def _activate(self, values: np.ndarray) -> np.ndarray:
        function = self._activation.function
        if function is Function.NONE:
            return values
        if self._table is not None:
            return functions.lookup(values, self._table, self._op.ofm.dtype)
        smooth = functions.tanh if function is Function.TANH else functions.sigmoid
        limits = self._activation.clip or functions.INT16_LIMITS
        return np.clip(smooth(values), *limits).astype(self._op.ofm.dtype)

    def _check_range(self, acc: np.ndarray, limit: int) -> None:
        values = acc.astype(np.int64) + self._bias
        if max(int(values.max()), -int(values.min())) > limit:
            raise NotModelled(f"accumulator overflow beyond {self._op.accumulator.bits} bits")

    def close(self) -> None:
        """All rows have come."""
        self._store.close()


def _accumulator_limit(op: Operation, scales: ChannelScales, bound: int) -> int | None:
    """Magnitude to check accumulators against, None where the bound rules an overflow out.

    What the hardware does on overflow is not published, so it is an error rather than a guess.
    """
    limit = 1 << (op.accumulator.bits - 1)
    largest = bound + max(abs(int(scales.bias.min())), abs(int(scales.bias.max())))
    return limit if largest > limit else None


def _table(run: Execution, op: Operation) -> np.ndarray | None:
    activation = op.activation
    if activation.table_input is None:
        return None
    if activation.table_input.itemsize > 1:
        return run.table(activation.table_offset, functions.TABLE16_BYTES).view("<i2").reshape(-1, 2)
    return run.table(activation.table_offset, 256 * op.ofm.dtype.itemsize).view(op.ofm.dtype)
