# SPDX-License-Identifier: Apache-2.0
"""One operation in the pipeline: its blocks pass through input fetch, MAC array and output stage.

How fast the operation's streams of requests go side by side is settled first, for all of it; the blocks then
pass one by one with constant costs, which is most of the model's time.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from npu.config import Family
from npu.isa import Storage, WeightCoding
from npu.timing.hardware import SCALE_BUFFER_BYTES
from npu.timing.plan import Block, KernelPlan
from npu.timing.ports import Flow, Rate, shares
from npu.timing.profile import SRAM

if TYPE_CHECKING:
    from npu.timing.timeline import Timeline


MAX_BLOCKDEP = 7

_ROUNDS = 3
_CLOSE = 0.02
_EQUAL = 1e-6


@dataclass
class Usage:
    """What an operation kept busy, in cycles; beats by (port, write)."""

    mac: float = 0.0
    output: float = 0.0
    ifm: float = 0.0
    weights: float = 0.0
    store: float = 0.0
    scale_wait: float = 0.0
    dma_wait: float = 0.0
    beats: dict[tuple[int, bool], float] = field(default_factory=dict)

    def move(self, port: int, write: bool, beats: float) -> None:
        key = port, write
        self.beats[key] = self.beats.get(key, 0.0) + beats


@dataclass(frozen=True, slots=True)
class _Cost:
    """What the blocks of one kind have in common, in cycles.

    Attributes:
        first, last, free: from the first request for input until the first step can be computed, until all of
            it has arrived, and until the next request.
        mac, step: of the MAC array, for all and for one of the steps.
        follow: of the MAC array at least, when it follows its input step by step.
        last_step: before the end of the MAC work from when on the input buffer has room for a step.
        weights: of the stream of weights and scales.
        output, last_pass, output_tail: of the output stage, see `Block`.
        store: to write the result.
    """

    reads: bool
    first: float
    last: float
    free: float
    mac: float
    step: float
    follow: float
    last_step: float
    weights: float
    output: float
    last_pass: float
    output_tail: float
    store: float


@dataclass(frozen=True, slots=True)
class _Stream:
    """Requests of one kind: the port's number, their rate if alone, latency, and the beats of each block."""

    port: int
    rate: Rate
    latency: float
    beats: list[float]


