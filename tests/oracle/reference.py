# SPDX-License-Identifier: Apache-2.0
"""The numeric oracle: Arm's TOSA reference model run on the very graph that Vela compiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import tosa_reference_model
from tosa.DType import DType
from tosa.TosaGraph import TosaGraph

from oracle.quiet import quiet

_NUMPY_TYPES = {
    DType.BOOL: np.dtype(np.bool_),
    DType.INT8: np.dtype(np.int8),
    DType.INT16: np.dtype(np.int16),
    DType.INT32: np.dtype(np.int32),
}


@dataclass(frozen=True)
class TensorType:
    """Name, shape and element type of one input or output of a TOSA graph."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype


@dataclass(frozen=True)
class Signature:
    """Inputs and outputs of a TOSA graph in the order in which the delegate takes and gives them."""

    inputs: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]


def signature(tosa: bytes) -> Signature:
    """Read the signature of a TOSA flatbuffer with one region and one block."""
    block = TosaGraph.GetRootAs(tosa).Regions(0).Blocks(0)
    tensors = {t.Name(): t for t in map(block.Tensors, range(block.TensorsLength()))}

    def describe(name: bytes) -> TensorType:
        tensor = tensors[name]
        shape = tuple(tensor.Shape(i) for i in range(tensor.ShapeLength()))
        return TensorType(name.decode(), shape, _NUMPY_TYPES[tensor.Type()])

    return Signature(
        tuple(describe(block.Inputs(i)) for i in range(block.InputsLength())),
        tuple(describe(block.Outputs(i)) for i in range(block.OutputsLength())),
    )


def random_inputs(tosa: bytes, seed: int, index_limit: int = 1) -> list[np.ndarray]:
    """Uniform random inputs over the whole range of int8 and int16; int32 are indices in [0, index_limit)."""
    rng = np.random.default_rng(seed)
    return [_random_array(rng, tensor, index_limit) for tensor in signature(tosa).inputs]


def _random_array(rng: np.random.Generator, tensor: TensorType, index_limit: int) -> np.ndarray:
    if tensor.dtype in (np.int8, np.int16):
        info = np.iinfo(tensor.dtype)
        return rng.integers(info.min, info.max, tensor.shape, dtype=tensor.dtype, endpoint=True)
    return rng.integers(0, 2 if tensor.dtype == np.bool_ else index_limit, tensor.shape).astype(tensor.dtype)


def run_reference(tosa: bytes, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Outputs of the TOSA graph; raises ValueError when the reference model calls the run invalid."""
    with quiet():
        outputs, status = tosa_reference_model.run(tosa, list(inputs), verbosity="NONE")
    if status != tosa_reference_model.GraphStatus.TOSA_VALID:
        raise ValueError(f"tosa_reference_model: {status.name}")
    return [np.asarray(output) for output in outputs]
