# SPDX-License-Identifier: Apache-2.0
"""Fault exceptions (Armv8-M ARM, B3.13 and D1.2): which one, the status bits it sets, and how they read."""

from __future__ import annotations

import enum
from dataclasses import dataclass

HARD_FAULT, MEMORY_FAULT, BUS_FAULT, USAGE_FAULT, SVCALL = 3, 4, 5, 6, 11

ENABLE_BITS = {MEMORY_FAULT: 1 << 16, BUS_FAULT: 1 << 17, USAGE_FAULT: 1 << 18}
"""SHCSR bit that enables a fault's own exception; without it the fault is escalated to HardFault."""


class Cfsr(enum.IntFlag):
    """Configurable fault status register."""

    IBUSERR = 1 << 8
    PRECISERR = 1 << 9
    STKERR = 1 << 12
    BFARVALID = 1 << 15
    UNDEFINSTR = 1 << 16
    INVSTATE = 1 << 17
    UNALIGNED = 1 << 24
    DIVBYZERO = 1 << 25


class Hfsr(enum.IntFlag):
    """HardFault status register."""

    FORCED = 1 << 30
    DEBUGEVT = 1 << 31


@dataclass(frozen=True)
class Fault:
    """A fault that the stopped instruction raises.

    Attributes:
        exception: number of its own exception.
        status: bits it sets in CFSR.
        why: what happened, in words.
        address: value for BFAR, None without one.
    """

    exception: int
    status: Cfsr
    why: str
    address: int | None = None

    def decoded(self) -> str:
        """``BusFault, CFSR 0x00008200 PRECISERR BFARVALID, BFAR 0x44440008``."""
        names = {HARD_FAULT: "HardFault", BUS_FAULT: "BusFault", USAGE_FAULT: "UsageFault"}
        bits = " ".join(str(bit.name) for bit in Cfsr if bit in self.status)
        parts = [names[self.exception]]
        parts += [f"CFSR {int(self.status):#010x} {bits}"] if self.status else []
        parts += [f"BFAR {self.address:#010x}"] if self.address is not None else []
        return ", ".join(parts)


def no_answer(why: str, address: int) -> Fault:
    """A load or store to an address where nothing is."""
    return Fault(BUS_FAULT, Cfsr.PRECISERR | Cfsr.BFARVALID, why, address)


def no_code(why: str) -> Fault:
    """An instruction fetch where no memory is."""
    return Fault(BUS_FAULT, Cfsr.IBUSERR, why)


def by_signal(signal: int, thumb: bool) -> Fault | None:
    """The fault that QEMU reports with a GDB signal, None when it reports none that way.

    `thumb` is the T bit of xPSR: without it every instruction is undefined.
    """
    if signal == 4 and not thumb:
        return Fault(USAGE_FAULT, Cfsr.INVSTATE, "branch to an address with bit 0 clear")
    return {
        4: Fault(USAGE_FAULT, Cfsr.UNDEFINSTR, "undefined instruction"),
        5: Fault(HARD_FAULT, Cfsr(0), "breakpoint instruction without a debugger"),
        8: Fault(USAGE_FAULT, Cfsr.DIVBYZERO, "division by zero"),
        10: Fault(USAGE_FAULT, Cfsr.UNALIGNED, "unaligned access"),
    }.get(signal)
