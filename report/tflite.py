# SPDX-License-Identifier: Apache-2.0
"""A .tflite file as frozen data: tensors, operators, and the Ethos-U networks that Vela put into it.

The FlatBuffers classes are the ones Vela ships. A network compiled by Vela is one custom operator called
``ethos-u`` whose first four inputs are the command stream, the constants, the scratch and the fast scratch.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from report.errors import UsageError

ETHOS_U = "ethos-u"
_IDENTIFIER = b"TFL3"


class TfliteError(UsageError):
    """The file is not a readable TensorFlow Lite model."""


@dataclass(frozen=True)
class TfliteTensor:
    """`data` is None for a tensor that is computed; `dtype` is the schema's name (INT8 …)."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    data: bytes | None


@dataclass(frozen=True)
class TfliteOperator:
    """`name` is the builtin's name, or the custom operator's own; indices of absent tensors are -1."""

    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class TfliteModel:
    """The first subgraph of the file, the one that is run."""

    tensors: tuple[TfliteTensor, ...]
    operators: tuple[TfliteOperator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def load(path: Path) -> TfliteModel:
    """Read the model at `path`.

    Raises:
        TfliteError: unreadable or damaged; the message names the file and the cause.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise TfliteError("cannot read the model", where=str(path), why=str(error.strerror)) from error
    if data[4:8] != _IDENTIFIER:
        why = f"file identifier is {data[4:8]!r}, expected {_IDENTIFIER!r}"
        raise TfliteError("not a TensorFlow Lite model", where=str(path), why=why)
    try:
        return _model(data)
    except (IndexError, KeyError, TypeError, AttributeError, ValueError, struct.error) as error:
        why = f"{type(error).__name__}: {error}"
        raise TfliteError("damaged TensorFlow Lite model", where=str(path), why=why) from error


def _model(data: bytes) -> TfliteModel:
    from ethosu.vela.tflite.Model import Model

    model = Model.GetRootAs(data, 0)
    graph = model.Subgraphs(0)
    if graph is None:
        raise ValueError("no subgraph")
    codes = [_code(model.OperatorCodes(i)) for i in range(model.OperatorCodesLength())]
    operators = (graph.Operators(i) for i in range(graph.OperatorsLength()))
    return TfliteModel(
        tensors=tuple(_tensor(model, graph.Tensors(i)) for i in range(graph.TensorsLength())),
        operators=tuple(
            TfliteOperator(codes[o.OpcodeIndex()], _indices(o, "Inputs"), _indices(o, "Outputs"))
            for o in operators
        ),
        inputs=_indices(graph, "Inputs"),
        outputs=_indices(graph, "Outputs"),
    )


def _indices(table: Any, name: str) -> tuple[int, ...]:
    return tuple(int(getattr(table, name)(i)) for i in range(getattr(table, f"{name}Length")()))


def _code(code: Any) -> str:
    if code.CustomCode():
        return str(code.CustomCode().decode())
    number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
    return _names("BuiltinOperator").get(number, f"operator {number}")


def _tensor(model: Any, tensor: Any) -> TfliteTensor:
    buffer = model.Buffers(tensor.Buffer())
    data = buffer.DataAsNumpy().tobytes() if buffer is not None and buffer.DataLength() else None
    dtype = _names("TensorType").get(tensor.Type(), f"type {tensor.Type()}")
    return TfliteTensor((tensor.Name() or b"").decode(), _indices(tensor, "Shape"), dtype, data)


@lru_cache
def _names(enumeration: str) -> dict[int, str]:
    """Names of an enumeration of the schema by value."""
    module = __import__(f"ethosu.vela.tflite.{enumeration}", fromlist=[enumeration])
    members = vars(getattr(module, enumeration)).items()
    return {value: name for name, value in members if isinstance(value, int)}
