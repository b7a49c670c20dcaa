# SPDX-License-Identifier: Apache-2.0
"""The Ethos-U in the system: its register block on the bus, its view of memory, its interrupt line."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fvp.virtual.boards import Memory as Ram
from npu.config import NpuConfig
from npu.device import RegisterBlock
from npu.errors import BusError, NpuError
from npu.machine import RunResult
from npu.registers import Cmd, Reg
from npu.timing import Timing, TimingProfile, timing_profile
from npu.timing.counters import TimingCounters

_CHUNK_BITS = 16
"""log2 of the bytes copied from the guest at once."""

FETCH_REGION = -1
"""Region number in the bus error of a command-stream fetch, which goes through QBASE."""


class Guest(Protocol):
    """The guest's memory by address (`process.GuestMemory`)."""

    def read_array(self, address: int, size: int) -> np.ndarray: ...
    def write(self, address: int, data: np.ndarray) -> None: ...


class _Shadow:
    """A copy of one RAM of the board, filled as it is touched and written back at the end of a job.

    The NPU works on views of the copy, so it runs at the speed of host memory; regions that share a RAM share
    the copy, so what one region stores the other loads.
    """

    def __init__(self, ram: Ram, guest: Guest) -> None:
        self.ram, self._guest = ram, guest
        self._bytes = np.empty(ram.size, np.uint8)
        self._loaded = np.zeros((ram.size >> _CHUNK_BITS) + 1, bool)
        self._written: list[tuple[int, int]] = []

    def view(self, start: int, size: int) -> np.ndarray:
        """uint8[size] from `start` (bytes into the RAM), current."""
        first, last = start >> _CHUNK_BITS, (start + max(size, 1) - 1) >> _CHUNK_BITS
        if not self._loaded[first : last + 1].all():
            self._load(first, last)
        return self._bytes[start : start + size]

    def dirty(self, start: int, size: int) -> np.ndarray:
        """Like `view`, and written back by `flush`."""
        if self._written and self._written[-1][0] <= start <= self._written[-1][1]:
            self._written[-1] = self._written[-1][0], max(self._written[-1][1], start + size)
        else:
            self._written.append((start, start + size))
        return self.view(start, size)

    def flush(self) -> None:
        """Write what the job stored to the guest and forget the copy: the CPU may change memory now."""
        for start, end in _merged(self._written):
            self._guest.write(self.ram.base + start, self._bytes[start:end])
        self._written.clear()
        self._loaded[:] = False

    def _load(self, first: int, last: int) -> None:
        missing = first + np.flatnonzero(~self._loaded[first : last + 1])
        for run in np.split(missing, np.flatnonzero(np.diff(missing) > 1) + 1):
            start = int(run[0]) << _CHUNK_BITS
            end = min((int(run[-1]) + 1) << _CHUNK_BITS, self.ram.size)
            self._bytes[start:end] = self._guest.read_array(self.ram.base + start, end - start)
        self._loaded[first : last + 1] = True


def _merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sorted ranges in which no two overlap or touch."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged


class SystemMemory:
    """The board's RAM as the NPU's bus masters reach it.

    Args:
        memories: the RAMs.
        guest: where their contents are.
        keep_going: called at every access; may raise what is to end a job that runs too long.
    """

    def __init__(self, memories: Sequence[Ram], guest: Guest, keep_going: Callable[[], object]) -> None:
        self._memories, self._guest, self._keep_going = memories, guest, keep_going
        self._shadows: dict[str, _Shadow] = {}

    def fetch(self, address: int, size: int) -> bytes:
        """Command stream bytes.

        Raises:
            BusError: they are not in one RAM.
        """
        shadow, start = self.locate(FETCH_REGION, address, 0, size)
        return shadow.view(start, size).tobytes()

    def regions(self, bases: Sequence[int]) -> RegionMemory:
        """The eight regions of a job whose base pointers are `bases`."""
        return RegionMemory(self, bases)

    def flush(self) -> None:
        """End of a job: make its stores visible to the CPU."""
        for shadow in self._shadows.values():
            shadow.flush()

    def locate(self, region: int, base: int, offset: int, size: int) -> tuple[_Shadow, int]:
        """The copy of the RAM that holds `size` bytes at `base` + `offset`, and where in it they are.

        Raises:
            BusError: no RAM holds them all; it names `region` and `offset`.
        """
        self._keep_going()
        address = base + offset
        for ram in self._memories:
            if ram.base <= address and address + size <= ram.end and offset >= 0:
                shadow = self._shadows.get(ram.name)
                if shadow is None:
                    shadow = self._shadows[ram.name] = _Shadow(ram, self._guest)
                return shadow, address - ram.base
        raise BusError(region, offset, size)


class RegionMemory:
    """`npu.memory.Memory` for one job: region n starts at base pointer n and ends where its RAM ends."""

    def __init__(self, system: SystemMemory, bases: Sequence[int]) -> None:
        self._system, self._bases = system, bases

    def read(self, region: int, offset: int, size: int) -> np.ndarray:
        """uint8[size], a view."""
        shadow, start = self._system.locate(region, self._bases[region], offset, size)
        return shadow.view(start, size)

    def write(self, region: int, offset: int, data: np.ndarray) -> None:
        """Store uint8 data."""
        self.window(region, offset, data.size)[:] = data

    def window(self, region: int, offset: int, size: int) -> np.ndarray:
        """uint8[size] to store through."""
        shadow, start = self._system.locate(region, self._bases[region], offset, size)
        return shadow.dirty(start, size)


@dataclass(frozen=True)
class NpuJob:
    """One executed command stream: host seconds, and its record or the reason why it failed.

    `uncounted` names the PMU events that the driver had enabled and the model does not count; `timing` is
    what it counted from.
    """

    seconds: float
    result: RunResult | None
    fault: NpuError | None
    uncounted: tuple[str, ...]
    timing: Timing | None = None


class EthosU:
    """The register block as a device of the bus.

    Args:
        config: which NPU.
        memory: what it reaches.
        interrupt: called with the level of the interrupt line after every access that may change it.
        profile: tells the memory timing at the start of a job.
    """

    def __init__(
        self,
        config: NpuConfig,
        memory: SystemMemory,
        interrupt: Callable[[bool], None],
        profile: Callable[[], TimingProfile] = lambda: timing_profile("none"),
    ) -> None:
        self._memory, self._interrupt = memory, interrupt
        self._counters = TimingCounters(config, profile)
        self.block = RegisterBlock(config, memory.regions, memory.fetch, self._counters)
        self.jobs: list[NpuJob] = []

    def read(self, offset: int, size: int) -> int:
        """A register (bytes and halfwords of it as well)."""
        return self.block.read32(offset & ~3) >> 8 * (offset & 3) & ((1 << 8 * size) - 1)

    def write(self, offset: int, size: int, value: int) -> None:
        """Store to a register; the bus narrows nothing, so a short store writes the whole word."""
        if offset == Reg.CMD and value & Cmd.RUN:
            self._run(value)
        else:
            self.block.write32(offset & ~3, value)
        self._interrupt(self.block.irq)

    def _run(self, value: int) -> None:
        start = time.perf_counter()
        try:
            self.block.write32(Reg.CMD, value)
        finally:
            self._memory.flush()
        seconds = time.perf_counter() - start
        block = self.block
        self.jobs.append(
            NpuJob(seconds, block.result, block.fault, block.pmu.unavailable, self._counters.timing)
        )
