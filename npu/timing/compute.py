# SPDX-License-Identifier: Apache-2.0
"""Cycles of MAC array, output stage and weight decoder for a block.

The terms for U55 and U65 are Vela's. U85's differ from Vela's in one respect: the positions that fill up the
weight stream (to 5 or 10 kernel elements) cost no MAC cycles, as the FVP's counters show.
"""

from __future__ import annotations

import numpy as np

from npu import isa
from npu.config import Family, NpuConfig
from npu.isa import ElementwiseMode, PoolMode, Storage, Transpose
from npu.operation import Function, Operation
from npu.state import UNARY
from npu.timing.geometry import (
    ceil_div,
    has_weights,
    ifm_block_depth,
    is_reduce_sum,
    microblock,
    part_kernel,
    spans,
    sub_kernel_taps,
)
from npu.timing.hardware import (
    DIVISION_CYCLES,
    FAST_WEIGHTS_PER_CYCLE,
    OUTPUT_RATES,
    OUTPUT_RATES_85,
    STREAM_BYTES_PER_CYCLE,
    WEIGHTS_PER_CYCLE,
    Pipeline,
    output_group,
)

_NO_MACS = frozenset({"OP_ELEMENTWISE", "OP_RESIZE"})
_TRANSPOSED = frozenset({Transpose.WHC, Transpose.WCH, Transpose.CHW, Transpose.CWH})


class MacArray:
    """Cycles of the MAC array for blocks of one operation."""

    def __init__(self, config: NpuConfig, op: Operation, pipeline: Pipeline):
        self._config, self._op = config, op
        self._tap_overhead = pipeline.tap_overhead
        self._taps = sub_kernel_taps(op.kernel)
        self.microblock = microblock(config, op)

    def steps_of_depth(self, depth: int) -> int:
        """Microblocks that a core computes one after the other to cover `depth` channels."""
        cores = 1 if self._config.family is Family.U85 else self._config.cores
        return ceil_div(ceil_div(depth, cores), self.microblock[2])

    def cycles(self, height: int, width: int, depth: int) -> float:
        """For an OFM block of this shape."""
        if self._op.command.name in _NO_MACS:
            return 0
        rows, columns, _ = self.microblock
        places = ceil_div(height, rows) * ceil_div(width, columns)
        if self._config.family is Family.U85:
            return self._cycles_85(places, self.steps_of_depth(depth))
        return self._cycles_5x(places, self.steps_of_depth(depth))

    def _cycles_5x(self, places: int, steps: int) -> float:
        op, size = self._op, self._op.ifm.dtype.itemsize
        channels = op.ifm.shape[2]
        decode = 32 * self.microblock[2] // WEIGHTS_PER_CYCLE
        array = max(decode, 4 * places)
        if op.command.name == "OP_DEPTHWISE":
            return max(decode, 4 * places * size) * steps * sum(ceil_div(n, 4) for n in self._taps)
        if op.command.name == "OP_CONV" and part_kernel(op):
            together = 4 if size == 1 else 2
            return array * steps * ceil_div(channels, 8) * sum(ceil_div(n, together) for n in self._taps)
        if op.command.name == "OP_CONV" or is_reduce_sum(op):
            return array * steps * ceil_div(channels, 32 if size == 1 else 16) * sum(self._taps)
        return places * steps * size * sum(max(4, n) for n in self._taps)

    def _cycles_85(self, places: int, steps: int) -> float:
        op, size = self._op, self._op.ifm.dtype.itemsize
        overhead = self._tap_overhead
        if op.command.name == "OP_DEPTHWISE":
            return sum(self._taps) * (places + overhead) * steps * size
        if op.command.name == "OP_CONV" or is_reduce_sum(op):
            blocks = spans(op.ifm.shape[2], ifm_block_depth(self._config, op))
            passes = sum(places * ceil_div(depth, 8) + overhead for _, depth in blocks)
            return sum(self._taps) * passes * steps * size
        return places * steps * size * sum(max(4, n) for n in self._taps)


# --- output stage -------------------------------------------------------------------------------------------


