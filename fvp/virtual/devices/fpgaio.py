# SPDX-License-Identifier: Apache-2.0
"""FPGA system I/O block of the MPS boards (AN547 section 4.4): counters, LEDs, switches."""

from __future__ import annotations

from fvp.virtual.devices.base import Clock

CLK1HZ, CLK100HZ, COUNTER, PRESCALE = 0x10, 0x14, 0x18, 0x1C
CLOCK_HZ = 32_000_000
"""Rate of the block's clock and, here, of the virtual clock."""


class FpgaIo:
    """Counters derived from the virtual clock; other registers keep what is written."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._registers: dict[int, int] = {}

    def read(self, offset: int, size: int) -> int:
        """A counter, or the value last written (0 before: LEDs off, switches and buttons open)."""
        if offset in (CLK1HZ, CLK100HZ):
            rate = 1 if offset == CLK1HZ else 100
            return self._clock.cycles * rate // CLOCK_HZ & 0xFFFF_FFFF
        if offset == COUNTER:
            return self._clock.cycles // (self._registers.get(PRESCALE, 0) + 1) & 0xFFFF_FFFF
        return self._registers.get(offset, 0)

    def write(self, offset: int, size: int, value: int) -> None:
        """Keep the value."""
        self._registers[offset] = value
