# SPDX-License-Identifier: Apache-2.0
"""Programs and models described as plain, JSON-ready data; what a delegate holds is described by `npu`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from report import pte, vela_debug
from report.tflite import TfliteModel, TfliteTensor
from report.vela_debug import QueuedOperation


def program(parsed: pte.Program) -> dict[str, Any]:
    """Methods with their tensors, instructions and memory, and the named data of a .pte."""
    return {
        "methods": [_method(method) for method in parsed.methods],
        "named_data": {name: len(data) for name, data in parsed.named_data.items()},
    }


def _method(method: pte.Method) -> dict[str, Any]:
    tensors = [v for v in method.values if isinstance(v, pte.TensorMeta)]
    constants = [t for t in tensors if t.constant is not None]
    return {
        "name": method.name,
        "inputs": [_tensor(t) for t in method.tensors(method.inputs)],
        "outputs": [_tensor(t) for t in method.tensors(method.outputs)],
        "planned_bytes": {i: size for i, size in enumerate(method.planned_bytes) if i},
        "values": len(method.values),
        "constants": len(constants),
        "constant_bytes": sum(t.nbytes for t in constants),
        "instructions": [_instruction(i, n, method) for n, i in enumerate(method.instructions)],
        "delegates": [
            {
                "backend": delegate.backend,
                "bytes": len(delegate.blob),
                "compile_specs": {k: _printable(v) for k, v in delegate.compile_specs.items()},
            }
            for delegate in method.delegates
        ],
    }


def _tensor(tensor: pte.TensorMeta) -> dict[str, Any]:
    return {"shape": list(tensor.shape), "dtype": tensor.dtype, "dim_order": list(tensor.dim_order)}


def _instruction(instruction: pte.Instruction, number: int, method: pte.Method) -> dict[str, Any]:
    kind = type(instruction).__name__
    if isinstance(instruction, pte.KernelCall):
        return {"id": number, "kind": kind, "what": instruction.operator, "values": list(instruction.args)}
    if isinstance(instruction, pte.DelegateCall):
        backend = method.delegates[instruction.delegate].backend
        what = f"{backend} {instruction.delegate}"
        return {"id": number, "kind": kind, "what": what, "values": list(instruction.args)}
    if isinstance(instruction, pte.MoveCall):
        return {
            "id": number,
            "kind": kind,
            "what": "move",
            "values": [instruction.source, instruction.target],
        }
    if isinstance(instruction, pte.JumpFalseCall):
        what = f"to instruction {instruction.destination}"
        return {"id": number, "kind": kind, "what": what, "values": [instruction.condition]}
    return {"id": number, "kind": kind, "what": "free", "values": [instruction.value]}


def _printable(value: bytes) -> str:
    text = value.decode("utf-8", "replace")
    return text if text.isprintable() else value.hex()


def tflite(model: TfliteModel) -> dict[str, Any]:
    """Operators, inputs and outputs of a .tflite."""
    return {
        "inputs": [_tflite_tensor(model.tensors[i]) for i in model.inputs],
        "outputs": [_tflite_tensor(model.tensors[i]) for i in model.outputs],
        "constant_bytes": sum(len(t.data) for t in model.tensors if t.data is not None),
        "by_kind": dict(Counter(operator.name for operator in model.operators)),
        "operators": [
            {
                "id": number,
                "name": operator.name,
                "inputs": [_tflite_tensor(model.tensors[i]) for i in operator.inputs if i >= 0],
                "outputs": [_tflite_tensor(model.tensors[i]) for i in operator.outputs],
            }
            for number, operator in enumerate(model.operators)
        ],
    }


def _tflite_tensor(tensor: TfliteTensor) -> dict[str, Any]:
    return {"name": tensor.name, "shape": list(tensor.shape), "dtype": tensor.dtype}


def attach_origins(
    network: Mapping[str, Any],
    queue: Mapping[int, QueuedOperation] | None,
    origins: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """`network` (of `npu.listing`) with the TOSA operator, module and line of each operation.

    Args:
        queue: Vela's account, by offset from the first register command; None leaves the network as it is.
        origins: of the compile report: index, tosa, operator, module_path and line of each TOSA operator.
    """
    if queue is None:
        return dict(network)
    by_index = {origin["index"]: origin for origin in origins}
    first = network["stream"]["first_command"]
    operations = []
    for operation in network["operations"]:
        queued = vela_debug.at(queue, operation["offset"] - first)
        operations.append({**operation, **_origin(queued, by_index)})
    return {**network, "operations": operations}


def _origin(queued: QueuedOperation | None, by_index: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    if queued is None:
        return dict.fromkeys(("vela_operator", "tosa_operator", "tosa", "module_path", "py_line"))
    found = by_index.get(queued.source_index, {}) if queued.source_index is not None else {}
    return {
        "vela_operator": queued.operator,
        "tosa_operator": queued.source,
        "tosa": found.get("tosa"),
        "module_path": found.get("module_path"),
        "py_line": found.get("line"),
    }
