# SPDX-License-Identifier: Apache-2.0
"""The numeric oracle of a delegate: Arm's TOSA reference model on the graph that Vela compiled."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from report.errors import EnvironmentError_, RunFailed
from report.quiet import quiet

_DTYPES = {"BOOL": "bool", "INT8": "int8", "INT16": "int16", "INT32": "int32", "INT48": "int64"}


@dataclass(frozen=True)
class TensorType:
    """Name, shape and NumPy dtype of one input or output of a TOSA graph."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype


@dataclass(frozen=True)
class Signature:
    """Inputs and outputs of a TOSA graph in the delegate's order."""

    inputs: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]


def signature(graph: bytes) -> Signature:
    """Read the inputs and outputs of a serialised TOSA graph (its first region's first block).

    Raises:
        RunFailed: a tensor has a type that no integer delegate uses.
    """
    from tosa.DType import DType
    from tosa.TosaGraph import TosaGraph

    names = {value: name for name, value in vars(DType).items() if isinstance(value, int)}
    block = TosaGraph.GetRootAs(graph).Regions(0).Blocks(0)
    tensors = {t.Name(): t for t in map(block.Tensors, range(block.TensorsLength()))}

    def describe(name: bytes) -> TensorType:
        tensor = tensors[name]
        kind = names[tensor.Type()]
        if kind not in _DTYPES:
            raise RunFailed(
                f"TOSA tensor {name.decode()} has type {kind}", why="only integer graphs are compared"
            )
        shape = tuple(tensor.Shape(i) for i in range(tensor.ShapeLength()))
        return TensorType(name.decode(), shape, np.dtype(_DTYPES[kind]))

    return Signature(
        tuple(describe(block.Inputs(i)) for i in range(block.InputsLength())),
        tuple(describe(block.Outputs(i)) for i in range(block.OutputsLength())),
    )


def run_reference(graph: bytes, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Outputs of the reference model; each input's bytes are read as the graph's type and shape.

    Raises:
        EnvironmentError_: tosa-tools is not installed.
        RunFailed: an input has the wrong size, or the reference model calls the graph or the run invalid.
    """
    try:
        import tosa_reference_model
    except ImportError as error:
        raise EnvironmentError_(
            "tosa_reference_model is not installed",
            hint="pip install tosa-tools==2026.5.0, or run ./setup.sh",
        ) from error
    types = signature(graph).inputs
    shaped = [_shaped(array, kind) for array, kind in zip(inputs, types, strict=True)]
    try:
        with quiet():
            outputs, status = tosa_reference_model.run(graph, shaped, verbosity="NONE")
    except ValueError as error:
        raise RunFailed("tosa_reference_model refuses the graph", why=str(error)) from error
    if status != tosa_reference_model.GraphStatus.TOSA_VALID:
        raise RunFailed(f"tosa_reference_model ended with {status.name}")
    return [np.asarray(output) for output in outputs]


def _shaped(array: np.ndarray, kind: TensorType) -> np.ndarray:
    size = int(np.prod(kind.shape)) * kind.dtype.itemsize
    if array.nbytes != size:
        raise RunFailed(f"TOSA input {kind.name} takes {size} bytes, the delegate got {array.nbytes}")
    return np.frombuffer(array.tobytes(), kind.dtype).reshape(kind.shape)


def intermediates(graph: bytes, inputs: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """Every integer tensor that the reference model computes, by name.

    Raises:
        EnvironmentError_, RunFailed: see `run_reference`.
    """
    widened = _with_all_outputs(graph)
    names = [tensor.name for tensor in signature(widened).outputs]
    return dict(zip(names, run_reference(widened, inputs), strict=True))


def _with_all_outputs(graph: bytes) -> bytes:
    """The graph with every computed integer tensor as an output, by the schema and flatc of tosa-tools."""
    import tosa_reference_model

    tools = Path(tosa_reference_model.__file__).parents[1] / "bin"
    flatc, schema = str(tools / "flatc"), str(tools / "tosa.fbs")
    with tempfile.TemporaryDirectory(prefix="armdeploy-tosa-") as folder:
        binary, text = Path(folder, "graph.tosa"), Path(folder, "graph.json")
        binary.write_bytes(graph)
        read = ["--json", "--raw-binary", "--strict-json", "-o", folder, schema, "--", str(binary)]
        subprocess.run([flatc, *read], check=True, capture_output=True)
        content = json.loads(text.read_text(encoding="utf-8"))
        block = content["regions"][0]["blocks"][0]
        kinds = {tensor["name"]: tensor["type"] for tensor in block["tensors"]}
        computed = (n for o in block["operators"] if not o["op"].startswith("CONST") for n in o["outputs"])
        block["outputs"] = [name for name in computed if kinds[name] in _DTYPES]
        text.write_text(json.dumps(content), encoding="utf-8")
        subprocess.run([flatc, "-b", "-o", folder, schema, str(text)], check=True, capture_output=True)
        return binary.read_bytes()
