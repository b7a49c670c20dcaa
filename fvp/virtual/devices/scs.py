# SPDX-License-Identifier: Apache-2.0
"""System control space (Armv8-M ARM, D1.1): SysTick, NVIC and the system control block in one 4 KiB page."""

from __future__ import annotations

from fvp.virtual.devices.nvic import PENDSV, SYSTICK, Nvic
from fvp.virtual.devices.systick import SysTick
from fvp.virtual.faults import ENABLE_BITS, HARD_FAULT, Fault, Hfsr

SYSTICK_BASE, NVIC_BASE, NVIC_END = 0x010, 0x100, 0x800
CPUID, ICSR, VTOR, AIRCR, CCR, SHPR1, SHPR_END, CPACR = 0xD00, 0xD04, 0xD08, 0xD0C, 0xD14, 0xD18, 0xD24, 0xD88
SHCSR, CFSR, HFSR, BFAR = 0xD24, 0xD28, 0xD2C, 0xD38
CCSIDR = 0xD80
_WRITE_ONLY = range(0xF00, 0xFD0)
"""Software trigger and the cache maintenance operations."""

_PENDSVSET, _PENDSVCLR, _PENDSTSET, _PENDSTCLR = 1 << 28, 1 << 27, 1 << 26, 1 << 25
_AIRCR_READ = 0xFA05_0000
_FIRST_SYSTEM_HANDLER = 4


class SystemControlSpace:
    """Registers keep what is written, but for those with a meaning of their own.

    CCSIDR reads 0, the smallest cache: maintenance by set and way then is one step, and a model without
    caches loses nothing by that.
    """

    def __init__(self, cpuid: int, vectors: int, systick: SysTick, nvic: Nvic) -> None:
        self._systick, self._nvic = systick, nvic
        self._registers = {CPUID: cpuid, VTOR: vectors, AIRCR: _AIRCR_READ, CCSIDR: 0}

    def record(self, fault: Fault, escalated: bool) -> None:
        """Set the fault status and address registers; `escalated` tells that HardFault is taken for it."""
        self._set(CFSR, self._registers.get(CFSR, 0) | fault.status)
        if fault.address is not None:
            self._set(BFAR, fault.address)
        if fault.exception == HARD_FAULT:
            self._set(HFSR, self._registers.get(HFSR, 0) | Hfsr.DEBUGEVT)
        elif escalated:
            self._set(HFSR, self._registers.get(HFSR, 0) | Hfsr.FORCED)

    def enabled(self, exception: int) -> bool:
        """Whether a fault's own exception is enabled (SHCSR)."""
        return bool(self._registers.get(SHCSR, 0) & ENABLE_BITS.get(exception, 0))

    @property
    def vectors(self) -> int:
        """Address of the vector table (VTOR)."""
        return self._registers[VTOR]

    def read(self, offset: int, size: int) -> int:
        """A register; bytes and halfwords of one as well."""
        if SYSTICK_BASE <= offset < SYSTICK_BASE + 0x10:
            return self._systick.read(offset - SYSTICK_BASE, size)
        if NVIC_BASE <= offset < NVIC_END:
            return self._nvic.read(offset, size)
        if SHPR1 <= offset < SHPR_END:
            first = _FIRST_SYSTEM_HANDLER + offset - SHPR1
            return sum(self._nvic.priority(first + i) << 8 * i for i in range(size))
        word = self._registers.get(offset & ~3, 0)
        return word >> 8 * (offset & 3) & ((1 << 8 * size) - 1)

    def write(self, offset: int, size: int, value: int) -> None:
        """Set a register."""
        if SYSTICK_BASE <= offset < SYSTICK_BASE + 0x10:
            self._systick.write(offset - SYSTICK_BASE, size, value)
        elif NVIC_BASE <= offset < NVIC_END:
            self._nvic.write(offset, size, value)
        elif SHPR1 <= offset < SHPR_END:
            for i in range(size):
                self._nvic.set_priority(_FIRST_SYSTEM_HANDLER + offset - SHPR1 + i, value >> 8 * i & 0xFF)
        elif offset == ICSR:
            self._control_interrupts(value)
        elif offset & ~3 in (CFSR, HFSR):
            word = offset & ~3
            self._set(word, self._registers.get(word, 0) & ~(value << 8 * (offset & 3)))  # written ones clear
        elif offset not in (CPUID, CCSIDR, AIRCR) and offset not in _WRITE_ONLY:
            self._keep(offset, size, value)

    def _keep(self, offset: int, size: int, value: int) -> None:
        word, shift = offset & ~3, 8 * (offset & 3)
        mask = ((1 << 8 * size) - 1) << shift
        self._registers[word] = self._registers.get(word, 0) & ~mask | value << shift & mask

    def _set(self, offset: int, value: int) -> None:
        self._registers[offset] = value & 0xFFFF_FFFF

    def _control_interrupts(self, value: int) -> None:
        for exception, set_bit, clear_bit in (
            (PENDSV, _PENDSVSET, _PENDSVCLR),
            (SYSTICK, _PENDSTSET, _PENDSTCLR),
        ):
            if value & set_bit:
                self._nvic.pend(exception)
            elif value & clear_bit:
                self._nvic.unpend(exception)
