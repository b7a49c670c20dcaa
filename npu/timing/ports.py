# SPDX-License-Identifier: Apache-2.0
"""A memory port over time: a server with limited bandwidth and a limited number of transactions in flight.

Time is cut into bins. A request takes the room that is left from its start on, so requests may be booked in
any order of time, which the time line needs: it computes operation by operation, while in the hardware they
overlap.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from npu.timing.profile import PortTiming

BIN = 128
"""Cycles."""
_LITTLE = 1e-9
_UNLIMITED = 1e18


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


def stream_rate(
    timing: PortTiming, *, burst: float, top: float, write: bool, permitted: float, pulses: bool
) -> Rate:
    """Rate of transactions of `burst` beats: as many as may be in flight, each for latency and data.

    Args:
        permitted: share of the transactions in flight that the adapter permits, or a multiple of it where
            several adapters work side by side.
        pulses: addresses are held back for PULSE_OFF cycles of a pulse; what is in flight goes on.
    """
    outstanding = (timing.maxw if write else timing.maxr) * permitted
    hold = (timing.wlatency if write else timing.rlatency) + burst
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
        self._total_room = cap * BIN / timing.period if cap and timing.period else _UNLIMITED
        self._room = bandwidth * BIN
        self._slot_room = (
            timing.maxr * permitted[0] * BIN or _UNLIMITED,
            timing.maxw * permitted[1] * BIN or _UNLIMITED,
        )
        self._total: list[float] = []
        self._beats: tuple[list[float], list[float]] = ([], [])
        self._slots: tuple[list[float], list[float]] = ([], [])
        self.read = self.written = 0.0

    def _grow(self, index: int) -> None:
        more = [0.0] * max(256, index + 1 - len(self._total))
        for bins in (self._total, *self._beats, *self._slots):
            bins.extend(more)

    def serve(self, start: float, beats: float, rate: Rate) -> float:
        """Book `beats` from `start` on; when the last one has been transferred, latency not included."""
        if beats <= 0:
            return start
        if rate.write:
            self.written += beats
        else:
            self.read += beats
        taken, slots = self._beats[rate.write], self._slots[rate.write]
        slot_room, total, slot_cost = self._slot_room[rate.write], self._total, rate.slots
        index, time = int(start // BIN), start
        while True:
            if index >= len(total):
                self._grow(index)
            end = (index + 1) * BIN
            room = self._total_room - total[index]
            if self._room - taken[index] < room:
                room = self._room - taken[index]
            if slot_cost and (slot_room - slots[index]) / slot_cost < room:
                room = (slot_room - slots[index]) / slot_cost
            if room > _LITTLE:
                possible = rate.beats * (end - time)
                if room < possible:
                    possible = room
                amount = possible if possible < beats else beats
                total[index] += amount
                taken[index] += amount
                slots[index] += amount * slot_cost
                beats -= amount
                if beats <= _LITTLE:
                    return time + (end - time) * amount / possible
            index, time = index + 1, float(end)
