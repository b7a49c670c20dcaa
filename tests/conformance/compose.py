# SPDX-License-Identifier: Apache-2.0
"""Composites: single operators return their accumulators, so they alone never reach the output stage.

A convolution or matrix product gets a RESCALE behind it and, by lot, a CLAMP, TABLE or MAX_POOL2D; an
elementwise operator or REDUCE_SUM on int32 gets a RESCALE from int8 or int16 in front of each input and one
behind. Scales are calibrated on the reference model's result, so that little saturates and all bits matter.
The generator's biases, which fill all 32 or 48 bits and swamp the sum, become of the sum's own size.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from tests.conformance.cases import Case
from tests.conformance.tosa_graph import Graph

ACCUMULATING = ("conv2d", "depthwise_conv2d", "conv3d", "transpose_conv2d", "matmul")
ELEMENTWISE = ("abs", "add", "maximum", "minimum", "mul", "reduce_sum", "sub")
VARIANTS = 2

_NUMPY = {"INT8": np.int8, "INT16": np.int16, "INT32": np.int32, "INT48": np.int64}
_LIMIT = {"INT8": 127, "INT16": 32767}
_WITH_BIAS = ("CONV2D", "DEPTHWISE_CONV2D", "CONV3D", "TRANSPOSE_CONV2D")
# The magnitude that elementwise operands get: products of two stay within 32 bits.
_OPERAND_BITS = 14


def compose(
    source: Path,
    target: Path,
    seed: int,
    variant: int,
    *,
    own_biases: bool = False,
    channel_scales: bool | None = None,
) -> Path | None:
    """Make a composite of the test in `source`; None where the operator has no 32- or 48-bit result.

    Args:
        own_biases: keep the generator's biases.
        channel_scales: a scale for each channel behind it or one for all; by lot if None, but one for a
            matrix product. Both serve to show faults of the compiler.
    """
    case, graph = Case(source), Graph(source / "test.tosa")
    name = graph.block["outputs"][0]
    if graph.tensor(name)["type"] not in ("INT32", "INT48"):
        return None
    rng = np.random.default_rng([seed, zlib.crc32(source.name.encode()), variant])
    target.mkdir(parents=True, exist_ok=True)
    composite = _Composite(graph, case, target, rng, variant)
    composite.build(own_biases, channel_scales)
    return target


class _Composite:
    def __init__(self, graph: Graph, case: Case, target: Path, rng: np.random.Generator, variant: int):
        self._graph, self._target, self._rng, self._variant = graph, target, rng, variant
        self._description = json.loads(json.dumps(case.description))
        self._description["meta"] = {}
        self._inputs = case.inputs()
        self._counter = 0

    def build(self, own_biases: bool, channel_scales: bool | None) -> None:
        elementwise = not any(True for kind in (*_WITH_BIAS, "MATMUL") for _ in self._graph.operators(kind))
        self._narrow = ("INT8", "INT16")[self._variant % 2] if elementwise else self._input_type()
        if elementwise:
            for number in range(len(self._inputs)):
                self._rescale_input(number)
        if not own_biases:
            self._replace_biases()
        accumulator = self._graph.block["outputs"][0]
        self._save([accumulator])
        result = Case(self._target).expected()
        if result is None:
            raise RuntimeError(f"the reference model does not run {self._target.name}")
        (self._target / self._description["ofm_file"][0]).unlink()
        if channel_scales is None:
            matrix = any(True for _ in self._graph.operators("MATMUL"))
            channel_scales = not (elementwise or matrix) and bool(self._rng.integers(0, 2))
        scaled = self._rescale_output(accumulator, result[0], channel_scales)
        self._save([self._tail(scaled)])

    def _input_type(self) -> str:
        return self._graph.tensor(self._graph.block["inputs"][0])["type"]

    def _save(self, outputs: list[str]) -> None:
        """Write graph, inputs and description with these outputs."""
        self._graph.block["outputs"] = outputs
        self._graph.save(self._target / "test.tosa")
        for path, array in zip(self._description["ifm_file"], self._inputs, strict=True):
            np.save(self._target / path, array)
        tensor = self._graph.tensor(outputs[0])
        exact = {"mode": "EXACT", "data_type": tensor["type"], "shape": tensor["shape"]}
        compliance = {"tensors": {outputs[0]: exact}, "version": self._description["version"]}
        self._description["meta"] = {"compliance": compliance}
        self._description["ofm_name"] = outputs
        (self._target / "desc.json").write_text(json.dumps(self._description, indent=1))

    def _name(self) -> str:
        self._counter += 1
        return f"composite-{self._counter}"

    def _constant(self, kind: str, values: Any) -> str:
        array = np.atleast_1d(np.asarray(values))
        return self._graph.add_tensor(self._name(), kind, [len(array)], array)

    def _rescale(
        self, source: str, target: str, multiplier: Any, shift: Any, points: tuple[int, int], double: bool
    ) -> None:
        """RESCALE from one named tensor to another; `points` are their zero points."""
        kinds = [self._graph.tensor(name)["type"] for name in (source, target)]
        wide = kinds[0] != "INT48"
        operands = [
            source,
            self._constant("INT32" if wide else "INT16", multiplier),
            self._constant("INT8", shift),
            *(self._constant(kind, point) for kind, point in zip(kinds, points, strict=True)),
        ]
        attribute = {
            "scale32": wide,
            "rounding_mode": "DOUBLE_ROUND" if double and wide else "SINGLE_ROUND",
            "per_channel": np.size(multiplier) > 1,
            "input_unsigned": False,
            "output_unsigned": False,
        }
        self._graph.add_operator("RESCALE", "RescaleAttribute", attribute, operands, [target])

    def _rescale_input(self, number: int) -> None:
        """A narrow input of full range, scaled to the operator's 32 bits in front of it."""
        old = self._graph.block["inputs"][number]
        shape = self._graph.tensor(old)["shape"]
        new = self._graph.add_tensor(self._name(), self._narrow, shape)
        limit = _LIMIT[self._narrow]
        self._inputs[number] = self._rng.integers(-limit - 1, limit + 1, shape if shape else ()).astype(
            _NUMPY[self._narrow]
        )
        point = int(self._rng.integers(-60, 60)) if self._narrow == "INT8" else 0
        multiplier, shift = _factor((1 << _OPERAND_BITS) / (2 * limit) * self._rng.uniform(0.5, 1.0), True)
        self._rescale(new, old, multiplier, shift, (point, 0), False)
        operators = self._graph.block["operators"]
        place = next(i for i, op in enumerate(operators) if old in op["inputs"] and op["op"] != "RESCALE")
        operators.insert(place, operators.pop())
        self._graph.block["inputs"][number] = new
        self._description["ifm_name"][number] = new

    def _replace_biases(self) -> None:
        for kind in _WITH_BIAS:
            for op in self._graph.operators(kind):
                weights, bias = (self._graph.tensor(op["inputs"][index]) for index in (1, 2))
                terms = int(np.prod(weights["shape"])) // max(1, bias["shape"][0])
                product = (74 if self._input_type() == "INT8" else 18918) * 74
                size = int(1.5 * terms**0.5 * product)
                values = self._rng.integers(-size, size + 1, bias["shape"])
                self._graph.set_constant(bias["name"], values)

    def _rescale_output(self, source: str, values: np.ndarray, several: bool) -> str:
        shape = self._graph.tensor(source)["shape"]
        target = self._graph.add_tensor(self._name(), self._narrow, shape)
        magnitude = np.abs(values.astype(np.float64))
        wide = self._graph.tensor(source)["type"] != "INT48"
        sizes = magnitude.reshape(-1, shape[-1]).max(axis=0) if several else np.atleast_1d(magnitude.max())
        factors = [
            _factor(1.2 * _LIMIT[self._narrow] / max(1.0, size) * self._rng.uniform(0.7, 1.0), wide)
            for size in sizes
        ]
        point = int(self._rng.integers(-30, 30)) if self._narrow == "INT8" else 0
        multipliers, shifts = zip(*factors, strict=True)
        double = bool(self._rng.integers(0, 2))
        self._rescale(source, target, multipliers, shifts, (0, point), double)
        return target

    def _tail(self, source: str) -> str:
        rank = len(self._graph.tensor(source)["shape"])
        choices = [self._nothing, self._clamp, self._table]
        if rank == 4:
            choices.append(self._max_pool)
        return choices[int(self._rng.integers(0, len(choices)))](source)

    def _nothing(self, source: str) -> str:
        return source

    def _clamp(self, source: str) -> str:
        limit = _LIMIT[self._narrow]
        low, high = (int(v) for v in sorted(self._rng.integers(-limit, limit, 2)))
        size = np.dtype(_NUMPY[self._narrow]).itemsize
        attribute = {
            key: list(value.to_bytes(size, "little", signed=True))
            for key, value in (("min_val", low), ("max_val", high))
        } | {"nan_mode": "PROPAGATE"}
        return self._appended("CLAMP", "ClampAttribute", attribute, [source], self._narrow)

    def _table(self, source: str) -> str:
        if self._narrow == "INT8":
            kind, values = "INT8", self._rng.integers(-128, 128, 256)
        else:
            # A smooth table: the interpolation's slope has 16 bits.
            kind, values = "INT32", np.cumsum(self._rng.integers(-120, 121, 513)).clip(-32768, 32767)
        table = self._constant("INT16" if kind == "INT32" else kind, values)
        return self._appended("TABLE", "TableAttribute", {}, [source, table], kind)

    def _max_pool(self, source: str) -> str:
        shape = list(self._graph.tensor(source)["shape"])
        kernel = [min(2, extent) for extent in shape[1:3]]
        attribute = {"kernel": kernel, "stride": [1, 1], "pad": [0, 0, 0, 0], "nan_mode": "PROPAGATE"}
        shape[1:3] = [extent - side + 1 for extent, side in zip(shape[1:3], kernel, strict=True)]
        return self._appended("MAX_POOL2D", "MaxPool2dAttribute", attribute, [source], self._narrow, shape)

    def _appended(
        self,
        kind: str,
        attribute_type: str,
        attribute: dict[str, Any],
        inputs: list[str],
        type_name: str,
        shape: list[int] | None = None,
    ) -> str:
        shape = self._graph.tensor(inputs[0])["shape"] if shape is None else shape
        target = self._graph.add_tensor(self._name(), type_name, shape)
        self._graph.add_operator(kind, attribute_type, attribute, inputs, [target])
        return target


def _factor(value: float, wide: bool) -> tuple[int, int]:
    """(multiplier, shift) of a RESCALE near `value`: 31 bits, or 15 where the sum has 48."""
    bits = 30 if wide else 14
    exponent = int(np.floor(np.log2(value)))
    shift = bits - exponent
    multiplier = min(round(value * 2.0**shift), (2 << bits) - 1)
    return (multiplier, shift) if 2 <= shift <= 62 else (1 << bits, min(max(shift, 2), 62))
