# SPDX-License-Identifier: Apache-2.0
"""What a device is to the bus, and the clock that devices share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

CYCLES_PER_ACCESS = 20
"""Virtual cycles a device access takes: the guest's time counts accesses and is unrelated to wall time."""


class Device(Protocol):
    """A register block. Offsets are bytes from its first register, sizes 1, 2 or 4."""

    def read(self, offset: int, size: int) -> int:
        """The value a load of `size` bytes gets."""

    def write(self, offset: int, size: int, value: int) -> None:
        """Take a stored value of `size` bytes."""


class Clock:
    """Virtual CPU cycles since the start; listeners learn of every advance."""

    def __init__(self) -> None:
        self.cycles = 0
        self._listeners: list[Callable[[int], None]] = []

    def subscribe(self, listener: Callable[[int], None]) -> None:
        """Call `listener(cycles)` at every advance."""
        self._listeners.append(listener)

    def advance(self, cycles: int) -> None:
        """Let time pass."""
        self.cycles += cycles
        for listener in self._listeners:
            listener(cycles)


class Ignore:
    """Registers that read as zero and ignore writes."""

    def read(self, offset: int, size: int) -> int:
        """Always 0."""
        return 0

    def write(self, offset: int, size: int, value: int) -> None:
        """Nothing happens."""
