# SPDX-License-Identifier: Apache-2.0
"""What an operation's registers say about its weight streams."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from npu.config import Family, NpuConfig
from npu.errors import NotModelled


class Traversal(enum.Enum):
    """Order in which a convolution walks its weights."""

    DEPTH_FIRST = "depth-first"
    PART_KERNEL = "part-kernel first"
    DEPTHWISE = "depthwise"


class WeightFormat(enum.Enum):
    """Coding of the weights: the standard compressed stream, or the fast one that only U85 has."""

    STANDARD = "standard"
    FAST = "fast"


@dataclass(frozen=True)
class WeightLayout:
    """Shape and storage order of the weights of one operation.

    Attributes:
        ifm_bits: bits of an IFM element (8, 16 or 32).
        ofm_depth: OFM channels of this operation (a depth slice has its own count).
        ifm_depth: IFM channels; 1 for depthwise.
        kernel_h, kernel_w: taps, that is the kernel before dilation.
        ofm_block_depth: depth of the OFM block; may exceed `ofm_depth`.
        microblock: OFM microblock (height, width) of a U85, (1, 1) on U55 and U65.
    """

    config: NpuConfig
    traversal: Traversal
    weight_format: WeightFormat
    sparse: bool
    ifm_bits: int
    ofm_depth: int
    ifm_depth: int
    kernel_h: int
    kernel_w: int
    stride_y: int
    stride_x: int
    dilation_y: int
    dilation_x: int
    ofm_block_depth: int
    microblock: tuple[int, int] = (1, 1)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(OC, KH, KW, IC) of the decoded tensor; IC is 1 for depthwise."""
        return (self.ofm_depth, self.kernel_h, self.kernel_w, self.ifm_depth)

    @property
    def size(self) -> int:
        """Number of weights in the decoded tensor."""
        return self.ofm_depth * self.kernel_h * self.kernel_w * self.ifm_depth

    @property
    def ofm_ublock_depth(self) -> int:
        """OFM channels that are computed together."""
        return self.config.ofm_ublock_depth(self.microblock)

    @property
    def stream_count(self) -> int:
        """Weight streams of the operation: one for each core, but a single one in the fast format."""
        return 1 if self.weight_format is WeightFormat.FAST else self.config.cores

    def require_modelled(self) -> None:
        """Refuse what no known compiler emits and no source describes.

        Raises:
            NotModelled: fast or sparse weights before U85, fast or sparse depthwise weights, a microblock
                that leaves an OFM ublock of less than one group of four channels, or an OFM block that does
                not reach every core of a U65.
        """
        special = self.sparse or self.weight_format is WeightFormat.FAST
        if special and (self.config.family is not Family.U85 or self.traversal is Traversal.DEPTHWISE):
            what = "sparse" if self.sparse else "fast"
            raise NotModelled(f"{what} weights with {self.traversal.value} traversal on {self.config.name}")
        if self.ofm_ublock_depth < 4:
            raise NotModelled(f"microblock {self.microblock} on {self.config.name}")
        if self.config.family is not Family.U85 and self.ofm_block_depth < self.config.cores:
            raise NotModelled(f"OFM block of depth {self.ofm_block_depth} on {self.config.cores} cores")
