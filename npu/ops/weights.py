# SPDX-License-Identifier: Apache-2.0
"""Weights and scales of an operation, decoded and prepared for exact matrix products."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from npu import isa
from npu.config import NpuConfig
from npu.errors import WeightStreamError
from npu.execution import Execution
from npu.operation import Operation, WeightSource
from npu.scaling import ChannelScales
from npu.weights import Traversal, WeightFormat, WeightLayout, decode_scales, decode_weights

FLOAT32_EXACT = 1 << 24
FLOAT64_EXACT = 1 << 53
_CACHED_OPERATIONS = 256


@dataclass(frozen=True)
class PreparedWeights:
    """Decoded weights.

    Attributes:
        tensor: int16 [oc, kh, kw, ic], depthwise [c, kh, kw, 1].
        matrix: the same as a floating-point matrix [kh * kw * ic, oc] (depthwise [kh * kw, c]), in the
            narrowest type in which every partial sum of a product with the IFM type is exact.
        sums: int64 [oc], sum of the weights of a channel.
        bound: largest magnitude of an accumulator for raw (not zero-point corrected) IFM elements.
    """

    tensor: np.ndarray
    matrix: np.ndarray
    sums: np.ndarray
    bound: int


@lru_cache(maxsize=_CACHED_OPERATIONS)
def _prepare(layout: WeightLayout, streams: tuple[bytes, ...], largest: int) -> PreparedWeights:
    tensor = decode_weights(layout, streams)
    return prepare(tensor, largest)


def prepare(tensor: np.ndarray, largest: int) -> PreparedWeights:
    """Matrix and bounds of a weight tensor for IFM elements of magnitude up to `largest`."""
    flat = tensor.reshape(len(tensor), -1)
    norm = int(np.abs(flat.astype(np.int32)).sum(axis=1, dtype=np.int64).max())
    bound = norm * largest
    dtype = np.float32 if bound < FLOAT32_EXACT else np.float64
    matrix = np.ascontiguousarray(flat.T.astype(dtype))
    return PreparedWeights(tensor, matrix, flat.sum(axis=1, dtype=np.int64), bound)


@lru_cache(maxsize=_CACHED_OPERATIONS)
def _scales(config: NpuConfig, depth: int, bits: int, streams: tuple[bytes, ...]):
    return decode_scales(config, depth, bits, streams)


def element_magnitude(dtype: np.dtype) -> int:
    """Largest magnitude of an element."""
    info = np.iinfo(dtype)
    return max(-int(info.min), int(info.max))


def _fetch(run: Execution, region: int, streams: tuple[tuple[int, int], ...]) -> tuple[bytes, ...]:
    return tuple(run.bytes_at(region, base, length) if length else b"" for base, length in streams)


@contextmanager
def _located(op: Operation) -> Iterator[None]:
    """Errors of a weight stream, which know their place in it, get that of the command too."""
    try:
        yield
    except WeightStreamError as error:
        raise WeightStreamError(str(error), opcode=op.command.name, offset=op.command.offset) from error


def _source(op: Operation) -> WeightSource:
    assert op.weights is not None, "npu.state gives convolutions and pools a weight source"
    return op.weights


def layout_of(config: NpuConfig, op: Operation) -> WeightLayout:
    """What a convolution's registers say about its weight streams."""
    source = _source(op)
    depthwise = op.command.name == "OP_DEPTHWISE"
    if depthwise:
        traversal = Traversal.DEPTHWISE
    elif op.kernel.order is isa.WeightOrder.PART_KERNEL_FIRST:
        traversal = Traversal.PART_KERNEL
    else:
        traversal = Traversal.DEPTH_FIRST
    return WeightLayout(
        config=config,
        traversal=traversal,
        weight_format=WeightFormat.FAST if source.coding is isa.WeightCoding.FWD else WeightFormat.STANDARD,
        sparse=source.sparse,
        ifm_bits=8 * op.ifm.dtype.itemsize,
        ofm_depth=op.ofm_shape[2],
        ifm_depth=1 if depthwise else op.ifm.shape[2],
        kernel_h=op.kernel.taps[0],
        kernel_w=op.kernel.taps[1],
        stride_y=op.kernel.stride_y,
        stride_x=op.kernel.stride_x,
        dilation_y=op.kernel.dilation_y,
        dilation_x=op.kernel.dilation_x,
        ofm_block_depth=op.ofm_block[2],
        microblock=op.accumulator.microblock,
    )


def load_weights(run: Execution, op: Operation) -> PreparedWeights:
    """The operation's weight tensor out of its weight streams."""
    layout, source = layout_of(run.config, op), _source(op)
    streams = _fetch(run, source.region, source.streams[: layout.stream_count])
    with _located(op):
        return _prepare(layout, streams, element_magnitude(op.ifm.dtype))


def load_scales(run: Execution, op: Operation) -> ChannelScales:
    """Bias, multiplier and shift of every OFM channel out of the scale streams.

    The rounding rule is the register's. With global scaling the register also gives multiplier and shift.
    """
    depth = op.ofm_shape[2]
    source = _source(op)
    streams = _fetch(run, source.scale_region, source.scale_streams[: run.config.cores])
    with _located(op):
        scales = _scales(run.config, depth, op.accumulator.bits, streams)
    rule = op.ofm_scale
    if op.per_channel:
        return ChannelScales(scales.bias, scales.scale, scales.shift, rule.rounding, rule.double_round)
    return ChannelScales.uniform(rule, depth).with_bias(scales.bias)
