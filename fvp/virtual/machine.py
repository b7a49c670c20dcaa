# SPDX-License-Identifier: Apache-2.0
"""A board brought to life: its devices built from the table, and the loop that serves a running guest."""

from __future__ import annotations

import enum
import functools
import struct
from collections.abc import Callable, Mapping

from fvp.platform import Deadline
from fvp.virtual.boards import Board, DeviceSlot
from fvp.virtual.cpu import (
    EXC_RETURN_FIRST,
    CannotEmulate,
    Registers,
    access_at,
    enter_exception,
    leave_exception,
    perform,
    perform_in_place,
)
from fvp.virtual.decode import Access, NotLoadStore
from fvp.virtual.devices.base import CYCLES_PER_ACCESS, Clock, Device, Ignore
from fvp.virtual.devices.bus import Bus, UnmappedAddress
from fvp.virtual.devices.console import Console
from fvp.virtual.devices.fpgaio import FpgaIo
from fvp.virtual.devices.npu import EthosU, SystemMemory
from fvp.virtual.devices.nvic import SYSTICK, Nvic
from fvp.virtual.devices.scs import SystemControlSpace
from fvp.virtual.devices.systick import SysTick
from fvp.virtual.devices.timing_adapter import TimingAdapters
from fvp.virtual.devices.trace import Trace
from fvp.virtual.devices.uart import CmsdkUart
from fvp.virtual.elf import Image
from fvp.virtual.gdb import PC, SIGSEGV, SIGTRAP, SP, GdbClient, Stop
from fvp.virtual.process import GuestMemory
from npu.config import NpuConfig
from report.errors import RunFailed

_FAULTS = {
    4: "undefined instruction",
    SIGTRAP: "breakpoint instruction",
    8: "arithmetic fault",
    10: "bus error",
}
"""What a stop with a GDB signal means, but for the faults that are device accesses."""


class Served(enum.Enum):
    """What a hook wants done with the instruction at its breakpoint."""

    REPLACED = enum.auto()  # the hook has moved the program counter
    EXECUTE = enum.auto()  # execute it; stop here again next time
    FORGET = enum.auto()  # execute it; never stop here again


Hook = Callable[[Registers, GuestMemory], Served]
"""Serves a breakpoint."""


