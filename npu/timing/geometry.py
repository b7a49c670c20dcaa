# SPDX-License-Identifier: Apache-2.0
"""How an operation is cut: OFM blocks, their input windows, sub-kernels, microblocks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from npu import isa
from npu.config import Family, NpuConfig
from npu.isa import Upscale
from npu.operation import Kernel, Operation
from npu.timing.hardware import SUB_KERNEL

Span = tuple[int, int]
"""First element and number of elements."""


def ceil_div(number: int, divisor: int) -> int:
    return -(-number // divisor)


@lru_cache(maxsize=1024)
def spans(extent: int, step: int) -> tuple[Span, ...]:
    """An axis cut into steps; the last one is what remains."""
    return tuple((start, min(step, extent - start)) for start in range(0, extent, step))


def windows(
    blocks: Sequence[Span], stride: int, kernel: int, padding: int, extent: int, upscale: Upscale
) -> list[Span]:
    """Rows (or columns) of an IFM of `extent` that OFM blocks read, padding excluded.

    `kernel` and `padding` are in upscaled units, as the registers have them.
    """
    factor = 1 if upscale is Upscale.NONE else 2
    result = []
    for start, size in blocks:
        first = start * stride - padding
        end = min(first + (size - 1) * stride + kernel, extent * factor)
        first = max(first, 0)
        result.append((first // factor, max(0, ceil_div(end, factor) - first // factor)))
    return result


def sub_kernels(kernel: Kernel) -> list[tuple[Span, Span]]:
    """Rows and columns, in taps, of each sub-kernel."""
    rows, columns = kernel.taps
    return [
        (ys, xs)
        for ys in spans(rows, SUB_KERNEL // kernel.dilation_y)
        for xs in spans(columns, SUB_KERNEL // kernel.dilation_x)
    ]


def sub_kernel_taps(kernel: Kernel) -> list[int]:
    """Elements of each sub-kernel."""
    if kernel.height == kernel.width == 1:
        return [1]
    return [ys[1] * xs[1] for ys, xs in sub_kernels(kernel)]


def is_reduction(op: Operation) -> bool:
    """Sums over IFM channels: every OFM depth block needs the whole IFM depth."""
    return op.command.name == "OP_CONV" or is_reduce_sum(op)


def is_reduce_sum(op: Operation) -> bool:
    return op.command.name == "OP_POOL" and op.command.value("mode") == isa.PoolMode.REDUCE_SUM


def has_weights(op: Operation) -> bool:
    """Reads weight streams (a matrix product of two feature maps does not)."""
    return op.command.name == "OP_DEPTHWISE" or (op.command.name == "OP_CONV" and not is_matmul(op))


def is_matmul(op: Operation) -> bool:
    """U85: the second feature map plays the weights."""
    return op.command.name == "OP_CONV" and op.family is Family.U85 and bool(op.command.value("weights_ifm2"))


def part_kernel(op: Operation) -> bool:
    return op.kernel.order is isa.WeightOrder.PART_KERNEL_FIRST


def microblock(config: NpuConfig, op: Operation) -> tuple[int, int, int]:
    """OFM microblock (height, width, depth) of all cores together, except the depth of a U65's core."""
    if config.ofm_ublock is None:
        shape = op.accumulator.microblock
        return *shape, config.ofm_ublock_depth(shape)
    flat = op.ofm_shape[0] == 1 and op.ofm_shape[1] % 2 == 0 and op.kernel.height == 1
    if config.macs >= 256 and flat:
        return 1, 4, config.ofm_ublock[2]
    return config.ofm_ublock


def ifm_block_depth(config: NpuConfig, op: Operation) -> int:
    """IFM channels that are loaded and multiplied together (see `npu.weights.order`)."""
    size = op.ifm.dtype.itemsize
    if config.family is not Family.U85:
        return 16 if part_kernel(op) or size == 2 else 32
    if part_kernel(op):
        return 16
    small = config.macs <= 256 and config.ofm_ublock_depth(op.accumulator.microblock) == 16
    return 32 if size == 4 or small else 64