class OutputStage:
    """Cycles of the output stage for blocks of one operation."""

    def __init__(self, config: NpuConfig, op: Operation):
        self._group = output_group(config)
        rate = _rate_85 if config.family is Family.U85 else _rate_5x
        self._rate = rate(config, op)

    def cycles(self, height: int, width: int, depth: int) -> float:
        """For an OFM block of this shape."""
        return self._rate * height * width * ceil_div(depth, self._group) * self._group


def _rate_85(config: NpuConfig, op: Operation) -> float:
    table = OUTPUT_RATES_85[config.macs]
    mode = op.command.value("mode") if op.command.name == "OP_ELEMENTWISE" else None
    if mode is ElementwiseMode.DIV:
        return DIVISION_CYCLES
    size = op.ofm.dtype.itemsize
    rate = {1: table.bits_8, 2: table.bits_16, 4: table.bits_32, 8: table.bits_64}[size]
    if op.ofm.storage is Storage.CHAINED and size == 4:
        rate = table.chained_32
    if mode is not None and op.ifm2 is not None and op.ifm.dtype.itemsize == 4:
        rate = table.binary_32
    if op.transpose in _TRANSPOSED or op.reverse is isa.Reverse.W:
        return max(rate, table.transpose)
    return max(rate, table.table) if op.activation.function is not Function.NONE else rate


def _rate_5x(config: NpuConfig, op: Operation) -> float:
    table = OUTPUT_RATES[config.macs]
    if op.command.name == "OP_ELEMENTWISE":
        rate = _elementwise_rate(config, op)
    elif op.accumulator.bits == 40:
        rate = table.mul
    elif op.command.name == "OP_POOL" and op.command.value("mode") == PoolMode.MAX:
        rate = table.max_pool
    else:
        rate = table.default
    if op.activation.function is not Function.NONE:
        return max(rate, table.table)
    return max(rate, table.relu) if _clips(op) else rate


def _elementwise_rate(config: NpuConfig, op: Operation) -> float:
    table, mode = OUTPUT_RATES[config.macs], op.command.value("mode")
    if op.ifm.dtype.itemsize == 4:
        return table.unary_32 if mode in UNARY else table.binary_32
    if mode == ElementwiseMode.MUL:
        return table.mul_32 if op.ofm.dtype.itemsize == 4 else table.mul
    if mode in (ElementwiseMode.ADD, ElementwiseMode.SUB):
        scaled = any(scale.shift for scale in op.operand_scales)  # 32-bit operand scaling
        return table.advanced_add if scaled else table.simple_add
    return table.default


def _clips(op: Operation) -> bool:
    if op.activation.clip is None:
        return False
    limits = np.iinfo(op.ofm.dtype)
    return op.activation.clip != (limits.min, limits.max)


# --- weight decoder -----------------------------------------------------------------------------------------


def weight_decoder_cycles(config: NpuConfig, op: Operation, stream_bytes: int) -> float:
    """To decode all weights of an operation once; `stream_bytes` are those of the longest stream."""
    if not has_weights(op):
        return 0.0
    depth = 1 if op.command.name == "OP_DEPTHWISE" else op.ifm.shape[2]
    weights = sum(sub_kernel_taps(op.kernel)) * depth * op.ofm_shape[2] / config.cores
    if config.family is not Family.U85:
        return weights / WEIGHTS_PER_CYCLE
    if op.weights is not None and op.weights.coding is isa.WeightCoding.FWD:
        return weights * config.cores / FAST_WEIGHTS_PER_CYCLE
    return max(weights / FAST_WEIGHTS_PER_CYCLE, stream_bytes / STREAM_BYTES_PER_CYCLE)


# --- work ---------------------------------------------------------------------------------------------------


def multiply_accumulates(op: Operation) -> int:
    """Of a convolution, as `npu.machine` counts them: taps in the padding are work, unused lanes are not."""
    if op.command.name not in ("OP_CONV", "OP_DEPTHWISE"):
        return 0
    height, width, depth = op.ofm_shape
    channels = 1 if op.command.name == "OP_DEPTHWISE" else op.ifm.shape[2]
    return height * width * depth * channels * sum(sub_kernel_taps(op.kernel))
