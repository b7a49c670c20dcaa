# SPDX-License-Identifier: Apache-2.0
"""The blocks of one operation pass through input fetch, MAC array and output stage.

Its streams of requests go at given speeds, so all blocks of a kind cost the same, and nothing here depends on
when the operation starts: times count from when its input fetch is free. Operations that are alike and meet
the pipeline in the same state, as the rows of a transposed map do, pass in the same way, which is worked out
once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from npu.timing.demand import Demand, Work
from npu.timing.hardware import Pipeline
from npu.timing.ports import Rate

MAX_BLOCKDEP = 7
_EQUAL = 1e-6
_GRID = 1 << 23
"""Parts of a cycle: between operations times are whole numbers of them, so differences of times are exact and
equal states compare equal."""
_KEPT = 32
"""Passages kept for operations that are alike."""


class Before(NamedTuple):
    """Pipeline before an operation, in cycles after its input fetch is free; 0 for what is free by then.

    Attributes:
        mac, output: when MAC array and output stage are free.
        weights: when its first weights are asked for.
        earliest: when blocks may start by the block dependency; the last value is that of all further ones.
    """

    mac: float
    output: float
    weights: float
    earliest: tuple[float, ...]


class Usage(NamedTuple):
    """What an operation kept busy, in cycles; beats by (port, write).

    Attributes:
        dependency: its blocks waited for those of the operation before.
        ports: numbers, of the stream of each kind; see `npu.timing.demand.Demand`.
    """

    beats: Mapping[tuple[int, bool], float]
    mac: float = 0.0
    output: float = 0.0
    ifm: float = 0.0
    weights: float = 0.0
    store: float = 0.0
    scale_wait: float = 0.0
    dependency: float = 0.0
    ports: Mapping[str, int] = MappingProxyType({})


class After(NamedTuple):
    """Pipeline after an operation, in cycles after its input fetch was free.

    Attributes:
        fetch, mac, output, weights: when input fetch, MAC array, output stage and weight stream are free.
        done: when an operation that depends on it may use each of the last blocks.
        usage: what the operation kept busy.
    """

    fetch: float
    mac: float
    output: float
    weights: float
    done: tuple[float, ...]
    usage: Usage


def on_grid(time: float) -> float:
    """The nearest time that is a whole number of the parts of a cycle."""
    return round(time * _GRID) / _GRID


def passage(demand: Demand, pipeline: Pipeline, speeds: tuple[float, ...], state: Before) -> After:
    """All blocks, streams going at `speeds` (beats a cycle, in the order of `Demand.streams`)."""
    key = speeds, state
    known = demand.passages.get(key)
    if known is None:
        if len(demand.passages) >= _KEPT:
            demand.passages.clear()
        known = demand.passages[key] = _Passage(demand, pipeline, speeds, state).run()
    return known


class _Cost(NamedTuple):
    """What the blocks of one kind have in common, in cycles.

    Attributes:
        first, last, free: from the first request for input until the first step can be computed, until all of
            it has arrived, and until the next request; `free` is 0 for blocks that read nothing.
        mac, step: of the MAC array, for all and for one of the steps.
        follow: of the MAC array at least, when it follows its input step by step.
        last_step, output, last_pass, output_tail: see `npu.timing.demand.Work`.
        weights: of the stream of weights and scales.
        store: to write the result.
    """

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


@dataclass(slots=True)
class _Clock:
    """How far an operation has come; times in cycles.

    Attributes:
        fetch, mac, output, weights: when input fetch, MAC array, output stage and weight stream are free.
        weights_begin: when work on the first weights can begin.
        weights_there: when those of the block in question have arrived.
        windows: ends of MAC work on what is in the input buffer.
        done: when an operation that depends on it may use each of the last blocks.
        number: of the next block.
        before: end of the output of the block before the last.
        room: cycles before the end of MAC work at which there is room for a step.
        waited: for the operation before.
    """

    fetch: float
    mac: float
    output: float
    weights: float
    weights_begin: float
    weights_there: float
    windows: deque[float]
    done: deque[float]
    number: int = 0
    before: float = 0.0
    room: float = 0.0
    waited: float = 0.0

    def state(self, reads: bool) -> tuple[float, ...]:
        """What decides on the blocks to come; of the input only where it is read."""
        return (self.output, self.before, self.mac, *((self.fetch, *self.windows) if reads else ()))

    def skip(self, times: int, period: int, shift: float, reads: bool) -> None:
        """Pass `times` more sequences of `period` blocks, each `shift` later than the one before."""
        later = times * shift
        self.output, self.before, self.mac = self.output + later, self.before + later, self.mac + later
        self.weights += later
        self.number += times * period
        if reads:
            self.fetch += later
            self.windows.extend([window + later for window in self.windows])
        elif self.windows:
            self.windows[-1] += later
        self.done.extend(_continued(self.done, period, shift, times))


class _Passage:
    def __init__(self, demand: Demand, pipeline: Pipeline, speeds: Sequence[float], state: Before):
        self._demand, self._plan, self._pipeline = demand, demand.plan, pipeline
        self._speeds, self._state = speeds, state

    # --- costs of a block -----------------------------------------------------------------------------------

    def _cost(self, work: Work, speeds: Sequence[float], exposed: Sequence[float]) -> _Cost:
        steps, step, demand = self._plan.steps, work.step, self._demand
        first = last = free = service = latency = weights = 0.0
        for number, (beats, quickest, part, quickest_part) in enumerate(work.reads):
            if beats:
                service, latency, hidden = beats / speeds[number], demand.latencies[number], exposed[number]
                arrived = max(quickest, service + hidden)
                first = max(first, quickest_part, service * part + hidden)
                last, free = max(last, arrived), max(free, arrived - latency, self._pipeline.block_overhead)
        for number, beats in enumerate(work.weights, demand.maps):
            weights += beats / speeds[number]
        follow = 0.0
        if service and self._plan.stepwise:
            # With room for two steps, the next one is asked for when the one before is done with.
            period = max(step, service / steps, (latency + service / steps + step) / 2)
            follow = step + (steps - 1) * period
        return _Cost(
            first,
            last,
            free,
            work.mac,
            step,
            follow,
            work.last_step,
            weights,
            work.output,
            work.last_pass,
            work.output_tail,
            work.store / speeds[-1],
        )

    def _costs(self) -> tuple[list[_Cost], _Cost]:
        """By kind of block; and of the first one, whose reads nothing delays yet."""
        demand, speeds = self._demand, self._speeds
        exposed = self._exposed(speeds)
        alone = [*demand.streams.alone[: demand.maps], *speeds[demand.maps :]]
        first = demand.works[self._plan.runs[0][0][0]]
        return (
            [self._cost(work, speeds, exposed) for work in demand.works],
            self._cost(first, alone, self._exposed(alone)),
        )

    def _exposed(self, speeds: Sequence[float]) -> list[float]:
        demand = self._demand
        flows = zip(demand.streams.flows[: demand.maps], demand.latencies, speeds, strict=False)
        return [_exposed(flow.rate, latency, speed) for flow, latency, speed in flows]

    # --- the blocks -----------------------------------------------------------------------------------------

    def run(self) -> After:
        costs, first_cost = self._costs()
        clock = self._start_clock(first_cost)
        for sequence, times in self._plan.runs:
            blocks = [costs[kind] for kind in sequence]
            reads = any(cost.free for cost in blocks)
            moved: tuple[float, ...] = ()
            while True:
                self._blocks(clock, blocks if clock.number else [first_cost, *blocks[1:]])
                times -= 1
                if not times:
                    break
                # What does not change any more but for a shift in time is not computed again.
                before, moved = moved, clock.state(reads)
                if shift := _shift(before, moved):
                    clock.skip(times, len(blocks), shift, reads)
                    break
        return After(
            on_grid(clock.fetch),
            on_grid(clock.mac),
            on_grid(clock.output),
            on_grid(clock.weights),
            tuple(map(on_grid, clock.done)),
            self._usage(clock.waited),
        )

    def _usage(self, waited: float) -> Usage:
        demand, totals = self._demand, self._demand.totals
        busy = [flow.beats / speed for flow, speed in zip(demand.streams.flows, self._speeds, strict=True)]
        return Usage(
            beats=totals.beats,
            mac=totals.mac,
            output=totals.output,
            ifm=sum(busy[: demand.maps]),
            weights=sum(busy[demand.maps : -1]),
            store=busy[-1],
            scale_wait=totals.scale_wait,
            dependency=waited,
            ports=demand.ports,
        )

    def _start_clock(self, first_cost: _Cost) -> _Clock:
        """Of the first block's weights: all asked for, work on the first ones can begin, all there."""
        demand, (mac, output, weights, _) = self._demand, self._state
        moved, can_begin, there = weights, 0.0, 0.0
        if demand.weights:
            latency, moved = demand.latencies[demand.maps], self._first_weights(first_cost.weights)
            can_begin, there = weights + latency + self._pipeline.weight_start, moved + latency
        return _Clock(
            fetch=0.0,
            mac=mac,
            output=output,
            weights=moved,
            weights_begin=can_begin,
            weights_there=there,
            windows=deque(maxlen=self._plan.windows_ahead),
            done=deque(maxlen=MAX_BLOCKDEP + 1),
        )

    def _first_weights(self, stream: float) -> float:
        """When the first block's are all asked for: what there is room for, the rest once it may start."""
        demand, state = self._demand, self._state
        beats = sum(demand.works[self._plan.runs[0][0][0]].weights)
        ahead = stream if beats <= demand.weight_room else stream * demand.weight_room / beats
        moved = state.weights + ahead
        return moved if ahead == stream else max(moved, state.earliest[0]) + stream - ahead

    def _blocks(self, clock: _Clock, costs: Sequence[_Cost]) -> None:
        """Some blocks: one loop with local variables and without calls, as it is most of the model's time."""
        response, stepwise, held = self._demand.response, self._plan.stepwise, self._plan.windows_ahead
        lookahead, earliest = self._pipeline.weight_lookahead, self._state.earliest
        depth, windows, done = len(earliest) - 1, clock.windows, clock.done
        settled = earliest[-1]
        number, fetch, mac, last, before = clock.number, clock.fetch, clock.mac, clock.output, clock.before
        weights, weights_there, room, waited = clock.weights, clock.weights_there, clock.room, clock.waited
        for first, whole, free, work, step, follow, final, stream, output, ahead, tail, store in costs:
            start = settled if number >= depth else earliest[number]
            if fetch > start:
                start = fetch
            else:
                waited += start - fetch
            if free:
                if stepwise and windows:  # room for a step
                    least = windows[-1] - room
                    start = least if least > start else start
                elif len(windows) == held:
                    least = windows[0]
                    start = least if least > start else start
                fetch, complete, room = start + free, start + whole, final
                start += first
            else:
                fetch = complete = start
            start = mac if mac > start else start
            start = before if before > start else start
            if number:
                asked = start - lookahead
                weights_there = weights = (asked if asked > weights else weights) + stream
            elif clock.weights_begin > start:
                start = clock.weights_begin
            # The MAC array works for at least a step after the last input.
            mac = max(start + work, complete + step, weights_there, start + follow)
            if free:
                windows.append(mac)
            elif windows:  # the last window serves this block too
                windows[-1] = mac
            start = mac - ahead
            start = last if last > start else start
            before = last if number else 0.0  # there are two sets of accumulators
            last = max(start + output, mac + tail, start + store)
            done.append(last + response)
            number += 1
        clock.number, clock.fetch, clock.mac, clock.output, clock.before = number, fetch, mac, last, before
        clock.weights, clock.weights_there, clock.room, clock.waited = weights, weights_there, room, waited


def _exposed(rate: Rate, latency: float, speed: float) -> float:
    """Latency behind the time a stream takes, which holds half of it if transactions in flight limit it."""
    limited = speed / rate.beats if rate.beats < rate.top else 0.0
    return latency * (1 - limited / 2)


def _shift(before: tuple[float, ...], after: tuple[float, ...]) -> float:
    """By how much all times have moved on, if by the same; else 0."""
    if len(before) != len(after):
        return 0.0
    shift = after[0] - before[0]
    for earlier, later in zip(before, after, strict=True):
        if abs(later - earlier - shift) >= _EQUAL:
            return 0.0
    return shift


def _continued(ends: deque[float], period: int, shift: float, times: int) -> list[float]:
    """The last of `times` more periods of a sequence that moves on by `shift` each period."""
    last = list(ends)[-period:]
    first = max(0, times - MAX_BLOCKDEP - 1)
    return [end + (count + 1) * shift for count in range(first, times) for end in last]
