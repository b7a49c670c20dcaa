# SPDX-License-Identifier: Apache-2.0
"""What an operation asks of pipeline and ports whatever runs beside it: streams of requests, blocks."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from npu.config import Family, NpuConfig
from npu.featuremap import FeatureMap
from npu.isa import Storage, WeightCoding
from npu.operation import Operation
from npu.timing.hardware import SCALE_BUFFER_BYTES, Pipeline
from npu.timing.memories import Memories, whole_bursts
from npu.timing.plan import Block, KernelPlan, plan_kernel
from npu.timing.ports import Rate
from npu.timing.profile import SRAM, MemoryMap, TimingProfile
from npu.timing.streams import Flow, Streams

if TYPE_CHECKING:
    from npu.timing.passage import After

_KEPT = 1024
"""Operations kept for each NPU and memory timing: of several networks, as a rule."""


class Read(NamedTuple):
    """One feature map's share of a block.

    Attributes:
        beats: of the window.
        quickest: cycles from the request to the last beat if nothing limits the stream but the port's width.
        part: share of the window that has to be there before the first step is computed.
        quickest_part: `quickest` for that share.
    """

    beats: float
    quickest: float
    part: float
    quickest_part: float


class Work(NamedTuple):
    """A kind of blocks; cycles that do not depend on how fast streams go.

    Attributes:
        reads: by feature map.
        weights: beats by stream; `store` those of the result.
        mac, step: of the MAC array, for all (with the overhead of a block) and for one of the steps.
        last_step: before the end of the MAC work from when on the input buffer has room for a step.
        output: of the output stage or the wait for scales, with the overhead.
        last_pass, output_tail: see `npu.timing.plan.Block`.
    """

    reads: tuple[Read, ...]
    weights: tuple[float, ...]
    store: float
    mac: float
    step: float
    last_step: float
    output: float
    last_pass: float
    output_tail: float


@dataclass(frozen=True)
class Totals:
    """Cycles of all blocks together, and beats by (port, write)."""

    mac: float
    output: float
    scale_wait: float
    beats: Mapping[tuple[int, bool], float]


@dataclass(frozen=True, eq=False)
class Demand:
    """An operation at one memory timing; what is alike is the same object.

    Attributes:
        response: cycles from the last beat of a store until an operation that depends on it may use it.
        streams: of feature maps, of weights and scales, and of the result, in this order.
        maps, weights: numbers of streams of feature maps and of weights and scales.
        ports: of the largest stream of each kind: "ifm", "weights", "scales", "store".
        weight_room: beats of weights that may be read while the operation waits for the one before.
        latencies: of the reads of feature maps, then of those of weights.
        works: by kind of block.
        least: cycles if no stream disturbs another.
        passages: what `npu.timing.passage` has worked out for it.
    """

    plan: KernelPlan
    response: float
    streams: Streams
    maps: int
    weights: int
    weight_room: float
    ports: Mapping[str, int]
    latencies: tuple[float, ...]
    works: tuple[Work, ...]
    totals: Totals
    least: float
    passages: dict[tuple[object, ...], After] = field(default_factory=dict)


class Demands:
    """Demands of operations, each worked out once.

    Args: see `Memories`.
    """

    def __init__(self, config: NpuConfig, profile: TimingProfile, memory: MemoryMap, pipeline: Pipeline):
        self.memories = Memories(config, profile, memory, pipeline)
        self._known: dict[int, tuple[Operation, Demand]] = {}  # by identity
        self._alike: dict[tuple[object, ...], Demand] = {}

    def of(self, op: Operation) -> Demand:
        """Raises NotModelled, see `plan_kernel`."""
        found = self._known.get(id(op))
        if found is not None:
            return found[1]
        if len(self._known) >= _KEPT:
            self._known.clear()
            self._alike.clear()
        key = _likeness(op, self.memories.pipeline.beat_bytes)
        demand = self._alike.get(key)
        if demand is None:
            plan = plan_kernel(self.memories.config, op, self.memories.pipeline)
            demand = self._alike[key] = _Builder(self.memories, plan).demand()
        self._known[id(op)] = op, demand
        return demand


def _likeness(op: Operation, beat: int) -> tuple[object, ...]:
    """Operations for which this is equal differ in addresses and constants only, and in no cycle."""
    weights = op.weights
    streams = weights and (
        *(weights.region, weights.scale_region, weights.coding),
        *[tuple([length for _, length in group]) for group in (weights.streams, weights.scale_streams)],
    )
    command, activation = op.command, op.activation
    return (
        *(command.opcode, command.operand, op.ofm_shape, op.ofm_block, op.blockdep),
        *(op.transpose, op.reverse, op.accumulator.bits, op.accumulator.microblock),
        *(activation.function, activation.clip, op.kernel, op.padding, op.upscale, op.resize, streams),
        *[bool(scale.shift) for scale in op.operand_scales],
        *[_map_likeness(fm, beat) for fm in (op.ifm, op.ifm2, op.ofm)],
    )


def _map_likeness(fm: FeatureMap | None, beat: int) -> tuple[object, ...] | None:
    if fm is None:
        return None
    strides = fm.stride_y, fm.stride_x
    return fm.shape, fm.dtype, fm.layout, fm.storage, fm.region, fm.bases[0] % beat, strides


@lru_cache(maxsize=8)
def demands(config: NpuConfig, profile: TimingProfile, memory: MemoryMap, pipeline: Pipeline) -> Demands:
    """Kept from one estimate to the next."""
    return Demands(config, profile, memory, pipeline)


class _Stream(NamedTuple):
    """Requests of one kind: the port's number, their rate if alone, latency, and the beats of each kind."""

    port: int
    rate: Rate
    latency: float
    beats: list[float]


