# SPDX-License-Identifier: Apache-2.0
"""Layer by layer: each tensor that a command stream leaves in memory against the TOSA reference model's.

Vela's debug database tells which tensor an operation completes and where that is; it is compared at that very
moment, since its memory is used again later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fvp import tosa
from fvp.compare import Difference, first_difference
from npu.config import from_config_word
from npu.container import VelaBin
from npu.machine import Npu, memory_for
from npu.memory import ArrayMemory
from npu.operation import Operation
from npu.stream import Command, parse
from npu.walk import walk
from report.vela_debug import Placement, QueuedOperation

_BRICK = 16


@dataclass(frozen=True)
class Layer:
    """One tensor of the graph.

    Attributes:
        tensor, source: its name, and the kind of operator that Vela made the operation for.
        operation, offset: number in the stream, and byte offset in the driver payload, of what completes it.
        difference: the first element that differs, None when all are equal or nothing could be compared.
        reason: why nothing could be compared, "" if it was.
    """

    tensor: str
    source: str
    operation: int
    offset: int
    difference: Difference | None
    reason: str


def bisect(
    network: VelaBin,
    graph: bytes,
    inputs: Sequence[np.ndarray],
    queue: Mapping[int, QueuedOperation],
) -> list[Layer]:
    """Every tensor that Vela's operations compute, in order; at the first difference results depart.

    Args:
        graph: the serialised TOSA graph that the network was compiled from.
        queue: Vela's debug database of the network.

    Raises:
        NpuError: the network cannot be executed.
        EnvironmentError_, RunFailed: the reference model is missing or refuses the graph.
    """
    expected = tosa.intermediates(graph, inputs)
    stream = parse(network.cmd_data)
    config = from_config_word(stream.config_word)
    steps = {step.command.offset: step for step in walk(stream.commands, config.family)}
    completed = {queued.result: offset for offset, queued in sorted(queue.items())}
    memory = memory_for(network, inputs)
    layers: list[Layer] = []

    def look(command: Command) -> None:
        offset, step = command.offset - stream.base_offset, steps.get(command.offset)
        queued = queue.get(offset)
        if queued is None or step is None or completed[queued.result] != offset:
            return
        region = step.work.ofm.region if isinstance(step.work, Operation) else None
        difference, reason = _compare(memory, region, queued, expected)
        layers.append(Layer(queued.result, queued.source, step.number, command.offset, difference, reason))

    Npu(config).run(network.cmd_data, memory, look)
    return layers


def _compare(
    memory: ArrayMemory, region: int | None, queued: QueuedOperation, expected: Mapping[str, np.ndarray]
) -> tuple[Difference | None, str]:
    """(first difference, why nothing was compared)."""
    wanted, place = expected.get(queued.result), queued.placement
    if wanted is None:
        return None, "Vela's own tensor, not one of the graph"
    if place is None or region is None:
        return None, "not in memory as a whole"
    found = _read(memory, region, place, wanted)
    if found is None:
        return None, "only a part of it is in memory at a time"
    return first_difference(found, wanted), ""


def _read(memory: ArrayMemory, region: int, place: Placement, like: np.ndarray) -> np.ndarray | None:
    """The tensor at `place` in the shape and type of `like`; None when it does not fit there."""
    n, height, width, depth = place.shape
    count, size = n * height * width * depth, like.dtype.itemsize
    bricks = -(-depth // _BRICK)
    stored = n * height * width * (bricks * _BRICK if place.layout == "NHCWB16" else depth) * size
    if count != like.size or stored > place.size:
        return None
    raw = memory.read(region, place.address, stored).copy().view(like.dtype)
    if place.layout == "NHCWB16":
        raw = raw.reshape(n, height, bricks, width, _BRICK).transpose(0, 1, 3, 2, 4)
        raw = raw.reshape(n, height, width, bricks * _BRICK)[..., :depth]
    return np.ascontiguousarray(raw).reshape(like.shape)
