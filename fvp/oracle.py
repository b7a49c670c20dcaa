# SPDX-License-Identifier: Apache-2.0
"""Somebody else's answer to what a model computes, and seeded inputs to ask for it.

Oracles: `tosa_reference_model` for a TOSA graph, LiteRT's reference kernels for a .tflite.
"""

from __future__ import annotations

import abc
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fvp import litert, tosa
from report import tflite
from report.errors import UsageError
from report.forked import forked

_TOSA_IDENTIFIER = b"TOSA"
_TFLITE_TYPES = {"INT8": "int8", "UINT8": "uint8", "INT16": "int16", "INT32": "int32"}


@dataclass(frozen=True)
class Port:
    """An input or output of a model."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype


class Oracle(abc.ABC):
    """Somebody else's answer to what a model computes."""

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]

    @abc.abstractmethod
    def run(self, sets: Sequence[Sequence[np.ndarray]], folder: Path) -> list[list[np.ndarray]]:
        """Outputs for each set of inputs; `folder` is for files on the way."""


class TosaOracle(Oracle):
    """Arm's TOSA reference model on a serialised graph."""

    name = "tosa_reference_model"

    def __init__(self, path: Path) -> None:
        self._graph = path.read_bytes()
        found = _signature(self._graph, path)
        self.inputs, self.outputs = (
            tuple(Port(t.name, t.shape, t.dtype) for t in side) for side in (found.inputs, found.outputs)
        )

    def run(self, sets: Sequence[Sequence[np.ndarray]], folder: Path) -> list[list[np.ndarray]]:
        """See `Oracle.run`."""
        return forked(
            lambda: [tosa.run_reference(self._graph, inputs) for inputs in sets], "tosa_reference_model"
        )


def _signature(graph: bytes, path: Path) -> tosa.Signature:
    if graph[4:8] != _TOSA_IDENTIFIER:
        why = f"file identifier is {graph[4:8]!r}, expected {_TOSA_IDENTIFIER!r}"
        raise UsageError("not a TOSA graph", where=str(path), why=why)
    try:
        return tosa.signature(graph)
    except (struct.error, IndexError, KeyError, TypeError, AttributeError, ValueError) as error:
        why = f"{type(error).__name__}: {error}"
        raise UsageError("damaged TOSA graph", where=str(path), why=why) from error


class LitertOracle(Oracle):
    """LiteRT's reference kernels on a .tflite."""

    name = f"LiteRT {litert.VERSION}, reference kernels"

    def __init__(self, path: Path) -> None:
        self._path = path
        model = tflite.load(path)
        self.inputs, self.outputs = (
            tuple(_port(model.tensors[i], path) for i in side) for side in (model.inputs, model.outputs)
        )

    def run(self, sets: Sequence[Sequence[np.ndarray]], folder: Path) -> list[list[np.ndarray]]:
        """See `Oracle.run`."""
        return litert.outputs({self._path: sets}, folder)[self._path]


def _port(tensor: tflite.TfliteTensor, path: Path) -> Port:
    if tensor.dtype not in _TFLITE_TYPES:
        raise UsageError(
            f"tensor {tensor.name} is {tensor.dtype}",
            where=str(path),
            why="the NPU computes on integers only",
            hint="give a quantised model",
        )
    return Port(tensor.name, tensor.shape, np.dtype(_TFLITE_TYPES[tensor.dtype]))


def oracle_for(path: Path) -> Oracle:
    """The oracle of a .tosa or .tflite file.

    Raises:
        UsageError: it is neither, cannot be read, or has a type that no integer network has.
    """
    kinds: dict[str, type[TosaOracle] | type[LitertOracle]] = {".tosa": TosaOracle, ".tflite": LitertOracle}
    if path.suffix not in kinds:
        raise UsageError(f"no reference for {path.suffix or 'this'} files", where=str(path))
    if not path.is_file():
        raise UsageError("cannot read the model", where=str(path), why="no such file")
    return kinds[path.suffix](path)


# --- inputs -------------------------------------------------------------------------------------------------


def seeded_inputs(ports: Sequence[Port], seed: int) -> list[np.ndarray]:
    """Even seeds: uniform over the type's whole range. Odd ones: smooth and of low contrast, like images."""
    rng = np.random.default_rng(seed)
    return [(_smooth if seed % 2 else _uniform)(rng, port) for port in ports]


def _limits(dtype: np.dtype) -> tuple[int, int]:
    if dtype.kind == "b":
        return 0, 1
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def _uniform(rng: np.random.Generator, port: Port) -> np.ndarray:
    low, high = _limits(port.dtype)
    kind = np.uint8 if port.dtype.kind == "b" else port.dtype
    return rng.integers(low, high, port.shape, dtype=kind, endpoint=True).astype(port.dtype)


def _smooth(rng: np.random.Generator, port: Port) -> np.ndarray:
    low, high = _limits(port.dtype)
    walk = np.cumsum(rng.normal(0, 1, int(np.prod(port.shape))))
    values = rng.uniform(0.2, 0.8) * (float(high) - low) + low + 4 * walk
    return values.clip(low, high).round().astype(port.dtype).reshape(port.shape)
