# SPDX-License-Identifier: Apache-2.0
"""A compiled network against the oracle of the file it was made of: equal, or the first place that is not.

Oracles: `tosa_reference_model` for a TOSA graph, LiteRT's reference kernels for a .tflite.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fvp import litert, tosa
from fvp.compare import Difference, first_difference
from npu.config import from_config_word
from npu.container import TensorSpec, VelaBin
from npu.machine import execute
from npu.stream import parse
from npu.writer import last_writer
from report import tflite
from report.errors import UsageError
from report.vela_debug import QueuedOperation, at

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
        found = tosa.signature(self._graph)
        self.inputs, self.outputs = (
            tuple(Port(t.name, t.shape, t.dtype) for t in side) for side in (found.inputs, found.outputs)
        )

    def run(self, sets: Sequence[Sequence[np.ndarray]], folder: Path) -> list[list[np.ndarray]]:
        """See `Oracle.run`."""
        return [tosa.run_reference(self._graph, inputs) for inputs in sets]


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
    kind = np.int64 if port.dtype.kind in "bi" else np.uint64
    return rng.integers(low, high, port.shape, dtype=kind, endpoint=True).astype(port.dtype)


def _smooth(rng: np.random.Generator, port: Port) -> np.ndarray:
    low, high = _limits(port.dtype)
    walk = np.cumsum(rng.normal(0, 1, int(np.prod(port.shape))))
    values = rng.uniform(0.2, 0.8) * (float(high) - low) + low + 4 * walk
    return values.clip(low, high).round().astype(port.dtype).reshape(port.shape)


# --- comparison ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mismatch:
    """The first element that differs.

    Attributes:
        case: number of the set of inputs.
        output: number of the output; `name` is its name in the model.
        operation, offset: command that wrote it last, and its byte offset in the driver payload; None when
            no command did.
        source: what Vela made that command for, None without a debug database.
    """

    case: int
    output: int
    name: str
    difference: Difference
    operation: str | None
    offset: int | None
    source: QueuedOperation | None

    def __str__(self) -> str:
        text = f"inputs {self.case}, output {self.output} ({self.name}): {self.difference}"
        if self.operation is None:
            return f"{text}; no operation wrote it"
        made_for = f", made for {self.source.source}" if self.source is not None else ""
        return f"{text}; written by {self.operation} at byte {self.offset:#x}{made_for}"


@dataclass(frozen=True)
class Verification:
    """What was compared: `mismatches` has the first difference of each set of inputs that has any."""

    oracle: str
    target: str
    cases: int
    elements: int
    mismatches: tuple[Mismatch, ...]


def verify(
    network: VelaBin,
    oracle: Oracle,
    sets: Sequence[Sequence[np.ndarray]],
    folder: Path,
    debug: dict[int, QueuedOperation] | None = None,
) -> Verification:
    """Execute the network on every set of inputs and compare all outputs bit for bit.

    Args:
        folder: for files on the way.
        debug: Vela's debug database of the network, to name what a wrong element was made for.

    Raises:
        NpuError: the network cannot be executed.
        EnvironmentError_, RunFailed: the oracle has no answer.
    """
    config = from_config_word(parse(network.cmd_data).config_word)
    expected = oracle.run(sets, folder)
    found = [execute(network, config, inputs) for inputs in sets]
    mismatches = []
    for case, (actual, wanted) in enumerate(zip(found, expected, strict=True)):
        mismatches += list(_mismatches(network, oracle, case, actual, wanted, debug or {}))[:1]
    elements = sum(array.size for arrays in expected for array in arrays)
    return Verification(oracle.name, config.name, len(sets), elements, tuple(mismatches))


def _mismatches(
    network: VelaBin,
    oracle: Oracle,
    case: int,
    actual: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    debug: dict[int, QueuedOperation],
) -> Iterator[Mismatch]:
    rows = zip(network.outputs, oracle.outputs, actual, expected, strict=True)
    for number, (spec, port, mine, theirs) in enumerate(rows):
        same_kind = np.frombuffer(mine.tobytes(), theirs.dtype).reshape(theirs.shape)
        difference = first_difference(same_kind, theirs)
        if difference is not None:
            yield _mismatch(network, case, number, port, spec, difference, theirs.shape, debug)


def _mismatch(
    network: VelaBin,
    case: int,
    number: int,
    port: Port,
    spec: TensorSpec,
    difference: Difference,
    shape: tuple[int, ...],
    debug: dict[int, QueuedOperation],
) -> Mismatch:
    stream = parse(network.cmd_data)
    flat = int(np.ravel_multi_index(difference.index, shape)) if shape else 0
    address = spec.offset + flat * spec.elem_size
    step = last_writer(stream, from_config_word(stream.config_word).family, spec.region, address)
    if step is None:
        return Mismatch(case, number, port.name, difference, None, None, None)
    source = at(debug, step.command.offset - stream.base_offset)
    return Mismatch(case, number, port.name, difference, step.command.name, step.command.offset, source)
