# SPDX-License-Identifier: Apache-2.0
"""SysTick timer (Armv8-M ARM, B11): a 24-bit down counter on the virtual clock."""

from __future__ import annotations

from collections.abc import Callable

from fvp.virtual.devices.base import Clock

CTRL, LOAD, VAL, CALIB = 0x0, 0x4, 0x8, 0xC
ENABLE, TICKINT, CLKSOURCE, COUNTFLAG = 1 << 0, 1 << 1, 1 << 2, 1 << 16
_MAXIMUM = 0xFF_FFFF


class SysTick:
    """Counts down from LOAD once per virtual cycle.

    Args:
        clock: what it counts.
        expired: called when the counter reaches 0 with its interrupt enabled.
    """

    def __init__(self, clock: Clock, expired: Callable[[], None]) -> None:
        self._expired = expired
        self._control = self._load = self._value = 0
        clock.subscribe(self._tick)

    def read(self, offset: int, size: int) -> int:
        """A register; reading CTRL clears COUNTFLAG."""
        if offset == CTRL:
            value, self._control = self._control, self._control & ~COUNTFLAG
            return value
        return {LOAD: self._load, VAL: self._value}.get(offset, 0)

    def write(self, offset: int, size: int, value: int) -> None:
        """Set a register; any write to VAL clears the count, which starts again from LOAD."""
        if offset == CTRL:
            self._control = value & (ENABLE | TICKINT | CLKSOURCE)
        elif offset == LOAD:
            self._load = value & _MAXIMUM
        elif offset == VAL:
            self._value, self._control = 0, self._control & ~COUNTFLAG

    def remaining(self) -> int:
        """Virtual cycles until the counter reaches 0 next; 0 while it stands still."""
        running = self._control & ENABLE and self._load
        return (self._value or self._load + 1) if running else 0

    def _tick(self, cycles: int) -> None:
        if not self._control & ENABLE or not self._load:
            return
        if not self._value:
            self._value, cycles = self._load, cycles - 1
        if cycles < self._value:
            self._value -= cycles
            return
        # 0 is a count of its own, so the period is LOAD + 1
        self._value = (self._value - cycles) % (self._load + 1)
        self._control |= COUNTFLAG
        if self._control & TICKINT:
            self._expired()
