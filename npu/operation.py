# SPDX-License-Identifier: Apache-2.0
"""What one operation command asks for, read out of the latched registers and freed of family differences."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from npu import isa
from npu.config import Family
from npu.featuremap import FeatureMap
from npu.scaling import Scale
from npu.stream import Command


class Kernel(NamedTuple):
    """Window of a convolution or pool; `height` and `width` are the dilated extent."""

    height: int = 1
    width: int = 1
    stride_y: int = 1
    stride_x: int = 1
    dilation_y: int = 1
    dilation_x: int = 1
    order: isa.WeightOrder = isa.WeightOrder.DEPTH_FIRST

    @property
    def taps(self) -> tuple[int, int]:
        """Elements per column and per row."""
        return (self.height - 1) // self.dilation_y + 1, (self.width - 1) // self.dilation_x + 1


class Padding(NamedTuple):
    """Rows and columns outside the IFM that the window reaches, in upscaled units."""

    top: int = 0
    left: int = 0
    bottom: int = 0
    right: int = 0


@dataclass(frozen=True)
class Accumulator:
    """`source` is what it starts from; with `output` off it is kept and nothing is stored."""

    bits: int
    source: isa.AccInput = isa.AccInput.RESET
    output: bool = True
    microblock: tuple[int, int] = (1, 1)


class Function(enum.Enum):
    NONE = "none"
    TANH = "tanh"
    SIGMOID = "sigmoid"
    TABLE = "table"


@dataclass(frozen=True)
class Activation:
    """Last step of the output stage.

    Attributes:
        clip: limits before the table, inclusive; None lets the value wrap to the result type.
        table_input: element type that indexes the table.
        table_offset: byte offset of the table in LUT memory.
    """

    function: Function
    clip: tuple[int, int] | None
    table_input: np.dtype | None = None
    table_offset: int = 0


@dataclass(frozen=True)
class WeightSource:
    """Where weights and scales come from: (base, length) of every stream, core by core."""

    region: int
    streams: tuple[tuple[int, int], ...]
    scale_region: int
    scale_streams: tuple[tuple[int, int], ...]
    coding: isa.WeightCoding = isa.WeightCoding.SWD
    sparse: bool = False


@dataclass(frozen=True)
class ResizeAxis:
    """Position of output element i: (offset + i * step) / denominator, in IFM elements."""

    denominator: int
    offset: int
    step: int


@dataclass(frozen=True)
class Operation:
    """A convolution, pool, elementwise or resize command with its operands.

    Attributes:
        command: the command that started it (name, mode fields, byte offset).
        ofm: shape is the one in memory; `ofm_shape` the one before transposition.
        operand_scales: input scaling of the two elementwise operands.
        ifm2_first: the operands are exchanged (U55/U65).
    """

    command: Command
    family: Family
    ifm: FeatureMap
    ofm: FeatureMap
    ofm_shape: tuple[int, int, int]
    ofm_block: tuple[int, int, int]
    blockdep: int
    transpose: isa.Transpose
    reverse: isa.Reverse
    accumulator: Accumulator
    activation: Activation
    ofm_scale: Scale
    per_channel: bool
    ifm2: FeatureMap | None = None
    ifm2_first: bool = False
    operand_scales: tuple[Scale, Scale] = (Scale(), Scale())
    kernel: Kernel = field(default_factory=Kernel)
    padding: Padding = field(default_factory=Padding)
    upscale: isa.Upscale = isa.Upscale.NONE
    weights: WeightSource | None = None
    resize: tuple[ResizeAxis, ResizeAxis] | None = None


@dataclass(frozen=True)
class DmaPlace:
    """Source or destination of a transfer; `internal` addresses the on-chip table memory."""

    region: int
    internal: bool
    address: int
    stride0: int
    stride1: int
    indexed: bool = False


@dataclass(frozen=True)
class DmaTransfer:
    """`size1` planes of `size0` rows of `length` bytes.

    Attributes:
        index_region, index_address, index_skip: place of the int32 indices and bytes skipped after each.
        index_max: largest permitted index.
    """

    command: Command
    source: DmaPlace
    destination: DmaPlace
    length: int
    size0: int
    size1: int
    index_region: int = 0
    index_address: int = 0
    index_skip: int = 0
    index_max: int = 0
