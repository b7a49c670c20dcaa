# SPDX-License-Identifier: Apache-2.0
"""Storage order of weights: for each position of a stream, where in the weight tensor its value belongs.

The hardware defines the order as nested loops. Each generator below writes them down outermost first, one
`("oc" | "tap" | "ic", steps)` pair a loop, and lets NumPy run them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial

import numpy as np

from npu.config import Family
from npu.weights.layout import Traversal, WeightFormat, WeightLayout

PADDING = -1
"""Destination of a stream position that belongs to no weight; its value is zero."""

# Padding while offsets are still being added: stays negative, since a tensor has less than 2**30 elements.
_FAR = -(1 << 30)
# A kernel is cut into sub-kernels of at most this many rows and columns, dilation included.
_SUB_KERNEL = 8
# The U85 hands OFM channels to its cores in groups of this many.
_CHANNEL_GROUP = 4

Loop = tuple[str, Sequence[int]]


def weight_order(layout: WeightLayout) -> tuple[np.ndarray, ...]:
    """Destination of every position of every stream of an operation.

    Returns one int32 array for each stream: flat index into the [OC, KH, KW, IC] tensor, or PADDING.

    Raises:
        NotModelled: see WeightLayout.require_modelled.
    """
    layout.require_modelled()
    if layout.config.family is not Family.U85:
        streams = [_u55_stream(layout, core) for core in range(layout.config.cores)]
    elif layout.weight_format is WeightFormat.FAST:
        streams = [_interleave(layout, [_u85_stream(layout, core) for core in range(layout.config.cores)])]
    else:
        streams = [_u85_stream(layout, core) for core in range(layout.config.cores)]
    return tuple(np.maximum(stream, PADDING) for stream in streams)


# U55 and U65 -------------------------------------------------------------------------------------------


def _u55_stream(layout: WeightLayout, core: int) -> np.ndarray:
    """OFM block / IFM block / brick. Core k of n has the channels k, k + n, k + 2n, ..."""
    cores = layout.config.cores
    return _blocks(
        (layout.ofm_depth + cores - 1 - core) // cores,
        (layout.ofm_block_depth + cores - 1 - core) // cores,
        _u55_ifm_block(layout),
        layout,
        partial(_u55_brick, layout),
        channel_step=cores,
        first_channel=core,
    )


def _u55_ifm_block(layout: WeightLayout) -> int:
    return 16 if layout.traversal is Traversal.PART_KERNEL or layout.ifm_bits == 16 else 32


def _u55_brick(layout: WeightLayout, channels: int, ifm_channels: int) -> np.ndarray:
    """Sub-kernel y, x / then the loops of the traversal; IFM ublocks are 8 deep."""
    ublock = layout.ofm_ublock_depth
    ublocks = range(0, channels, ublock)
    parts = []
    for taps in _sub_kernels_by_rows(layout):
        loops: tuple[Loop, ...]
        if layout.traversal is Traversal.PART_KERNEL:
            taps = _rounded(taps, 2 if layout.ifm_bits == 16 else 4)
            ifm_ublocks = range(0, ifm_channels, 8)
            loops = (
                ("ic", ifm_ublocks), ("oc", ublocks), ("tap", taps), ("oc", range(ublock)), ("ic", range(8))
            )  # fmt: skip
        elif layout.traversal is Traversal.DEPTH_FIRST:
            ifm_ublocks = range(0, _u55_ifm_block(layout), 8)
            loops = (
                ("oc", ublocks), ("tap", taps), ("ic", ifm_ublocks), ("oc", range(ublock)), ("ic", range(8))
            )  # fmt: skip
        else:
            loops = (("oc", ublocks), ("tap", _rounded(taps, 4)), ("oc", range(ublock)))
        parts.append(_nest(layout, loops, channels, ifm_channels, channel_step=layout.config.cores))
    return np.concatenate(parts)


def _sub_kernels_by_rows(layout: WeightLayout) -> Iterator[list[int]]:
    """Taps of each sub-kernel in row-major order; sub-kernels row by row."""
    for ys in _spans(layout.kernel_h, _SUB_KERNEL // layout.dilation_y):
        for xs in _spans(layout.kernel_w, _SUB_KERNEL // layout.dilation_x):
            yield [y * layout.kernel_w + x for y in ys for x in xs]


# U85 ---------------------------------------------------------------------------------------------------


def _u85_stream(layout: WeightLayout, core: int) -> np.ndarray:
    """OFM block / IFM block, turning round with every OFM block / brick."""
    return _blocks(
        layout.ofm_depth,
        layout.ofm_block_depth,
        _u85_ifm_block(layout),
        layout,
        partial(_u85_brick, layout, core),
        snake=True,
    )


def _u85_brick(layout: WeightLayout, core: int, channels: int, ifm_channels: int) -> np.ndarray:
    """Sub-kernel x, y / IFM ublock / OFM ublock / tap / step / channel group / channel / IFM channel."""
    ublock, ifm_ublock, step = layout.ofm_ublock_depth, _u85_ifm_ublock(layout), _u85_ifm_step(layout)
    groups = range(core * _CHANNEL_GROUP, ublock, layout.config.cores * _CHANNEL_GROUP)
    parts = []
    for taps in _sub_kernels_by_columns(layout):
        loops: tuple[Loop, ...] = (
            ("ic", range(0, ifm_channels, ifm_ublock)),
            ("oc", range(0, channels, ublock)),
            ("tap", _u85_padded(layout, taps)),
            ("ic", range(0, ifm_ublock, step)),
            ("oc", groups),
            ("oc", range(_CHANNEL_GROUP)),
            ("ic", range(step)),
        )
        parts.append(_nest(layout, loops, channels, ifm_channels))
    return np.concatenate(parts)


def _u85_ifm_block(layout: WeightLayout) -> int:
    if layout.traversal is Traversal.DEPTHWISE:
        return 1
    if layout.traversal is Traversal.PART_KERNEL:
        return 16
    if layout.sparse and layout.ifm_bits == 8:
        return 128
    small = layout.config.macs <= 256 and layout.ofm_ublock_depth == 16 and not layout.sparse
    return 32 if layout.ifm_bits == 32 or small else 64


def _u85_ifm_ublock(layout: WeightLayout) -> int:
    halved = layout.traversal is Traversal.PART_KERNEL and layout.ifm_bits == 16 and not layout.sparse
    return 8 if halved else _u85_ifm_block(layout)


def _u85_ifm_step(layout: WeightLayout) -> int:
    if layout.traversal is Traversal.DEPTHWISE:
        return 1
    return 16 if layout.sparse else 8


def _u85_taps_together(layout: WeightLayout) -> int:
    """Taps that the MAC array takes at once; a sub-kernel is filled up to a multiple."""
    if layout.traversal is Traversal.DEPTH_FIRST:
        return 1
    dense8 = layout.traversal is Traversal.PART_KERNEL and layout.ifm_bits == 8 and not layout.sparse
    return 5 if dense8 else 10


def _u85_padded(layout: WeightLayout, taps: list[int]) -> list[int]:
    """Fill up the taps; depthwise also has empty taps after each group."""
    together = _u85_taps_together(layout)
    taps = _rounded(taps, together)
    if layout.traversal is not Traversal.DEPTHWISE:
        return taps
    if layout.ifm_bits == 8 and layout.config.macs <= 256:
        empty = 0
    else:
        empty = 2 if layout.config.macs <= 512 else 6
    groups = [taps[start : start + together] for start in range(0, len(taps), together)]
    return [tap for group in groups for tap in (*group, *[PADDING] * empty)]


def _sub_kernels_by_columns(layout: WeightLayout) -> Iterator[list[int]]:
    """Taps of each sub-kernel; sub-kernels column by column.

    Inside one: stride phase y, x / row / column, every second row from right to left. Depth-first does not
    separate stride phases.
    """
    strided = layout.traversal is not Traversal.DEPTH_FIRST
    stride_y, stride_x = (layout.stride_y, layout.stride_x) if strided else (1, 1)
    for xs in _spans(layout.kernel_w, _SUB_KERNEL // layout.dilation_x):
        for ys in _spans(layout.kernel_h, _SUB_KERNEL // layout.dilation_y):
            yield [
                y * layout.kernel_w + x
                for phase_y in range(stride_y)
                for phase_x in range(stride_x)
                for row, y in enumerate(ys[phase_y::stride_y])
                for x in xs[phase_x::stride_x][:: -1 if row % 2 else 1]
            ]


def _interleave(layout: WeightLayout, streams: list[np.ndarray]) -> np.ndarray:
    """The fast format's single stream: the cores take turns, a group of taps of an OFM ublock each."""
    ublock = layout.ofm_ublock_depth // layout.config.cores
    turn = ublock * _u85_ifm_ublock(layout) * _u85_taps_together(layout)
    return np.concatenate([stream.reshape(-1, turn) for stream in streams], axis=1).ravel()


