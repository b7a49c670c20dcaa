# SPDX-License-Identifier: Apache-2.0
"""One-operator TensorFlow Lite models from a seed. Runs in the environment of LiteRT, whose schema it uses.

    python operators.py FOLDER SEED

They exercise what whole models do not: unequal scales, padded averages, scalar and broadcast operands, fused
activations, 16-bit activations, wide softmax, resize, transposed convolution.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

_TYPES = {
    "int8": schema.TensorType.INT8,
    "int16": schema.TensorType.INT16,
    "int32": schema.TensorType.INT32,
    "int64": schema.TensorType.INT64,
}
_SAME, _VALID = schema.Padding.SAME, schema.Padding.VALID
# Of an operator, as far as LiteRT 1.2.0 knows it; 5 where it knows that many.
_VERSIONS = {"SOFTMAX": 3, "TANH": 3, "LOGISTIC": 3, "RESIZE_NEAREST_NEIGHBOR": 4, "RESIZE_BILINEAR": 4}
_VERSIONS |= {"MEAN": 3, "LEAKY_RELU": 2, "HARD_SWISH": 1, "ARG_MAX": 2, "TRANSPOSE_CONV": 3}
_VERSIONS |= {"MAX_POOL_2D": 3, "AVERAGE_POOL_2D": 3, "FULLY_CONNECTED": 4, "MUL": 4, "ADD": 4, "CONV_2D": 5}
_ACTIVATIONS = {"": 0, "relu": 1, "relu6": 3}


class Model:
    """A graph of one operator being put together; `rng` draws its constants and scales."""

    def __init__(self, seed: list[int]):
        self.rng = np.random.default_rng(seed)
        self._tensors: list[Any] = []
        self._buffers = [schema.BufferT()]
        self._inputs: list[int] = []

    def scale(self, low: float = 0.005, high: float = 0.1) -> float:
        """A scale, logarithmically uniform."""
        return float(np.float32(np.exp(self.rng.uniform(np.log(low), np.log(high)))))

    def tensor(
        self,
        shape: tuple[int, ...],
        kind: str = "int8",
        scale: Any = None,
        zero_point: int | None = None,
        data: np.ndarray | None = None,
        axis: int = 0,
    ) -> int:
        """Append a tensor; a random scale, and for int8 a random zero point, unless given."""
        tensor = schema.TensorT()
        tensor.shape, tensor.type, tensor.name = list(shape), _TYPES[kind], f"t{len(self._tensors)}"
        if kind in ("int8", "int16") or scale is not None:
            tensor.quantization = self._quantization(kind, scale, zero_point, axis)
        if data is not None:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(data.astype(kind).tobytes(), np.uint8)
            tensor.buffer = len(self._buffers)
            self._buffers.append(buffer)
        self._tensors.append(tensor)
        return len(self._tensors) - 1

    def _quantization(self, kind: str, scale: Any, zero_point: int | None, axis: int) -> Any:
        scales = np.atleast_1d(self.scale() if scale is None else scale)
        if zero_point is None:
            zero_point = int(self.rng.integers(-60, 60)) if kind == "int8" else 0
        quantization = schema.QuantizationParametersT()
        quantization.scale = scales.astype(np.float32)
        quantization.zeroPoint = np.full(len(scales), zero_point, np.int64)
        quantization.quantizedDimension = axis
        return quantization

    def input(self, shape: tuple[int, ...], kind: str = "int8", **options: Any) -> int:
        """Append an input of the model."""
        self._inputs.append(self.tensor(shape, kind, **options))
        return self._inputs[-1]

    def scale_of(self, tensor: int) -> float:
        return float(self._tensors[tensor].quantization.scale[0])

    def constant(self, values: Any, kind: str = "int32") -> int:
        """Append a constant without quantisation."""
        array = np.asarray(values)
        return self.tensor(array.shape, kind, data=array)

    def finish(
        self, operator: str, operands: list[int], result: int, options: str = "", **values: Any
    ) -> bytes:
        """The flatbuffer with this operator as the only one."""
        code = schema.OperatorCodeT()
        code.builtinCode = getattr(schema.BuiltinOperator, operator)
        code.deprecatedBuiltinCode = min(code.builtinCode, 127)
        code.version = _VERSIONS.get(operator, 5)
        op = schema.OperatorT()
        op.inputs, op.outputs = operands, [result]
        if options:
            op.builtinOptionsType = getattr(schema.BuiltinOptions, options)
            op.builtinOptions = getattr(schema, f"{options}T")()
            for name, value in values.items():
                setattr(op.builtinOptions, name, value)
        graph = schema.SubGraphT()
        graph.tensors, graph.operators, graph.inputs, graph.outputs = (
            self._tensors,
            [op],
            self._inputs,
            [result],
        )
        model = schema.ModelT()
        model.version, model.operatorCodes, model.subgraphs = 3, [code], [graph]
        model.buffers, model.description = self._buffers, "one operator"
        builder = flatbuffers.Builder()
        builder.Finish(model.Pack(builder), b"TFL3")
        return bytes(builder.Output())


# --- operators ----------------------------------------------------------------------------------------------


def _sided(size: tuple[int, int], kernel: tuple[int, int], stride: int, padding: int) -> tuple[int, int]:
    if padding == _SAME:
        return -(-size[0] // stride), -(-size[1] // stride)
    return (size[0] - kernel[0]) // stride + 1, (size[1] - kernel[1]) // stride + 1


def convolution(
    model: Model, kind: str, kernel: tuple[int, int], stride: int, padding: int, fused: str
) -> bytes:
    ifm, depth, channels, size = _image(model, kind)
    weights = _weights(model, (channels, *kernel, depth))
    bias = _bias(model, ifm, weights, channels, kind)
    ofm = model.tensor(
        (1, *_sided(size, kernel, stride, padding), channels), kind, scale=model.scale(0.02, 0.4)
    )
    return model.finish(
        "CONV_2D", [ifm, weights, bias], ofm, "Conv2DOptions",
        padding=padding, strideW=stride, strideH=stride, fusedActivationFunction=_ACTIVATIONS[fused],
    )  # fmt: skip


def depthwise(
    model: Model, kind: str, kernel: tuple[int, int], stride: int, padding: int, fused: str
) -> bytes:
    ifm, depth, _, size = _image(model, kind)
    weights = _weights(model, (1, *kernel, depth), axis=3)
    bias = _bias(model, ifm, weights, depth, kind)
    ofm = model.tensor((1, *_sided(size, kernel, stride, padding), depth), kind, scale=model.scale(0.02, 0.2))
    return model.finish(
        "DEPTHWISE_CONV_2D", [ifm, weights, bias], ofm, "DepthwiseConv2DOptions", depthMultiplier=1,
        padding=padding, strideW=stride, strideH=stride, fusedActivationFunction=_ACTIVATIONS[fused],
    )  # fmt: skip


def _image(model: Model, kind: str) -> tuple[int, int, int, tuple[int, int]]:
    """(input, depth, channels, (height, width))."""
    depth, channels = (int(n) for n in model.rng.integers(3, 40, 2))
    height, width = (int(n) for n in model.rng.integers(9, 20, 2))
    return model.input((1, height, width, depth), kind), depth, channels, (height, width)


def _weights(model: Model, shape: tuple[int, ...], axis: int = 0) -> int:
    scales = [model.scale(0.002, 0.02) for _ in range(shape[axis])]
    return model.tensor(
        shape, scale=scales, zero_point=0, data=model.rng.integers(-127, 128, shape), axis=axis
    )


def _bias(model: Model, ifm: int, weights: int, channels: int, kind: str) -> int:
    scales = model._tensors[weights].quantization.scale * np.float32(model.scale_of(ifm))
    bound = 2000 if kind == "int8" else 200000
    values = model.rng.integers(-bound, bound, channels)
    return model.tensor(
        (channels,), "int32" if kind == "int8" else "int64", scale=scales, zero_point=0, data=values
    )


def fully_connected(model: Model, kind: str, fused: str) -> bytes:
    inputs, outputs = (int(n) for n in model.rng.integers(10, 120, 2))
    ifm = model.input((1, inputs), kind)
    values = model.rng.integers(-127, 128, (outputs, inputs))
    weights = model.tensor((outputs, inputs), scale=model.scale(0.002, 0.02), zero_point=0, data=values)
    bias = _bias(model, ifm, weights, outputs, kind)
    ofm = model.tensor((1, outputs), kind, scale=model.scale(0.02, 0.2))
    return model.finish(
        "FULLY_CONNECTED", [ifm, weights, bias], ofm, "FullyConnectedOptions",
        fusedActivationFunction=_ACTIVATIONS[fused],
    )  # fmt: skip


def binary(model: Model, operator: str, kind: str, second: str, fused: str) -> bytes:
    """ADD, SUB or MUL with an equal, broadcast or scalar second operand."""
    shape = (1, *(int(n) for n in model.rng.integers(4, 18, 3)))
    other = {"equal": shape, "row": (1, 1, 1, shape[3]), "scalar": (1,)}[second]
    a = model.input(shape, kind)
    if second == "equal":
        b = model.input(other, kind)
    else:
        limit = 128 if kind == "int8" else 32768
        b = model.tensor(other, kind, data=model.rng.integers(-limit, limit, other))
    ofm = model.tensor(shape, kind)
    options = f"{operator.capitalize()}Options"
    return model.finish(operator, [a, b], ofm, options, fusedActivationFunction=_ACTIVATIONS[fused])


def pool(model: Model, operator: str, kernel: int, stride: int, padding: int, kind: str) -> bytes:
    depth, (height, width) = int(model.rng.integers(3, 30)), (int(n) for n in model.rng.integers(9, 20, 2))
    scale, point = model.scale(), int(model.rng.integers(-60, 60)) if kind == "int8" else 0
    ifm = model.input((1, height, width, depth), kind, scale=scale, zero_point=point)
    sides = _sided((height, width), (kernel, kernel), stride, padding)
    ofm = model.tensor((1, *sides, depth), kind, scale=scale, zero_point=point)
    return model.finish(
        operator, [ifm], ofm, "Pool2DOptions",
        padding=padding, strideW=stride, strideH=stride, filterWidth=kernel, filterHeight=kernel,
    )  # fmt: skip


def mean(model: Model, kind: str, unequal: bool) -> bytes:
    height, width, depth = (int(n) for n in model.rng.integers(3, 24, 3))
    ifm = model.input((1, height, width, depth), kind)
    same = {} if unequal else {"scale": model.scale_of(ifm)}
    axes = model.constant([1, 2])
    ofm = model.tensor((1, 1, 1, depth), kind, **same)
    return model.finish("MEAN", [ifm, axes], ofm, "ReducerOptions", keepDims=True)


def softmax(model: Model, width: int, kind: str) -> bytes:
    ifm = model.input((1, width), kind, scale=model.scale(0.05, 0.2) if kind == "int8" else 0.0006)
    scale, point = (1 / 256, -128) if kind == "int8" else (1 / 32768, 0)
    ofm = model.tensor((1, width), kind, scale=scale, zero_point=point)
    return model.finish("SOFTMAX", [ifm], ofm, "SoftmaxOptions", beta=1.0)


def smooth(model: Model, operator: str, kind: str) -> bytes:
    shape = (1, *(int(n) for n in model.rng.integers(3, 18, 3)))
    ifm = model.input(shape, kind, scale=model.scale(0.02, 0.08) if kind == "int8" else 1 / 4096)
    one = 1 / 32768 if kind == "int16" else 1 / (256 if operator == "LOGISTIC" else 128)
    point = -128 if (kind, operator) == ("int8", "LOGISTIC") else 0
    return model.finish(operator, [ifm], model.tensor(shape, kind, scale=one, zero_point=point))


def leaky_relu(model: Model, kind: str) -> bytes:
    shape = (1, *(int(n) for n in model.rng.integers(3, 18, 3)))
    ifm, ofm = model.input(shape, kind), model.tensor(shape, kind)
    return model.finish(
        "LEAKY_RELU", [ifm], ofm, "LeakyReluOptions", alpha=float(model.rng.uniform(0.01, 0.5))
    )


def hard_swish(model: Model) -> bytes:
    shape = (1, *(int(n) for n in model.rng.integers(3, 18, 3)))
    return model.finish("HARD_SWISH", [model.input(shape)], model.tensor(shape), "HardSwishOptions")


def resize(model: Model, operator: str, factor: int, mode: str) -> bytes:
    height, width, depth = (int(n) for n in model.rng.integers(3, 9, 3))
    scale, point = model.scale(), int(model.rng.integers(-60, 60))
    ifm = model.input((1, height, width, depth), scale=scale, zero_point=point)
    sides = [height * factor, width * factor]
    if mode == "align":
        sides = [(height - 1) * factor + 1, (width - 1) * factor + 1]
    size = model.constant(sides)
    ofm = model.tensor((1, *sides, depth), scale=scale, zero_point=point)
    options = "ResizeBilinearOptions" if operator == "RESIZE_BILINEAR" else "ResizeNearestNeighborOptions"
    flags = {"alignCorners": mode == "align", "halfPixelCenters": mode == "half"}
    return model.finish(operator, [ifm, size], ofm, options, **flags)


def transpose_convolution(model: Model, kernel: int, padding: int) -> bytes:
    depth, channels, height, width = (int(n) for n in model.rng.integers(3, 14, 4))
    ifm = model.input((1, height, width, depth))
    weights = _weights(model, (channels, kernel, kernel, depth))
    extra = 0 if padding == _SAME else max(0, kernel - 2)
    sides = (2 * height + extra, 2 * width + extra)
    shape = model.constant([1, *sides, channels])
    ofm = model.tensor((1, *sides, channels), scale=model.scale(0.02, 0.2))
    return model.finish(
        "TRANSPOSE_CONV", [shape, weights, ifm], ofm, "TransposeConvOptions",
        padding=padding, strideW=2, strideH=2,
    )  # fmt: skip


def arg_max(model: Model) -> bytes:
    height, width, depth = (int(n) for n in model.rng.integers(3, 30, 3))
    ifm, axis = model.input((1, height, width, depth)), model.constant(np.int32(3))
    ofm = model.tensor((1, height, width), "int32")
    return model.finish("ARG_MAX", [ifm, axis], ofm, "ArgMaxOptions", outputType=schema.TensorType.INT32)


# --- the table ----------------------------------------------------------------------------------------------

_KINDS = ("int8", "int16")
_POOLS = ((2, 2, _VALID), (3, 1, _SAME), (3, 2, _SAME), (5, 3, _SAME), (7, 1, _SAME), (8, 2, _SAME))


def table() -> Iterator[tuple[str, Callable[[Model], bytes]]]:
    """(name, maker) of every model."""
    yield from _windows()
    yield from _elementwise()
    yield from _others()


def _windows() -> Iterator[tuple[str, Callable[[Model], bytes]]]:
    for kind in _KINDS:
        for kernel, stride, padding, fused in (
            ((1, 1), 1, _VALID, ""),
            ((3, 3), 1, _SAME, "relu"),
            ((3, 3), 2, _SAME, ""),
            ((5, 2), 2, _VALID, "relu6"),
        ):
            name = f"{kernel[0]}x{kernel[1]}_s{stride}_{'same' if padding == _SAME else 'valid'}_{kind}"
            arguments = (kind, kernel, stride, padding, fused)
            yield f"conv_{name}", lambda model, a=arguments: convolution(model, *a)
            yield f"depthwise_{name}", lambda model, a=arguments: depthwise(model, *a)
        for operator in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
            for kernel, stride, padding in _POOLS:
                name = (
                    f"{operator.lower()}_{kernel}_s{stride}_{'same' if padding == _SAME else 'valid'}_{kind}"
                )
                arguments = (operator, kernel, stride, padding, kind)
                yield name, lambda model, a=arguments: pool(model, *a)
        for unequal in (False, True):
            yield f"mean_{'un' * unequal}equal_{kind}", lambda model, k=kind, u=unequal: mean(model, k, u)
    for kernel, padding in ((2, _VALID), (3, _SAME), (4, _SAME), (3, _VALID)):
        name = f"transpose_conv_{kernel}_{'same' if padding == _SAME else 'valid'}"
        yield name, lambda model, k=kernel, p=padding: transpose_convolution(model, k, p)


def _elementwise() -> Iterator[tuple[str, Callable[[Model], bytes]]]:
    for kind in _KINDS:
        for operator in ("ADD", "SUB", "MUL"):
            for second, fused in (("equal", ""), ("equal", "relu"), ("row", ""), ("scalar", "relu6")):
                name = f"{operator.lower()}_{second}_{fused or 'plain'}_{kind}"
                yield name, lambda model, a=(operator, kind, second, fused): binary(model, *a)
        for operator in ("LOGISTIC", "TANH"):
            yield f"{operator.lower()}_{kind}", lambda model, a=(operator, kind): smooth(model, *a)
        yield f"leaky_relu_{kind}", lambda model, k=kind: leaky_relu(model, k)
    yield "hard_swish", hard_swish


def _others() -> Iterator[tuple[str, Callable[[Model], bytes]]]:
    for kind in _KINDS:
        for fused in ("", "relu"):
            name = f"fully_connected_{fused or 'plain'}_{kind}"
            yield name, lambda model, k=kind, f=fused: fully_connected(model, k, f)
        for width in (2, 17, 100, 1001):
            yield f"softmax_{width}_{kind}", lambda model, w=width, k=kind: softmax(model, w, k)
    for operator in ("RESIZE_NEAREST_NEIGHBOR", "RESIZE_BILINEAR"):
        for factor, mode in ((2, "plain"), (2, "half"), (2, "align"), (4, "plain"), (3, "half")):
            name = f"{operator.lower()}_{factor}_{mode}"
            yield name, lambda model, a=(operator, factor, mode): resize(model, *a)
    yield "arg_max", arg_max


def main() -> None:
    """Write all models of a seed."""
    folder, seed = Path(sys.argv[1]), int(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for number, (name, make) in enumerate(table()):
        (folder / f"{name}.tflite").write_bytes(make(Model([seed, number])))


if __name__ == "__main__":
    main()