class KernelRun:
    """One operation passing through the pipeline of a `Timeline`.

    Attributes:
        usage: what it kept busy.
        done: when an operation that depends on it may use each block; set by `run`.
    """

    def __init__(self, timeline: Timeline, plan: KernelPlan, start: float):
        self._line, self._plan, self._start = timeline, plan, start
        self._pipeline = timeline.pipeline
        self._blocks = [block for block, _ in plan.kinds]
        op, adapters, regions = plan.op, timeline.adapters, timeline.memory.regions
        self._chained = op.ofm.storage is Storage.CHAINED
        out = regions[op.ofm.region] if not self._chained else SRAM
        self._response = 0.0 if self._chained else adapters[out].wlatency + self._pipeline.drain
        rate = timeline.rate(out, plan.write_burst, write=True)
        self._store = _Stream(out, rate, 0.0, [block.store for block in self._blocks])
        self._reads = list(self._read_streams())
        self._weights = list(self._weight_streams())
        self._scale_waits = list(map(self._scale_wait, self._blocks))
        self._begin = max(start, timeline.fetch_free, self._dependency(0))
        self._flows = [Flow(timeline.ports[s.port], self._total(s.beats), s.rate) for s in self._streams()]
        self.done: deque[float] = deque()

    # --- streams of requests --------------------------------------------------------------------------------

    def _read_streams(self) -> Iterator[_Stream]:
        line, plan = self._line, self._plan
        streamed = plan.op.command.name in ("OP_ELEMENTWISE", "OP_RESIZE")
        buffer = line.buffers("ifm_stream" if streamed else "ifm")
        for operand, region in enumerate(plan.regions):
            port = line.memory.regions[region]
            rate = line.rate(port, plan.read_burst, buffer=buffer)
            yield _Stream(port, rate, line.adapters[port].rlatency, [b.reads[operand] for b in self._blocks])

    def _weight_streams(self) -> Iterator[_Stream]:
        """Weights, then scales; one stream if they come through the same port."""
        line, plan = self._line, self._plan
        if not plan.weight_streams:
            return
        ports = [line.memory.regions[region] for region in (plan.weight_region, plan.scale_region)]
        beats = [total / self._pipeline.beat_bytes for total in (sum(plan.weight_streams), plan.scale_bytes)]
        if ports[0] == ports[1]:
            ports, beats = ports[:1], [sum(beats)]
        rate = self._weight_rate(ports[0])
        for port, total in zip(ports, beats, strict=True):
            share = [total * block.weights for block in self._blocks]
            yield _Stream(port, rate, line.adapters[port].rlatency, share)

    def _weight_rate(self, port: int) -> Rate:
        line, pipeline, weights = self._line, self._pipeline, self._plan.op.weights
        buffer = line.buffers("weights")
        if weights and weights.coding is WeightCoding.FWD:
            buffer = line.buffers("fast_weights", pipeline.fast_weight_efficiency)
        rate = line.rate(port, pipeline.ext_burst, buffer=buffer)
        latency = line.adapters[port].rlatency
        if not (pipeline.core_weight_buffer and latency):
            return rate
        room = pipeline.buffer_efficiency * pipeline.core_weight_buffer * line.config.cores
        return Rate(min(rate.beats, room / (latency + pipeline.ext_burst)), rate.slots, False, rate.top)

    def _scale_wait(self, block: Block) -> float:
        """Cycles until a block's scales are there: SCALE_BUFFER_BYTES a latency, in every core."""
        plan, config = self._plan, self._line.config
        if not plan.scale_bytes:
            return 0.0
        cores = config.cores if config.family is Family.U65 else 1
        size = max(SCALE_BUFFER_BYTES, plan.scale_bytes * block.weights) / cores
        return size / SCALE_BUFFER_BYTES * self._weights[-1].latency

    def _total(self, values: list[float]) -> float:
        """Of all blocks, from those of each kind."""
        return sum(value * number for value, (_, number) in zip(values, self._plan.kinds, strict=True))

    def _streams(self) -> list[_Stream]:
        return [*self._reads, *self._weights, self._store]

    def _least(self) -> float:
        """Cycles if no stream disturbs another: stages overlap but for the first and the last block."""
        overhead = self._pipeline.block_overhead
        stages = [
            self._total([block.mac + overhead for block in self._blocks]),
            self._total([block.output + overhead for block in self._blocks]),
            *(flow.least for flow in self._flows),
        ]
        longest = max(stages)
        latency = max([stream.latency for stream in self._streams()]) + self._response
        number = sum(number for _, number in self._plan.kinds)
        return longest + (sum(stages) - longest) / number + latency

    def _count(self) -> Usage:
        """Busy time and beats of all blocks together."""
        usage = Usage(mac=self._total([b.mac for b in self._blocks]))
        usage.output = self._total([b.output for b in self._blocks])
        waits = zip(self._scale_waits, self._blocks, strict=True)
        usage.scale_wait = self._total([max(0.0, wait - b.output) for wait, b in waits])
        names = ["ifm"] * len(self._reads) + ["weights"] * len(self._weights) + ["store"]
        for name, stream, speed in zip(names, self._streams(), self._speeds, strict=True):
            beats = self._total(stream.beats)
            usage.move(stream.port, name == "store", beats)
            setattr(usage, name, getattr(usage, name) + beats / speed)
        return usage

    # --- costs of a block -----------------------------------------------------------------------------------

    def _cost(self, kind: int, speeds: list[float]) -> _Cost:
        block, plan, overhead = self._blocks[kind], self._plan, self._pipeline.block_overhead
        streams = len(self._reads)
        weights = zip(self._weights, speeds[streams:-1], strict=True)
        step, (service, latency) = block.mac / plan.steps, self._last_read(kind, speeds)
        first, last, free = self._arrival(kind, speeds)
        reads = any(block.reads)
        follow = 0.0
        if reads and plan.stepwise:
            # With room for two steps, the next one is asked for when the one before is done with.
            period = max(step, service / plan.steps, (latency + service / plan.steps + step) / 2)
            follow = step + (plan.steps - 1) * period
        return _Cost(
            reads=reads,
            first=first,
            last=last,
            free=max(free, overhead),
            mac=block.mac + overhead,
            step=step,
            follow=follow,
            last_step=block.mac * plan.last_step,
            weights=sum(stream.beats[kind] / speed for stream, speed in weights),
            output=max(block.output, self._scale_waits[kind]) + overhead,
            last_pass=block.last_pass,
            output_tail=block.output_tail,
            store=block.store / speeds[-1],
        )

    def _last_read(self, kind: int, speeds: list[float]) -> tuple[float, float]:
        """Service time and latency of the last feature map of a block."""
        found = 0.0, 0.0
        for stream, speed in zip(self._reads, speeds, strict=False):
            if stream.beats[kind]:
                found = stream.beats[kind] / speed, stream.latency
        return found

    def _arrival(self, kind: int, speeds: list[float]) -> tuple[float, float, float]:
        """Cycles until the first step is there, until all is, and until the next read may start."""
        first = last = free = 0.0
        for stream, speed in zip(self._reads, speeds, strict=False):
            beats, rate, latency = stream.beats[kind], stream.rate, stream.latency
            if not beats:
                continue
            service, shortest, exposed = beats / speed, beats / rate.top, _exposed(stream, speed)
            steps = self._plan.steps
            part = min(1.0, max(1, math.ceil(self._plan.fill / beats * steps)) / steps)
            arrived = max(latency + shortest, service + exposed)
            first = max(first, latency + shortest * part, service * part + exposed)
            last, free = max(last, arrived), max(free, arrived - latency)
        return first, last, free

    # --- the blocks -----------------------------------------------------------------------------------------

    def run(self) -> None:
        """Pass all blocks, from the pipeline's state before the operation to that after it.

        Streams get what is left of the ports by the others' averages over the operation, which takes as long
        as that makes it: a few rounds until both agree.
        """
        guess = self._least()
        tried: list[tuple[float, float]] = []
        for _ in range(_ROUNDS):
            self._speeds = shares(self._flows, self._begin, guess)
            self._costs = [self._cost(kind, self._speeds) for kind in range(len(self._blocks))]
            alone = [stream.rate.beats for stream in self._reads] + self._speeds[len(self._reads) :]
            self._first = self._cost(self._plan.runs[0][0][0], alone)
            after = self._pass()
            took = self.done[-1] - self._begin
            undisturbed = all(s == flow.rate.beats for s, flow in zip(self._speeds, self._flows, strict=True))
            if undisturbed or abs(took - guess) < _CLOSE * took:
                break
            tried.append((guess, took))
            guess = _next_guess(tried)
        self.usage = self._count()
        line, end = self._line, max(self._begin, self.done[-1] - self._response)
        for flow in self._flows:
            flow.port.spread(self._begin, end, flow.beats, flow.rate)
        line.fetch_free, line.mac_free, line.output_free, line.weights_fetched = after

    def _pass(self) -> tuple[float, float, float, float]:
        """Times at which input fetch, MAC array, output stage and weight stream are free again.

        One loop with local variables, because it is most of the model's time.
        """
        line, costs, response = self._line, self._costs, self._response
        stepwise, ahead = self._plan.stepwise, self._plan.windows_ahead
        lookahead = self._pipeline.weight_lookahead
        depth, settled = self._plan.op.blockdep, self._dependency(self._plan.op.blockdep)
        fetch, mac, last = max(line.fetch_free, self._start), line.mac_free, line.output_free
        weights, first_weights, weights_there = self._first_weights()
        number, before, last_step = 0, 0.0, 0.0
        windows: deque[float] = deque(maxlen=ahead)  # ends of MAC work on what is in the input buffer
        done: deque[float] = deque(maxlen=MAX_BLOCKDEP + 1)
        for sequence, times in self._plan.runs:
            reads = any(costs[kind].reads for kind in sequence)
            state: tuple[float, ...] = ()
            while times:
                for kind in sequence:
                    cost = costs[kind] if number else self._first
                    start = max(fetch, settled if number >= depth else self._dependency(number))
                    complete = fetch = start
                    if cost.reads:
                        if stepwise and windows:  # room for a step
                            start = max(start, windows[-1] - last_step)
                        elif len(windows) == ahead:
                            start = max(start, windows[0])
                        fetch, complete, last_step = start + cost.free, start + cost.last, cost.last_step
                        start += cost.first
                    start = max(start, mac, before)
                    if number:
                        weights_there = weights = max(start - lookahead, weights) + cost.weights
                    else:
                        start = max(start, first_weights)
                    # The MAC array works for at least a step after the last input.
                    mac = max(start + cost.mac, complete + cost.step, weights_there, start + cost.follow)
                    if cost.reads:
                        windows.append(mac)
                    elif windows:  # the last window serves this block too
                        windows[-1] = mac
                    start = max(last, mac - cost.last_pass)
                    end = max(start + cost.output, mac + cost.output_tail, start + cost.store)
                    before, last = last if number else 0.0, end  # there are two sets of accumulators
                    done.append(last + response)
                    number += 1
                times -= 1
                # What does not change any more but for a shift in time is not computed again.
                seen, state = state, (last, before, mac, *((fetch, *windows) if reads else ()))
                if times and (shift := _shift(seen, state)):
                    later = times * shift
                    last, before, mac, weights = last + later, before + later, mac + later, weights + later
                    number += times * len(sequence)
                    if reads:
                        fetch += later
                        windows.extend([window + later for window in windows])
                    elif windows:
                        windows[-1] += later
                    done.extend(_continued(done, len(sequence), shift, times))
                    break
        self.done = done
        return fetch, mac, last, weights if self._weights else line.weights_fetched

    def _dependency(self, number: int) -> float:
        """Earliest start by the block dependency: block n of this operation needs what is that far behind."""
        done, depth = self._line.done_before, self._plan.op.blockdep
        index = len(done) - 1 - depth + number if depth else len(done) - 1
        return done[min(index, len(done) - 1)] if done and index >= 0 else 0.0

    def _first_weights(self) -> tuple[float, float, float]:
        """Of the first block: weights all moved, work on the first ones can begin, all there."""
        asked = max(self._start, self._line.weights_fetched)
        if not self._weights:
            return asked, 0.0, 0.0
        if not self._plan.op.blockdep:
            asked = max(asked, self._dependency(0))
        latency = self._weights[0].latency
        moved = asked + self._costs[self._plan.runs[0][0][0]].weights
        return moved, asked + latency + self._pipeline.weight_start, moved + latency


