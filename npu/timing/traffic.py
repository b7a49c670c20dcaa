# SPDX-License-Identifier: Apache-2.0
"""Data beats on the ports: what feature maps cost to read and to write.

A beat is one transfer of the port's width, `beat` bytes. Bricks (NHCWB16) are always moved whole; rows of an
NHWC map cost the beats that their bytes touch, so their alignment counts. Checked against the beat counters
of Arm's FVPs, see docs/validation.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from npu.config import Family, NpuConfig
from npu.featuremap import BRICK, FeatureMap
from npu.isa import Layout, Storage
from npu.operation import Operation
from npu.timing.geometry import (
    Span,
    ceil_div,
    ifm_block_depth,
    is_reduction,
    sub_kernels,
    windows,
)
from npu.timing.hardware import IFM_BUFFER_BYTES


def on_port(fm: FeatureMap | None) -> bool:
    """In memory, rather than a constant or a chaining buffer."""
    return fm is not None and fm.storage not in (Storage.CHAINED, Storage.NONE)


def window_beats(fm: FeatureMap, rows: Span, columns: Span, beat: int) -> int:
    """Beats of a window of all channels."""
    (top, height), (left, width) = rows, columns
    if height <= 0 or width <= 0:
        return 0
    size, depth = fm.dtype.itemsize, fm.shape[2]
    if fm.layout is Layout.NHCWB16:
        return height * width * ceil_div(depth, BRICK) * BRICK * size // beat
    first = fm.bases[0] + top * fm.stride_y + left * fm.stride_x
    length = depth * size
    if width == 1 or fm.stride_x == length:
        return _row_beats(first, fm.stride_y, height, width * length, beat)
    starts = first + np.arange(height)[:, None] * fm.stride_y + np.arange(width) * fm.stride_x
    return int(((starts + length - 1) // beat - starts // beat + 1).sum())


def _row_beats(first: int, stride: int, rows: int, length: int, beat: int) -> int:
    if stride % beat == 0:
        return rows * ((first + length - 1) // beat - first // beat + 1)
    starts = first + np.arange(rows) * stride
    return int(((starts + length - 1) // beat - starts // beat + 1).sum())


def map_beats(fm: FeatureMap, beat: int) -> int:
    """Beats of the whole map."""
    return window_beats(fm, (0, fm.shape[0]), (0, fm.shape[1]), beat)


def resize_beats(op: Operation, beat: int) -> int:
    """A resize reads about two rows of its IFM for each row of the OFM [derived, one sample]."""
    return (2 * op.ofm_shape[0] + 1) * window_beats(op.ifm, (0, 1), (0, op.ifm.shape[1]), beat)


class IfmWindows:
    """Windows of the IFM that the OFM blocks of an operation read, by number of block row and column.

    On U55 and U65 a convolution reads its window once for each sub-kernel; U85 does not.
    """

    def __init__(
        self, config: NpuConfig, op: Operation, rows: Sequence[Span], columns: Sequence[Span], beat: int
    ):
        self._config, self._op, self._beat = config, op, beat
        kernel = op.kernel
        whole = ((0, kernel.height), (0, kernel.width))
        self._parts = [self._axes(rows, columns, *whole)]
        self._whole = self._parts[0]
        self._sub_kernels = sub_kernels(kernel)
        if config.family is not Family.U85 and is_reduction(op) and len(self._sub_kernels) > 1:
            dilation = kernel.dilation_y, kernel.dilation_x
            self._parts = [
                self._axes(rows, columns, *map(_extent, part, dilation)) for part in self._sub_kernels
            ]
        self._memo: dict[tuple[Span, Span], int] = {}
        self._ifm_blocks = ceil_div(op.ifm.shape[2], ifm_block_depth(config, op))

    def _axes(
        self, rows: Sequence[Span], columns: Sequence[Span], taps_y: Span, taps_x: Span
    ) -> tuple[list[Span], list[Span]]:
        """Row and column windows for the kernel rows and columns given by first and number."""
        kernel, pad, ifm, upscale = self._op.kernel, self._op.padding, self._op.ifm, self._op.upscale
        return (
            windows(rows, kernel.stride_y, taps_y[1], pad.top - taps_y[0], ifm.shape[0], upscale),
            windows(columns, kernel.stride_x, taps_x[1], pad.left - taps_x[0], ifm.shape[1], upscale),
        )

    def beats(self, row: int, column: int) -> int:
        """Beats of one pass over the window of a block."""
        if not on_port(self._op.ifm):
            return 0
        return sum([self._window(rows[row], columns[column]) for rows, columns in self._parts])

    def row_key(self, row: int) -> tuple[Span, ...]:
        """Rows of blocks of the same key have windows of the same beats, column by column."""
        ifm = self._op.ifm
        moves = ifm.layout is not Layout.NHCWB16 and ifm.stride_y % self._beat
        parts = self._whole, *self._parts
        return tuple([rows[row] if moves else (0, rows[row][1]) for rows, _ in parts])

    def _window(self, rows: Span, columns: Span) -> int:
        if self._op.ifm.layout is Layout.NHCWB16:
            rows, columns = (0, rows[1]), (0, columns[1])  # its place makes no difference
        beats = self._memo.get((rows, columns))
        if beats is None:
            beats = window_beats(self._op.ifm, rows, columns, self._beat)
            self._memo[rows, columns] = beats
        return beats

    def width(self, column: int) -> int:
        """Columns of a window."""
        return self._whole[1][column][1]

    def fits(self, row: int, column: int) -> bool:
        """The whole window fits a U85's input buffer."""
        ifm = self._op.ifm
        pixels = self._whole[0][row][1] * self._whole[1][column][1]
        size = pixels * ceil_div(ifm.shape[2], BRICK) * BRICK * ifm.dtype.itemsize
        return size <= IFM_BUFFER_BYTES[self._config.macs]

    def repeats(self, row: int, column: int) -> float:
        """Passes that each OFM depth block after the first costs.

        U55, U65: none if the depth fits one IFM block and the kernel one sub-kernel. U85: none if the window
        fits the input buffer; else the snake order of IFM blocks saves one of them at each turn.
        """
        if not is_reduction(self._op):
            return 0.0
        if len(self._sub_kernels) > 1:
            return 1.0
        if self._config.family is not Family.U85:
            return 1.0 if self._ifm_blocks > 1 else 0.0
        return 0.0 if self.fits(row, column) else 1 - 1 / self._ifm_blocks


def _extent(taps: Span, dilation: int) -> Span:
    """First row and number of rows that taps cover once dilated."""
    return taps[0] * dilation, (taps[1] - 1) * dilation + 1