# Common to all -----------------------------------------------------------------------------------------


def _blocks(
    depth: int,
    block: int,
    ifm_block: int,
    layout: WeightLayout,
    brick: Callable[[int, int], np.ndarray],
    *,
    channel_step: int = 1,
    first_channel: int = 0,
    snake: bool = False,
) -> np.ndarray:
    """Concatenate `brick(channels, ifm_channels)` over OFM blocks and IFM blocks, moved to its place.

    Blocks of equal size have equal bricks, so each size is made once.
    """
    brick = cache(brick)
    row = layout.kernel_h * layout.kernel_w * layout.ifm_depth

    @cache
    def across_ifm(channels: int, backwards: bool) -> np.ndarray:
        starts = range(0, layout.ifm_depth, ifm_block)[:: -1 if backwards else 1]
        return np.concatenate(
            [brick(channels, min(ifm_block, layout.ifm_depth - start)) + np.int32(start) for start in starts]
        )

    parts = [np.empty(0, np.int32)]  # a core may have no channel
    for number, start in enumerate(range(0, depth, block)):
        origin = np.int32((first_channel + start * channel_step) * row)
        parts.append(across_ifm(min(block, depth - start), snake and number % 2 == 1) + origin)
    return np.concatenate(parts)


def _nest(
    layout: WeightLayout, loops: Sequence[Loop], channels: int, ifm_channels: int, channel_step: int = 1
) -> np.ndarray:
    """Run nested loops, outermost first: destination of each innermost iteration, or a negative number.

    Loops over the same coordinate add up; `channels` and `ifm_channels` are what is inside the tensor.
    """
    origin = np.zeros((1,) * len(loops), np.int32)
    coordinates = {"oc": origin, "tap": origin, "ic": origin}
    for axis, (name, steps) in enumerate(loops):
        shape = [1] * len(loops)
        shape[axis] = len(steps)
        coordinates[name] = coordinates[name] + np.array(steps, np.int32).reshape(shape)
    oc, tap, ic = coordinates["oc"], coordinates["tap"], coordinates["ic"]
    inside = (oc < channels) & (tap != PADDING) & (ic < ifm_channels)
    taps = layout.kernel_h * layout.kernel_w
    return np.where(inside, (oc * (channel_step * taps) + tap) * layout.ifm_depth + ic, _FAR).ravel()


def _rounded(taps: list[int], multiple: int) -> list[int]:
    return taps + [PADDING] * (-len(taps) % multiple)


def _spans(extent: int, step: int) -> Iterator[range]:
    for start in range(0, extent, step):
        yield range(start, min(start + step, extent))
