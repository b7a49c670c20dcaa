# SPDX-License-Identifier: Apache-2.0
"""One-convolution TOSA graphs, compiled by Vela: where the weight tests get real streams from."""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from ethosu.vela import vela
from serializer import tosa_serializer as ts
from tosa.RoundingMode import RoundingMode


@dataclass(frozen=True)
class OneLayer:
    """A convolution with int8 weights and a per-channel rescale to the input's type.

    `depthwise` has one output channel for each of `ifm_depth` input channels and ignores `ofm_depth`.
    `distinct` limits the number of different weight values, `sparse` keeps at most two of every four.
    """

    ifm_depth: int = 16
    ofm_depth: int = 16
    kernel: tuple[int, int] = (3, 3)
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    size: tuple[int, int] = (16, 16)
    ifm_bits: int = 8
    depthwise: bool = False
    sparse: bool = False
    distinct: int = 256
    zeros: float = 0.0
    seed: int = 0

    def weights(self) -> np.ndarray:
        """int8 [OC, KH, KW, IC]; depthwise [OC, KH, KW, 1]."""
        rng = np.random.default_rng(self.seed)
        depths = (self.ifm_depth, 1) if self.depthwise else (self.ofm_depth, self.ifm_depth)
        shape = (depths[0], *self.kernel, depths[1])
        values = rng.choice(np.arange(-127, 128), min(self.distinct, 255), replace=False)
        weights = rng.choice(values, shape)
        weights[rng.random(shape) < self.zeros] = 0
        if self.sparse:
            keep = np.argsort(rng.random((*shape[:3], shape[3] // 4, 4)), axis=-1) < 2
            weights = weights * keep.reshape(shape)
        return weights.astype(np.int8)

    def biases(self) -> np.ndarray:
        """int64 [OC]: 32 bits wide, 48 for 16-bit input."""
        bound = 1 << (30 if self.ifm_bits == 8 else 36)
        return np.random.default_rng(self.seed + 1).integers(-bound, bound, len(self.weights()))

    def scales(self) -> tuple[np.ndarray, np.ndarray]:
        """Multiplier and shift of the rescale for each output channel, int64 [OC] each."""
        rng = np.random.default_rng(self.seed + 2)
        channels = len(self.weights())
        top = 30 if self.ifm_bits == 8 else 14
        return rng.integers(1 << top, 2 << top, channels), rng.integers(top + 8, top + 16, channels)


def tosa_graph(layer: OneLayer) -> bytes:
    """The layer as a serialised TOSA 1.0 graph."""
    graph = ts.TosaSerializer("", tosa_version_major=1, tosa_version_minor=0, tosa_version_patch=0)
    graph.tosa_version_draft = False
    narrow, wide = (
        (ts.DType.INT8, ts.DType.INT32) if layer.ifm_bits == 8 else (ts.DType.INT16, ts.DType.INT48)
    )
    weights = layer.weights()
    channels = len(weights)
    height, width = (
        -(-(extent - 1) // step) + 1 for extent, step in zip(layer.size, layer.stride, strict=True)
    )
    ifm = graph.addPlaceholder([1, *layer.size, layer.ifm_depth], narrow, None)
    if layer.depthwise:
        weights = np.transpose(weights, (1, 2, 0, 3))
    operands = [
        ifm.name,
        graph.addConst(weights.shape, ts.DType.INT8, weights).name,
        graph.addConst([channels], wide, layer.biases()).name,
        graph.addConst([1], narrow, np.zeros(1)).name,
        graph.addConst([1], ts.DType.INT8, np.zeros(1)).name,
    ]
    accumulator = graph.addIntermediate([1, height, width, channels], wide)
    graph.addOperator(_operator(layer), operands, [accumulator.name], _convolution(layer, wide))
    _rescale(graph, layer, accumulator, narrow, wide)
    return bytes(graph.serialize())


def _operator(layer: OneLayer) -> int:
    return ts.TosaOp.Op.DEPTHWISE_CONV2D if layer.depthwise else ts.TosaOp.Op.CONV2D


def _convolution(layer: OneLayer, wide: int) -> ts.TosaSerializerAttribute:
    attribute = ts.TosaSerializerAttribute()
    add = attribute.DepthwiseConv2dAttribute if layer.depthwise else attribute.Conv2dAttribute
    pads = []
    for extent, taps, spread, step in zip(
        layer.size, layer.kernel, layer.dilation, layer.stride, strict=True
    ):
        total = (taps - 1) * spread + -(
            extent - 1
        ) % step  # the last window must end exactly at the padded edge
        pads += [total // 2, total - total // 2]
    add(pads, list(layer.stride), list(layer.dilation), False, wide)
    return attribute


def _rescale(
    graph: ts.TosaSerializer, layer: OneLayer, accumulator: ts.TosaSerializerTensor, narrow: int, wide: int
) -> None:
    multiplier, shift = layer.scales()
    channels = [len(multiplier)]
    operands = [
        accumulator.name,
        graph.addConst(channels, ts.DType.INT32 if layer.ifm_bits == 8 else ts.DType.INT16, multiplier).name,
        graph.addConst(channels, ts.DType.INT8, shift).name,
        graph.addConst([1], wide, np.zeros(1)).name,
        graph.addConst([1], narrow, np.zeros(1)).name,
    ]
    result = graph.addOutput(accumulator.shape, narrow)
    attribute = ts.TosaSerializerAttribute()
    attribute.RescaleAttribute(layer.ifm_bits == 8, RoundingMode.SINGLE_ROUND, True, False, False)
    graph.addOperator(ts.TosaOp.Op.RESCALE, operands, [result.name], attribute)


# With all memory on chip Vela takes the U85's fast weight format where that decodes faster, not only where
# it is smaller.
_U85_FLAGS = (
    "--config=Arm/vela.ini",
    "--system-config=Ethos_U85_SYS_DRAM_Mid",
    "--memory-mode=Sram_Only",
)


def compile_layer(layer: OneLayer, npu: str, flags: Sequence[str] = ()) -> tuple[bytes, bytes]:
    """Vela's command stream (with driver actions) and constants for one layer."""
    if npu.startswith("ethos-u85"):
        flags = (*_U85_FLAGS, *flags)
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        path = Path(folder, "layer.tosa")
        path.write_bytes(tosa_graph(layer))
        vela.main(
            [
                str(path),
                f"--accelerator-config={npu}",
                "--output-format=raw",
                f"--output-dir={folder}",
                *flags,
            ]
        )
        with np.load(Path(folder, "layer_vela.npz")) as result:
            return result["cmd_data"].tobytes(), result["weight_data"].tobytes()
