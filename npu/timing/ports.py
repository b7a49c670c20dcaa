# SPDX-License-Identifier: Apache-2.0
"""A memory port over time: a server with limited bandwidth and a limited number of transactions in flight.

Time is cut into bins. A request takes the room that is left from its start on, so requests may be booked in
any order of time, which the time line needs: it computes operation by operation, while in the hardware they
overlap.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from npu.timing.profile import PortTiming

BIN = 256
"""Cycles."""
_FIRST_BINS = 1 << 14
_LITTLE = 1e-9
_FIRST_WORD = 4
"""Cycles behind the latency at which a read is in flight no more [derived: with one at a time and a latency
of 250, the FVP takes at most 254 cycles for each 8 beats]."""
_UNLIMITED = 1e18
LIMITS = 5
"""Of a port, see `Port.limits`."""


@dataclass(frozen=True)
class Rate:
    """How fast one stream of requests can go by itself.

    Attributes:
        beats: a cycle.
        slots: cycles that one of the transactions in flight is taken for, a beat; 0 if they are unlimited.
        write: direction.
        top: beats a cycle without latency.
    """

    beats: float
    slots: float
    write: bool
    top: float

    @cached_property
    def costs(self) -> tuple[float, ...]:
        """What a beat takes of each of `Port.limits`."""
        read, slots = float(not self.write), self.slots
        return 1.0, read, 1.0 - read, slots * read, slots * (1.0 - read)

    @cached_property
    def row(self) -> np.ndarray:
        """`costs`."""
        return np.array(self.costs)

    @cached_property
    def limits(self) -> tuple[int, ...]:
        """The limits that it takes of."""
        return tuple(number for number, cost in enumerate(self.costs) if cost)


def stream_rate(
    timing: PortTiming, *, burst: float, top: float, write: bool, permitted: float, pulses: bool
) -> Rate:
    """Rate of transactions of `burst` beats: as many as may be in flight.

    Writes are for latency and data, reads until their first word.

    Args:
        permitted: share of the transactions in flight that the adapter permits, or a multiple of it where
            several adapters work side by side.
        pulses: addresses are held back for PULSE_OFF cycles of a pulse; what is in flight goes on.
    """
    outstanding = (timing.maxw if write else timing.maxr) * permitted
    hold = timing.wlatency + burst if write else max(burst, timing.rlatency + _FIRST_WORD)
    duty = 1.0
    if pulses and timing.pulse_off > 1:
        duty = min(1.0, math.ceil(timing.pulse_on / hold) * hold / timing.period)
    if not outstanding:
        return Rate(top, 0.0, write, top)
    return Rate(min(top, duty * outstanding * burst / hold), hold / burst / duty, write, top)


class Port:
    """Bookings of one port.

    Args:
        timing: its adapter.
        bandwidth: beats a cycle and direction.
        adapters: adapters side by side, each with the bandwidth cap of `timing`.
        permitted: see `stream_rate`, for reads and writes.
        burst: beats; a cap is checked before a burst, so whole bursts overshoot it [derived].

    Attributes:
        limits: a cycle: beats, beats read, beats written, read and write transactions in flight.
        limited: numbers of those that are finite.
        moved: beats, read and written.
    """

    def __init__(
        self,
        timing: PortTiming,
        *,
        bandwidth: float,
        adapters: int,
        permitted: tuple[float, float],
        burst: int,
    ):
        cap = math.ceil(timing.bwcap / burst) * burst * adapters
        self.limits = (
            cap / timing.period if cap and timing.period else _UNLIMITED,
            bandwidth,
            bandwidth,
            timing.maxr * permitted[0] or _UNLIMITED,
            timing.maxw * permitted[1] or _UNLIMITED,
        )
        self.limited = [number for number, limit in enumerate(self.limits) if limit < _UNLIMITED]
        self.moved = [0.0, 0.0]
        self._rooms = [limit * BIN for limit in self.limits]
        self._booked = np.zeros((LIMITS, _FIRST_BINS))

    def _bins(self, first: int, last: int) -> np.ndarray:
        """Bookings by limit and bin."""
        known = self._booked.shape[1]
        if last > known:
            larger = np.zeros((LIMITS, max(last, 4 * known)))
            larger[:, :known] = self._booked
            self._booked = larger
        return self._booked[:, first:last]

    def serve(self, start: float, beats: float, rate: Rate) -> float:
        """Book `beats` from `start` on; when the last one has been transferred, latency not included."""
        if beats <= 0:
            return start
        self.moved[rate.write] += beats
        first = int(start // BIN)
        number = 2 + 2 * int(start % BIN + beats / rate.beats) // BIN  # twice what it takes alone
        while True:
            bins = self._bins(first, first + number)
            room = np.full(number, float(rate.beats * BIN))
            room[0] = rate.beats * ((first + 1) * BIN - start)
            for limit in rate.limits:
                left = self._rooms[limit] - bins[limit]
                left /= rate.costs[limit]
                np.minimum(room, left, out=room)
            np.maximum(room, 0.0, out=room)
            passed = np.add.accumulate(room)
            if passed[-1] >= beats - _LITTLE:
                break
            number *= 2
        last = int(passed.searchsorted(beats - _LITTLE))
        before = float(passed[last - 1]) if last else 0.0
        begin = start if not last else float((first + last) * BIN)
        end = begin + ((first + last + 1) * BIN - begin) * (beats - before) / float(room[last])
        room[last] = beats - before
        bins[:, : last + 1] += rate.row[:, None] * room[: last + 1]
        return end

    def spread(self, start: float, end: float, beats: float, rate: Rate) -> None:
        """Book `beats` evenly over a time."""
        self.moved[rate.write] += beats
        self.spread_all(start, end, beats * rate.row)

    def spread_all(self, start: float, end: float, taken: np.ndarray) -> None:
        """Book what is taken of each limit evenly over a time."""
        first, last = int(start // BIN), int(end // BIN) + 1
        bins = self._bins(first, last)
        bins += (taken / (last - first))[:, None]

    def left(self, time: float, rate: Rate) -> float:
        """Beats a cycle for a reader that comes in between: what is left, at least half its rate."""
        number = int(time // BIN)
        booked = self._bins(number, number + 1)[:, 0].tolist()
        left = [(self.limits[k] - booked[k] / BIN) / rate.costs[k] for k in rate.limits]
        return max(rate.beats / 2, min(rate.beats, *left))

    def booked(self, start: float, end: float) -> tuple[float, ...]:
        """What is booked in a time, a cycle, by limit."""
        first, last = int(start // BIN), int(end // BIN) + 1
        cycles = BIN * (last - first)
        return tuple(
            [total / cycles for total in np.add.reduce(self._booked[:, first:last], axis=1).tolist()]
        )