def _exposed(stream: _Stream, speed: float) -> float:
    """Latency behind the time a stream takes, which holds half of it if transactions in flight limit it."""
    limited = speed / stream.rate.beats if stream.rate.beats < stream.rate.top else 0.0
    return stream.latency * (1 - limited / 2)


def _shift(before: tuple[float, ...], after: tuple[float, ...]) -> float:
    """By how much all times have moved on, if by the same; else 0."""
    if len(before) != len(after):
        return 0.0
    shift = after[0] - before[0]
    return shift if all(abs(b - a - shift) < _EQUAL for a, b in zip(before, after, strict=True)) else 0.0


def _continued(ends: deque[float], period: int, shift: float, times: int) -> list[float]:
    """The last of `times` more periods of a sequence that moves on by `shift` each period."""
    last = list(ends)[-period:]
    first = max(0, times - MAX_BLOCKDEP - 1)
    return [end + (count + 1) * shift for count in range(first, times) for end in last]


def _next_guess(tried: list[tuple[float, float]]) -> float:
    """Where the line through the last two (guess, result) says that both are equal; at first, half-way."""
    guess, took = tried[-1]
    if len(tried) > 1:
        other, result = tried[-2]
        slope = (took - result) / (guess - other) if guess != other else 0.0
        if slope < 0:
            return (took - slope * guess) / (1 - slope)
    return (guess + took) / 2
