# SPDX-License-Identifier: Apache-2.0
"""Single int8 layers as TensorFlow Lite models: 128 to 128 channels, weights uniform in (-0.5, 0.5).

As the published measurements describe them: per-channel weights of `default_rng(20260914)`, padding "same".
The flatbuffer is written with the schema classes that Vela ships.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import flatbuffers
import numpy as np
from ethosu.vela.tflite import (
    Buffer,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    Model,
    Operator,
    OperatorCode,
    QuantizationParameters,
    SubGraph,
    Tensor,
)

CHANNELS = 128
_SEED = 20260914
_INT8, _INT32 = 9, 2
_CONV_2D, _DEPTHWISE_CONV_2D = 3, 4
_INPUT_SCALE = 1 / 127.5
_OUTPUT_SCALE = 0.05


def write(folder: Path, op: str, size: str) -> Path:
    """Write a layer ("conv1x1", "conv3x3" or "dw3x3", "HEIGHTxWIDTH"), unless it is there."""
    path = folder / f"{op}_{size}.tflite"
    if not path.exists():
        height, width = map(int, size.split("x"))
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_Writer(op == "dw3x3", int(op[-1])).model(height, width))
    return path


class _Writer:
    def __init__(self, depthwise: bool, kernel: int):
        self._depthwise, self._kernel = depthwise, kernel
        self._builder = flatbuffers.Builder(1 << 20)

    def model(self, height: int, width: int) -> bytes:
        weights, scales = self._weights()
        shape = (1, height, width, CHANNELS)
        axis = 3 if self._depthwise else 0
        zeros = np.zeros(CHANNELS, np.int64)
        one = np.zeros(1, np.int64)
        tensors = [
            self._tensor(shape, _INT8, 0, [_INPUT_SCALE], one - 1),
            self._tensor(weights.shape, _INT8, 1, scales, zeros, axis),
            self._tensor((CHANNELS,), _INT32, 2, scales * _INPUT_SCALE, zeros),
            self._tensor(shape, _INT8, 0, [_OUTPUT_SCALE], one + 3),
        ]
        buffers = [b"", weights.tobytes(), np.zeros(CHANNELS, np.int32).tobytes()]
        return self._assemble(tensors, [self._buffer(data) for data in buffers])

    def _weights(self) -> tuple[np.ndarray, np.ndarray]:
        """int8 weights in TFLite's order and their scales."""
        kernel, last = self._kernel, 1 if self._depthwise else CHANNELS
        values = np.random.default_rng(_SEED).uniform(-0.5, 0.5, (kernel, kernel, CHANNELS, last))
        if self._depthwise:
            values = values.reshape(1, kernel, kernel, CHANNELS)
            scales = np.abs(values).max((0, 1, 2)) / 127
        else:
            values = values.transpose(3, 0, 1, 2)
            scales = np.abs(values).max((1, 2, 3)) / 127
        steps = values / (scales if self._depthwise else scales[:, None, None, None])
        return np.round(steps).astype(np.int8), scales.astype(np.float32)

    def _vector(self, start: Callable, offsets: Sequence[int]) -> int:
        start(self._builder, len(offsets))
        for offset in reversed(offsets):
            self._builder.PrependUOffsetTRelative(offset)
        return self._builder.EndVector()

    def _ints(self, values: Sequence[int]) -> int:
        return self._builder.CreateNumpyVector(np.asarray(values, np.int32))

    def _buffer(self, data: bytes) -> int:
        content = self._builder.CreateByteVector(data) if data else None
        Buffer.BufferStart(self._builder)
        if content is not None:
            Buffer.BufferAddData(self._builder, content)
        return Buffer.BufferEnd(self._builder)

    def _tensor(
        self,
        shape: Sequence[int],
        kind: int,
        buffer: int,
        scales: Sequence[float] | np.ndarray,
        zero_points: np.ndarray,
        axis: int = 0,
    ) -> int:
        builder = self._builder
        extents, name = self._ints(shape), builder.CreateString("t")
        scale = builder.CreateNumpyVector(np.asarray(scales, np.float32))
        zero_point = builder.CreateNumpyVector(zero_points)
        QuantizationParameters.QuantizationParametersStart(builder)
        QuantizationParameters.QuantizationParametersAddScale(builder, scale)
        QuantizationParameters.QuantizationParametersAddZeroPoint(builder, zero_point)
        QuantizationParameters.QuantizationParametersAddQuantizedDimension(builder, axis)
        quantisation = QuantizationParameters.QuantizationParametersEnd(builder)
        Tensor.TensorStart(builder)
        Tensor.TensorAddShape(builder, extents)
        Tensor.TensorAddType(builder, kind)
        Tensor.TensorAddBuffer(builder, buffer)
        Tensor.TensorAddName(builder, name)
        Tensor.TensorAddQuantization(builder, quantisation)
        return Tensor.TensorEnd(builder)

    def _options(self) -> tuple[int, int]:
        """(options with padding "same", their type in the schema's union)."""
        builder = self._builder
        if self._depthwise:
            DepthwiseConv2DOptions.DepthwiseConv2DOptionsStart(builder)
            DepthwiseConv2DOptions.DepthwiseConv2DOptionsAddStrideW(builder, 1)
            DepthwiseConv2DOptions.DepthwiseConv2DOptionsAddStrideH(builder, 1)
            DepthwiseConv2DOptions.DepthwiseConv2DOptionsAddDepthMultiplier(builder, 1)
            return DepthwiseConv2DOptions.DepthwiseConv2DOptionsEnd(builder), 2
        Conv2DOptions.Conv2DOptionsStart(builder)
        Conv2DOptions.Conv2DOptionsAddStrideW(builder, 1)
        Conv2DOptions.Conv2DOptionsAddStrideH(builder, 1)
        return Conv2DOptions.Conv2DOptionsEnd(builder), 1

    def _operator(self) -> int:
        builder = self._builder
        inputs, outputs = self._ints([0, 1, 2]), self._ints([3])
        options, kind = self._options()
        Operator.OperatorStart(builder)
        Operator.OperatorAddOpcodeIndex(builder, 0)
        Operator.OperatorAddInputs(builder, inputs)
        Operator.OperatorAddOutputs(builder, outputs)
        Operator.OperatorAddBuiltinOptionsType(builder, kind)
        Operator.OperatorAddBuiltinOptions(builder, options)
        return Operator.OperatorEnd(builder)

    def _subgraph(self, tensors: Sequence[int]) -> int:
        builder = self._builder
        operators = self._vector(SubGraph.SubGraphStartOperatorsVector, [self._operator()])
        tensor_list = self._vector(SubGraph.SubGraphStartTensorsVector, tensors)
        inputs, outputs = self._ints([0]), self._ints([3])
        SubGraph.SubGraphStart(builder)
        SubGraph.SubGraphAddTensors(builder, tensor_list)
        SubGraph.SubGraphAddInputs(builder, inputs)
        SubGraph.SubGraphAddOutputs(builder, outputs)
        SubGraph.SubGraphAddOperators(builder, operators)
        return SubGraph.SubGraphEnd(builder)

    def _assemble(self, tensors: Sequence[int], buffers: Sequence[int]) -> bytes:
        builder = self._builder
        code = _DEPTHWISE_CONV_2D if self._depthwise else _CONV_2D
        subgraph = self._subgraph(tensors)
        OperatorCode.OperatorCodeStart(builder)
        OperatorCode.OperatorCodeAddDeprecatedBuiltinCode(builder, code)
        OperatorCode.OperatorCodeAddBuiltinCode(builder, code)
        OperatorCode.OperatorCodeAddVersion(builder, 3)
        codes = self._vector(Model.ModelStartOperatorCodesVector, [OperatorCode.OperatorCodeEnd(builder)])
        subgraphs = self._vector(Model.ModelStartSubgraphsVector, [subgraph])
        buffer_list = self._vector(Model.ModelStartBuffersVector, buffers)
        Model.ModelStart(builder)
        Model.ModelAddVersion(builder, 3)
        Model.ModelAddOperatorCodes(builder, codes)
        Model.ModelAddSubgraphs(builder, subgraphs)
        Model.ModelAddBuffers(builder, buffer_list)
        builder.Finish(Model.ModelEnd(builder), b"TFL3")
        return bytes(builder.Output())
