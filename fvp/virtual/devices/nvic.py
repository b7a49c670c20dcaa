# SPDX-License-Identifier: Apache-2.0
"""Nested vectored interrupt controller (Armv8-M ARM, B3.9): which exception is taken next.

Exceptions have their architectural numbers: 14 PendSV, 15 SysTick, 16 + n external interrupt n. PRIMASK,
BASEPRI and FAULTMASK are out of sight in QEMU's user mode, so masking by them is not modelled.
"""

from __future__ import annotations

HARD_FAULT, PENDSV, SYSTICK, FIRST_EXTERNAL = 3, 14, 15, 16
ISER, ICER, ISPR, ICPR, IABR, IPR = 0x100, 0x180, 0x200, 0x280, 0x300, 0x400
_BANK = 0x80
_THREAD_PRIORITY = 256
_FIXED_PRIORITIES = {2: -2, HARD_FAULT: -1}
"""NMI and HardFault."""


class Nvic:
    """Pending, enabled, active and priority of every exception."""

    def __init__(self) -> None:
        self._enabled = {PENDSV, SYSTICK}
        self._pending: set[int] = set()
        self._lines: set[int] = set()
        self._active: list[int] = []
        self._priority: dict[int, int] = dict(_FIXED_PRIORITIES)

    def pend(self, exception: int) -> None:
        """Make an exception pending."""
        self._pending.add(exception)

    def unpend(self, exception: int) -> None:
        """Take back a pending exception."""
        self._pending.discard(exception)

    def set_line(self, irq: int, high: bool) -> None:
        """Drive the level of an external interrupt line."""
        exception = FIRST_EXTERNAL + irq
        if high and exception not in self._lines:
            self._pending.add(exception)
        (self._lines.add if high else self._lines.discard)(exception)

    def next(self) -> int | None:
        """The exception the CPU takes now, None if none has the priority for it."""
        if not self._pending:
            return None
        ready = [number for number in self._pending if number in self._enabled]
        if not ready:
            return None
        best = min(ready, key=lambda number: (self._priority.get(number, 0), number))
        return best if self.preempts(best) else None

    def preempts(self, exception: int) -> bool:
        """Whether an exception is more urgent than what is running."""
        running = min((self._priority.get(number, 0) for number in self._active), default=_THREAD_PRIORITY)
        return self._priority.get(exception, 0) < running

    def enter(self, exception: int) -> None:
        """The CPU has taken `exception`."""
        self._pending.discard(exception)
        self._active.append(exception)

    def leave(self) -> None:
        """The CPU has returned from the running exception; a line that is still high pends again."""
        exception = self._active.pop()
        if exception in self._lines:
            self._pending.add(exception)

    @property
    def active(self) -> bool:
        """Whether a handler is running."""
        return bool(self._active)

    def set_priority(self, exception: int, value: int) -> None:
        """Set a priority (lower is more urgent); the boards implement the upper three bits."""
        self._priority[exception] = value & 0xE0

    def priority(self, exception: int) -> int:
        """The priority set for an exception, 0 from reset."""
        return self._priority.get(exception, 0)

    def read(self, offset: int, size: int) -> int:
        """A register of the block at 0xE000E100, `offset` counted from 0xE000E000."""
        if offset >= IPR:
            first = FIRST_EXTERNAL + offset - IPR
            return sum(self.priority(first + i) << 8 * i for i in range(size))
        bank, exceptions = self._bank(offset, size)
        members = {ISER: self._enabled, ICER: self._enabled, IABR: set(self._active)}.get(bank, self._pending)
        return sum(1 << bit for bit, number in enumerate(exceptions) if number in members)

    def write(self, offset: int, size: int, value: int) -> None:
        """Set a register, offsets as in `read`."""
        if offset >= IPR:
            for i in range(size):
                self.set_priority(FIRST_EXTERNAL + offset - IPR + i, value >> 8 * i & 0xFF)
            return
        bank, exceptions = self._bank(offset, size)
        chosen = {number for bit, number in enumerate(exceptions) if value >> bit & 1}
        if bank == ISER:
            self._enabled |= chosen
        elif bank == ICER:
            self._enabled -= chosen
        elif bank == ISPR:
            self._pending |= chosen
        elif bank == ICPR:
            self._pending -= chosen

    @staticmethod
    def _bank(offset: int, size: int) -> tuple[int, range]:
        """The register array at `offset` and the exceptions its bits stand for."""
        bank = offset & ~(_BANK - 1)
        first = FIRST_EXTERNAL + 8 * (offset - bank)
        return bank, range(first, first + 8 * size)