class _Builder:
    def __init__(self, memories: Memories, plan: KernelPlan):
        self._memories, self._plan, self._pipeline = memories, plan, memories.pipeline
        self._blocks = [block for block, _ in plan.kinds]
        self._numbers = [number for _, number in plan.kinds]
        self._reads = list(self._read_streams())
        self._weights = list(self._weight_streams())
        self._scale_waits = list(map(self._scale_wait, self._blocks))
        ofm = plan.op.ofm
        chained = ofm.storage is Storage.CHAINED
        port = SRAM if chained else memories.port(ofm.region)
        self._response = 0.0 if chained else memories.adapters[port].wlatency + self._pipeline.drain
        rate = memories.rate(port, plan.write_burst, write=True)
        self._store = _Stream(port, rate, 0.0, [block.store for block in self._blocks])

    def demand(self) -> Demand:
        every = [*self._reads, *self._weights, self._store]
        streams = Streams([Flow(each.port, self._total(each.beats), each.rate) for each in every])
        return Demand(
            plan=self._plan,
            response=self._response,
            streams=streams,
            maps=len(self._reads),
            weights=len(self._weights),
            weight_room=self._weight_room(),
            ports=self._ports(),
            latencies=tuple(each.latency for each in every[:-1]),
            works=tuple(self._work(kind) for kind in range(len(self._blocks))),
            totals=self._totals(streams.flows),
            least=self._least(streams.least),
        )

    # --- streams of requests --------------------------------------------------------------------------------

    def _read_streams(self) -> Iterator[_Stream]:
        memories, plan = self._memories, self._plan
        streamed = plan.op.command.name in ("OP_ELEMENTWISE", "OP_RESIZE")
        buffer = memories.buffers("ifm_stream" if streamed else "ifm")
        for operand, region in enumerate(plan.regions):
            port = memories.port(region)
            rate = memories.rate(port, plan.read_burst, buffer=buffer)
            beats = [block.reads[operand] for block in self._blocks]
            yield _Stream(port, rate, memories.adapters[port].rlatency, beats)

    def _weight_streams(self) -> Iterator[_Stream]:
        """Weights, then scales; one stream if they come through the same port."""
        memories, plan = self._memories, self._plan
        if not plan.weight_streams:
            return
        ports = [memories.port(region) for region in (plan.weight_region, plan.scale_region)]
        beats = [total / self._pipeline.beat_bytes for total in (sum(plan.weight_streams), plan.scale_bytes)]
        if ports[0] == ports[1]:
            ports, beats = ports[:1], [sum(beats)]
        rate = self._weight_rate(ports[0])
        for port, total in zip(ports, beats, strict=True):
            share = [total * block.weights for block in self._blocks]
            yield _Stream(port, rate, memories.adapters[port].rlatency, share)

    def _weight_rate(self, port: int) -> Rate:
        memories, pipeline, weights = self._memories, self._pipeline, self._plan.op.weights
        buffer = memories.buffers("weights")
        if weights and weights.coding is WeightCoding.FWD:
            buffer = memories.buffers("fast_weights", pipeline.fast_weight_efficiency)
        rate = memories.rate(port, pipeline.ext_burst, buffer=buffer)
        latency = memories.adapters[port].rlatency
        if not (pipeline.core_weight_buffer and latency):
            return rate
        room = whole_bursts(pipeline.buffer_efficiency * pipeline.core_weight_buffer, pipeline.ext_burst)
        room *= memories.config.cores
        return Rate(min(rate.beats, room / (latency + pipeline.ext_burst)), rate.slots, False, rate.top)

    def _weight_room(self) -> float:
        weights = self._plan.op.weights
        if not self._pipeline.weights_ahead:
            return math.inf
        fast = weights is not None and weights.coding is WeightCoding.FWD
        return self._memories.buffers("fast_weights" if fast else "weights", 1.0)

    # --- blocks ---------------------------------------------------------------------------------------------

    def _scale_wait(self, block: Block) -> float:
        """Cycles until a block's scales are there: SCALE_BUFFER_BYTES a latency, in every core."""
        plan, config = self._plan, self._memories.config
        if not plan.scale_bytes:
            return 0.0
        cores = config.cores if config.family is Family.U65 else 1
        size = max(SCALE_BUFFER_BYTES, plan.scale_bytes * block.weights) / cores
        return size / SCALE_BUFFER_BYTES * self._weights[-1].latency

    def _work(self, kind: int) -> Work:
        block, plan, overhead = self._blocks[kind], self._plan, self._pipeline.block_overhead
        return Work(
            reads=tuple(self._read(stream, stream.beats[kind]) for stream in self._reads),
            weights=tuple(stream.beats[kind] for stream in self._weights),
            store=block.store,
            mac=block.mac + overhead,
            step=block.mac / plan.steps,
            last_step=block.mac * plan.last_step,
            output=max(block.output, self._scale_waits[kind]) + overhead,
            last_pass=block.last_pass,
            output_tail=block.output_tail,
        )

    def _read(self, stream: _Stream, beats: float) -> Read:
        if not beats:
            return Read(0.0, 0.0, 0.0, 0.0)
        steps, shortest = self._plan.steps, beats / stream.rate.top
        part = min(1.0, max(1, math.ceil(self._plan.fill / beats * steps)) / steps)
        return Read(beats, stream.latency + shortest, part, stream.latency + shortest * part)

    def _ports(self) -> dict[str, int]:
        ports = {"store": self._store.port}
        if self._reads:
            ports["ifm"] = max(self._reads, key=lambda stream: self._total(stream.beats)).port
        if self._weights:
            ports |= {"weights": self._weights[0].port, "scales": self._weights[-1].port}
        return ports

    # --- all together ---------------------------------------------------------------------------------------

    def _total(self, values: Sequence[float]) -> float:
        """Of all blocks, from those of each kind."""
        return sum(map(operator.mul, values, self._numbers))

    def _totals(self, flows: Sequence[Flow]) -> Totals:
        waits = zip(self._scale_waits, self._blocks, strict=True)
        beats: dict[tuple[int, bool], float] = {}
        for flow in flows:
            key = flow.port, flow.rate.write
            beats[key] = beats.get(key, 0.0) + flow.beats
        return Totals(
            mac=self._total([block.mac for block in self._blocks]),
            output=self._total([block.output for block in self._blocks]),
            scale_wait=self._total([max(0.0, wait - block.output) for wait, block in waits]),
            beats=beats,
        )

    def _least(self, alone: Sequence[float]) -> float:
        """Stages overlap but for the first and the last block."""
        overhead = self._pipeline.block_overhead
        stages = [
            self._total([block.mac + overhead for block in self._blocks]),
            self._total([block.output + overhead for block in self._blocks]),
            *alone,
        ]
        longest = max(stages)
        latency = max([0.0, *(stream.latency for stream in (*self._reads, *self._weights))])
        return longest + (sum(stages) - longest) / sum(self._numbers) + latency + self._response
