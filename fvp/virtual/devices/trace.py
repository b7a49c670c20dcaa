# SPDX-License-Identifier: Apache-2.0
"""Data watchpoint and trace unit (Armv8-M ARM, D1.1): its cycle counter alone, on the virtual clock."""

from __future__ import annotations

from fvp.virtual.devices.base import Clock

CTRL, CYCCNT = 0x0, 0x4
CYCCNTENA = 1 << 0
NOCYCCNT = 1 << 25
_ABSENT = 1 << 27 | 1 << 26 | NOCYCCNT
"""DWT_CTRL.NOTRCPKT, NOEXTTRIG and NOCYCCNT: what is not modelled says so.

The virtual clock advances with accesses to devices, so CYCCNT says nothing of the CPU's cycles. It moves all
the same, so that firmware which waits on it without asking goes on.
"""


class Trace:
    """CYCCNT counts virtual cycles while CTRL.CYCCNTENA is set; the other registers read 0."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._enabled = False
        self._base = 0

    def read(self, offset: int, size: int) -> int:
        """CTRL or CYCCNT."""
        if offset == CTRL:
            return _ABSENT | self._enabled
        return self._count() if offset == CYCCNT else 0

    def write(self, offset: int, size: int, value: int) -> None:
        """Set CYCCNT, or start and stop it."""
        if offset == CYCCNT:
            self._base = self._origin(value)
        elif offset == CTRL and bool(value & CYCCNTENA) != self._enabled:
            count = self._count()
            self._enabled = not self._enabled
            self._base = self._origin(count)

    def _count(self) -> int:
        return (self._clock.cycles - self._base if self._enabled else self._base) & 0xFFFF_FFFF

    def _origin(self, count: int) -> int:
        """`_base` for a counter that reads `count`: a start time while it runs, else the count."""
        return self._clock.cycles - count if self._enabled else count
