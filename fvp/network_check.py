# SPDX-License-Identifier: Apache-2.0
"""A compiled network against the oracle of the file it was made of: equal, or the first place that is not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fvp.compare import Difference, first_difference
from fvp.oracle import Oracle, Port
from npu.config import from_config_word
from npu.container import TensorSpec, VelaBin
from npu.machine import execute
from npu.stream import parse
from npu.writer import last_writer
from report.vela_debug import QueuedOperation, at


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
class NetworkCheck:
    """What was compared: `mismatches` has the first difference of each set of inputs that has any."""

    oracle: str
    target: str
    cases: int
    elements: int
    mismatches: tuple[Mismatch, ...]


def check_network(
    network: VelaBin,
    oracle: Oracle,
    sets: Sequence[Sequence[np.ndarray]],
    folder: Path,
    debug: Mapping[int, QueuedOperation] | None = None,
) -> NetworkCheck:
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
    return NetworkCheck(oracle.name, config.name, len(sets), elements, tuple(mismatches))


def _mismatches(
    network: VelaBin,
    oracle: Oracle,
    case: int,
    actual: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    debug: Mapping[int, QueuedOperation],
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
    debug: Mapping[int, QueuedOperation],
) -> Mismatch:
    stream = parse(network.cmd_data)
    flat = int(np.ravel_multi_index(difference.index, shape)) if shape else 0
    address = spec.offset + flat * spec.elem_size
    step = last_writer(stream, from_config_word(stream.config_word).family, spec.region, address)
    if step is None:
        return Mismatch(case, number, port.name, difference, None, None, None)
    source = at(debug, step.command.offset - stream.base_offset)
    return Mismatch(case, number, port.name, difference, step.command.name, step.command.offset, source)
