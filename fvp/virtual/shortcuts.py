# SPDX-License-Identifier: Apache-2.0
"""Long loops of a firmware whose end can be computed: the guest is moved to it in place of running there.

Nothing that the guest would compute changes; only instructions are saved.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fvp.virtual.boards import KIB
from fvp.virtual.cpu import Registers
from fvp.virtual.gdb import SP
from fvp.virtual.machine import Served
from fvp.virtual.process import GuestMemory

_ARGUMENTS, _PRESERVED = (0, 1, 2), (*range(4, 12), SP)
"""Live registers at a call of ``memcmp``: its arguments, and what the callee preserves (AAPCS)."""


_PIECE = 64 * KIB


def calls(code: bytes, address: int, target: int) -> Iterator[int]:
    """Addresses of the ``bl target`` instructions in the Thumb `code` at `address`."""
    halves = np.frombuffer(code, "<u2", len(code) // 2).astype(np.int64)
    first, second = halves[:-1], halves[1:]
    sign = first >> 10 & 1
    upper = (~(second >> 13) ^ sign) & 1, (~(second >> 11) ^ sign) & 1  # I1, I2 of the Armv8-M ARM
    offset = -sign << 24 | upper[0] << 23 | upper[1] << 22 | (first & 0x3FF) << 12 | (second & 0x7FF) << 1
    places = address + 2 * np.arange(len(first))
    is_call = ((first & 0xF800) == 0xF000) & ((second & 0xD000) == 0xD000)
    yield from (int(place) for place in places[is_call & (places + 4 + offset == target)])


class LinearSearch:
    """A loop that compares a text with every position of a buffer: ``memcmp(position, text, length)``.

    Two calls show which registers the loop counts with: those that grew by one while every other live
    register stayed. They are moved on to the call that finds the text. Any other loop is left alone.

    Args:
        end: end of the buffer that may be read.
    """

    def __init__(self, end: int) -> None:
        self._end = end
        self._previous: dict[int, int] = {}

    def __call__(self, registers: Registers, memory: GuestMemory) -> Served:
        """Serve the breakpoint on the call instruction."""
        live = {index: registers[index] for index in (*_ARGUMENTS, *_PRESERVED)}
        if not self._previous:
            self._previous = live
            return Served.EXECUTE
        counting = [index for index in live if live[index] != self._previous[index]]
        if 0 in counting and all(live[index] - self._previous[index] == 1 for index in counting):
            distance = self._distance(registers, memory)
            for index in counting:
                registers[index] = live[index] + distance
        return Served.FORGET

    def _distance(self, registers: Registers, memory: GuestMemory) -> int:
        """Positions from here to the text, 0 if it is not in the buffer."""
        start, pointer, length = (registers[index] for index in _ARGUMENTS)
        text = memory.read(pointer, length)
        for position in range(start, self._end - length, _PIECE):
            found = memory.read(position, min(_PIECE + length, self._end - position)).find(text)
            if found >= 0:
                return position + found - start
        return 0