class Machine:
    """The devices of one board around one guest.

    Interrupts are taken where the guest stops, at its accesses to devices: a guest that waits for one by
    spinning on memory alone waits until the time limit.

    Args:
        board: memory map and devices.
        npu: which NPU is in its place.
        image: the firmware the guest runs.
        memory: the guest's memory.
        console: where the UART goes.
        deadline: ends NPU jobs that take too long.

    Attributes:
        npu: the NPU device, with the jobs it has run.
        stops: how often the guest has stopped.
    """

    def __init__(
        self,
        board: Board,
        npu: NpuConfig,
        image: Image,
        memory: GuestMemory,
        console: Console,
        deadline: Deadline,
    ) -> None:
        self._board, self._image, self._memory = board, image, memory
        self._console, self._deadline = console, deadline
        self._clock, self._nvic, self._bus = Clock(), Nvic(), Bus()
        self._accesses: dict[int, Access] = {}
        self._systick = SysTick(self._clock, lambda: self._nvic.pend(SYSTICK))
        self._scs = SystemControlSpace(board.cpuid, image.vectors, self._systick, self._nvic)
        self.stops = 0
        for slot in board.devices:
            self._bus.attach(slot, self._device(slot, npu))

    def _device(self, slot: DeviceSlot, npu: NpuConfig) -> Device:
        """The model of a device."""
        if slot.model == "ethos-u":
            irq = slot.irq or 0
            keep_going = functools.partial(self._deadline.remaining, "the NPU was running")
            system = SystemMemory(self._board.memories, self._memory, keep_going)
            self.npu = EthosU(npu, system, lambda level: self._nvic.set_line(irq, level))
            return self.npu
        models: Mapping[str, Callable[[], Device]] = {
            "scs": lambda: self._scs,
            "ignore": Ignore,
            "fpgaio": lambda: FpgaIo(self._clock),
            "cmsdk-uart": lambda: CmsdkUart(self._console),
            "timing-adapter": TimingAdapters,
            "trace": lambda: Trace(self._clock),
        }
        return models[slot.model]()

    def run(self, client: GdbClient, hooks: Mapping[int, Hook]) -> None:
        """Start from the vector table and serve the guest until the console has the end of transmission.

        Args:
            client: the connection to the stopped guest, after its handshake.
            hooks: address to what is done there before or in place of the guest's code.

        Raises:
            RunFailed: the guest ended, or did what cannot be served.
            PlatformTimeout: the deadline of `client` passed.
            StubError: the emulator went away.
        """
        stack, reset = struct.unpack("<2I", self._memory.read(self._image.vectors, 8))
        changes = {SP: stack, PC: reset & ~1}
        for address in hooks:
            client.insert_breakpoint(address)
        while not self._console.ended:
            stop = client.resume(changes)
            self.stops += 1
            changes = self._serve(stop, client, hooks).changed

    def _serve(self, stop: Stop, client: GdbClient, hooks: Mapping[int, Hook]) -> Registers:
        """Do what the guest stopped for; the registers to go on with."""
        if stop.ended:
            raise RunFailed("the simulated CPU ended", where="virtual", why=f"signal {stop.signal}")
        registers = Registers(stop.registers)
        pc = registers[PC]
        if stop.signal == SIGTRAP and pc in hooks:
            registers = self._breakpoint(registers, client, hooks[pc])
        elif stop.signal == SIGSEGV and pc >= EXC_RETURN_FIRST and self._nvic.active:
            leave_exception(registers, client, self._memory)
            self._nvic.leave()
        elif stop.signal == SIGSEGV:
            registers = self._access(registers, client)
        else:
            raise self._failure(registers, _FAULTS.get(stop.signal, f"signal {stop.signal}"))
        self._clock.advance(CYCLES_PER_ACCESS)
        self._interrupt(registers, client)
        return registers

    def _breakpoint(self, registers: Registers, client: GdbClient, hook: Hook) -> Registers:
        pc = registers[PC]
        served = hook(registers, self._memory)
        if served is Served.REPLACED:
            return registers
        client.remove_breakpoint(pc)
        stop = client.resume(registers.changed, step=True)
        if stop.signal != SIGTRAP:
            raise self._failure(registers, f"the step over a breakpoint ended with signal {stop.signal}")
        if served is Served.EXECUTE:
            client.insert_breakpoint(pc)
        return Registers(stop.registers)

    def _access(self, registers: Registers, client: GdbClient) -> Registers:
        if not self._board.has_memory(registers[PC]):
            raise self._failure(registers, "branch to unmapped memory")
        try:
            access = access_at(registers, self._memory, self._accesses)
            if access.registers and not registers.in_it_block:
                perform(access, registers, self._bus)
                return registers
            staging = self._board.staging
            return perform_in_place(access, registers, self._bus, client, self._memory, staging)
        except NotLoadStore as error:
            raise self._failure(registers, f"fault in {error}") from None
        except UnmappedAddress as error:
            raise self._failure(registers, f"{access.text}: {error} on {self._board.name}") from None
        except CannotEmulate as error:
            raise self._failure(registers, str(error)) from None

    def _interrupt(self, registers: Registers, client: GdbClient) -> None:
        """Take the most urgent pending exception, if any can be taken here."""
        exception = None if registers.in_it_block else self._nvic.next()
        if exception is None:
            return
        enter_exception(exception, self._scs.vectors, registers, client, self._memory, self._nvic.active)
        self._nvic.enter(exception)

    def _failure(self, registers: Registers, why: str) -> RunFailed:
        place = self._image.describe(registers[PC])
        return RunFailed(f"the firmware cannot go on at {place}", where="virtual", why=why)
