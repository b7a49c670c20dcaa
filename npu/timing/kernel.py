# SPDX-License-Identifier: Apache-2.0
"""One operation in the pipeline: how fast its streams go beside all others, and how long it takes.

The speeds are settled first, for all of the operation; its blocks then pass at those.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from npu.timing.demand import Demand
from npu.timing.passage import Before, Usage, on_grid, passage

if TYPE_CHECKING:
    from npu.timing.timeline import Timeline

_ROUNDS = 6
_CLOSE = 0.02
_STEEP = 0.5
"""Slope from which on a line does not tell where guess and result meet."""


class KernelRun:
    """One operation passing through the pipeline of a `Timeline`."""

    def __init__(self, timeline: Timeline, demand: Demand, start: float):
        self._line, self._demand = timeline, demand
        start = on_grid(start)
        self._origin = max(start, timeline.fetch_free)
        earliest = self._dependencies()
        self._begin = max(self._origin, earliest[0])
        self._before = self._state(start, earliest)

    def run(self) -> tuple[list[float], Usage]:
        """Pass all blocks, from the pipeline's state before the operation to that after it.

        Returns when an operation that depends on it may use each of its last blocks, and what it kept busy.

        Streams get what is left of the ports by the others' averages over the operation, which takes as long
        as that makes it: a few rounds until both agree, from what the last one of its kind took.
        """
        line, demand, origin = self._line, self._demand, self._origin
        guess, speeds = line.took.get(demand, demand.least), tuple[float, ...]()
        tried: list[tuple[float, float]] = []
        for _ in range(_ROUNDS):
            former = speeds
            speeds = demand.streams.shares(line.ports, self._begin, guess)
            if speeds != former:
                after = passage(demand, line.pipeline, speeds, self._before)
            took = origin + after.done[-1] - self._begin
            if speeds == demand.streams.alone or abs(took - guess) < _CLOSE * took:
                break
            tried.append((guess, took))
            guess = _next_guess(tried)
        line.took[demand] = took
        done = [origin + time for time in after.done]
        self._account(done[-1])
        line.fetch_free, line.mac_free = origin + after.fetch, origin + after.mac
        line.output_free = origin + after.output
        if demand.weights:
            line.weights_fetched = origin + after.weights
        return done, after.usage

    def _state(self, start: float, earliest: Sequence[float]) -> Before:
        line, origin, weights = self._line, self._origin, 0.0
        if self._demand.weights:
            weights = max(start, line.weights_fetched)
            if not self._demand.plan.op.blockdep and not line.pipeline.weights_ahead:
                weights = max(weights, earliest[0])
            weights -= origin
        waits = tuple([time - origin if time > origin else 0.0 for time in earliest])
        return Before(max(0.0, line.mac_free - origin), max(0.0, line.output_free - origin), weights, waits)

    def _dependencies(self) -> list[float]:
        """Earliest starts by the block dependency: a block needs the one that is that far behind it."""
        done, depth = self._line.done_before, self._demand.plan.op.blockdep
        behind = len(done) - 1 - depth
        return [done[number] if number >= 0 else 0.0 for number in range(behind, behind + depth + 1)]

    def _account(self, done: float) -> None:
        """Book what was moved, all responses there at `done`."""
        demand, totals, ports = self._demand, self._demand.totals, self._line.ports
        end = max(self._begin, done - demand.response)
        for port, taken in demand.streams.taken.items():
            ports[port].spread_all(self._begin, end, taken)
        for (port, write), beats in totals.beats.items():
            ports[port].moved[write] += beats


def _next_guess(tried: list[tuple[float, float]]) -> float:
    """Where the line through the last two (guess, result) says that both are equal; at first, the result."""
    guess, took = tried[-1]
    if len(tried) > 1:
        other, result = tried[-2]
        slope = (took - result) / (guess - other) if guess != other else 0.0
        if slope < _STEEP:
            return (took - slope * guess) / (1 - slope)
    return took
