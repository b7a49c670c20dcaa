# SPDX-License-Identifier: Apache-2.0
"""Instructions that QEMU's user mode takes for itself, found in a firmware's code so that they stop it.

QEMU answers ``bkpt 0xab`` with its own semihosting, makes ``svc`` a system call of the host and passes over
``wfi`` and ``wfe``. In the merged ELF each of them is a permanently undefined instruction with the same low
byte (where a handler of ``svc`` looks for its number); the guest then stops there, and the machine does what
the board's CPU would.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from fvp.virtual.relocate import Code, instruction_starts

SEMIHOSTING, SUPERVISOR_CALL = 0xBEAB, 0xDF00
WAIT_FOR_EVENT, WAIT_FOR_INTERRUPT = 0xBF20, 0xBF30
PERMANENTLY_UNDEFINED = 0xDE
"""High byte of ``udf``."""


def is_supervisor_call(halfword: int) -> bool:
    """Whether a halfword is ``svc`` with any number."""
    return halfword & 0xFF00 == SUPERVISOR_CALL


def trap_sites(contents: Iterable[tuple[int, bytes]], code: Iterable[Code]) -> dict[int, int]:
    """Halfword by load address of every such instruction in the Thumb stretches of `code`.

    An image without mapping symbols has no known code, so nothing is found in it.
    """
    stretches = [stretch for stretch in code if stretch.thumb]
    return {
        site: halfword
        for address, data in contents
        for stretch in stretches
        if address <= stretch.start < stretch.end <= address + len(data)
        for site, halfword in _sites(data[stretch.start - address : stretch.end - address], stretch.start)
    }


def _sites(part: bytes, address: int) -> Iterator[tuple[int, int]]:
    halves = np.frombuffer(part, "<u2", len(part) // 2)
    wanted = np.isin(halves, (SEMIHOSTING, WAIT_FOR_EVENT, WAIT_FOR_INTERRUPT))
    candidates = np.flatnonzero(wanted | ((halves & 0xFF00) == SUPERVISOR_CALL))
    if candidates.size == 0:
        return
    starts = instruction_starts(halves)
    for index in candidates:
        if int(index) in starts:
            yield address + 2 * int(index), int(halves[index])
