# SPDX-License-Identifier: Apache-2.0
"""The streams of requests of an operation side by side, and how fast each goes beside those of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from npu.timing.ports import LIMITS, Port, Rate

_ROUNDS = 4
_KEPT = 32
"""Results kept for operations that are alike."""


@dataclass(frozen=True)
class Flow:
    """All that an operation asks of a port (its number) in one stream: beats at a rate of its own."""

    port: int
    beats: float
    rate: Rate


class Streams:
    """All streams of an operation.

    Attributes:
        flows: in the order of `npu.timing.demand.Demand`.
        alone: beats a cycle of each if nothing else runs.
        least: cycles that each takes then.
        taken: what they take of each of the limits of a port, by its number.
    """

    def __init__(self, flows: Sequence[Flow]):
        self.flows = tuple(flows)
        self.alone = tuple([flow.rate.beats for flow in flows])
        self.least = tuple([flow.beats / flow.rate.beats for flow in flows])
        self.taken = {flow.port: np.zeros(LIMITS) for flow in flows}
        for flow in flows:
            self.taken[flow.port] += flow.beats * flow.rate.row
        self._longest = max(self.least)
        self._asked = [(port, taken.tolist()) for port, taken in self.taken.items()]
        self._known: dict[tuple[object, ...], tuple[float, ...]] = {}

    def shares(self, ports: Sequence[Port], start: float, least: float) -> tuple[float, ...]:
        """Beats a cycle that each gets while all of them last.

        A stream gets its own rate, or what the average of all others leaves of the port. What was found once
        for the same duration and the same others is kept.

        Args:
            least: cycles that the operation takes whatever the memory does.
        """
        duration, settled = max(least, self._longest), False
        for _ in range(_ROUNDS):
            others = [ports[port].booked(start, start + duration) for port, _ in self._asked]
            key = duration, *others
            found = self._known.get(key)
            if found is not None:
                return found
            longer = max(
                [
                    _shortest(ports[port], asked, other, duration)
                    for (port, asked), other in zip(self._asked, others, strict=True)
                ]
            )
            settled = longer < duration * 1.001
            duration = max(duration, longer)
            if settled:
                break
        speeds = self._speeds(ports, others, duration)
        if settled:
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[key] = speeds
        return speeds

    def _speeds(
        self, ports: Sequence[Port], others: Sequence[Sequence[float]], duration: float
    ) -> tuple[float, ...]:
        left = {
            port: [
                limit - use - ask / duration
                for limit, use, ask in zip(ports[port].limits, other, asked, strict=True)
            ]
            for (port, asked), other in zip(self._asked, others, strict=True)
        }
        return tuple([_share(flow, left[flow.port], duration) for flow in self.flows])


def _shortest(port: Port, asked: Sequence[float], taken: Sequence[float], duration: float) -> float:
    """Cycles after which the port has moved all that is asked of it in `duration`."""
    return max([(asked[k] + taken[k] * duration) / port.limits[k] for k in port.limited])


def _share(flow: Flow, left: Sequence[float], duration: float) -> float:
    """Beats a cycle of one of the flows; `left` by them, all together, of the limits of its port."""
    beats, rate = flow.beats, flow.rate
    speed = rate.beats
    if not beats:
        return speed
    average, costs = beats / duration, rate.costs
    for limit in rate.limits:
        most = left[limit] / costs[limit] + average
        if most < speed:
            speed = min(speed, max(average, most))
    return speed
