# SPDX-License-Identifier: Apache-2.0
"""A board brought to life: its devices built from the table, and the loop that serves a running guest."""

from __future__ import annotations

import enum
import functools
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fvp.platform import Deadline
from fvp.virtual import faults
from fvp.virtual.boards import Board, DeviceSlot
from fvp.virtual.cpu import (
    EXC_RETURN_FIRST,
    CannotEmulate,
    Registers,
    access_at,
    clear_it_state,
    enter_exception,
    frame_address,
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
from fvp.virtual.faults import HARD_FAULT, SVCALL, Fault
from fvp.virtual.gdb import PC, SIGILL, SIGSEGV, SIGTRAP, SP, XPSR, GdbClient, Stop
from fvp.virtual.process import GuestMemory
from fvp.virtual.semihosting import Exit, Semihosting, Settings
from fvp.virtual.traps import SEMIHOSTING, is_supervisor_call
from npu.config import NpuConfig
from npu.timing import TimingProfile, default_profile, timing_profile
from report.errors import PlatformTimeout, RunFailed

_THUMB_BIT = 1 << 24
_SELF_BRANCH = b"\xfe\xe7"
"""``b .``, the whole of a handler that nobody has written."""

_HOST_BREAKPOINT = b"\x01\xde"
"""``udf #1``, for which Linux, and QEMU with it, signals a breakpoint."""

_IDLE_CYCLES = 1000
"""Virtual cycles that a wait takes with no timer running."""


class Reason(enum.Enum):
    """Why a run came to its end."""

    CONSOLE = "the end mark on the console"
    EXIT = "semihosting exit"
    CYCLE_LIMIT = "cycle limit"


@dataclass(frozen=True)
class Ending:
    """How a run ended; `status` and `detail` are those of a semihosting exit."""

    reason: Reason
    status: int = 0
    detail: str = ""


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
        semihosting: what semihosting calls get; without it they are faults.
        timing: of the memories while firmware programs no timing adapter; None takes what Arm's ML evaluation
            kit programs for the NPU, or nothing on a board without adapters.
        report: told in one line of what the guest was refused.

    Attributes:
        npu: the NPU device, with the jobs it has run.
        clock: the virtual clock.
        adapters: timing of the memories.
        stops: how often the guest has stopped.
        faults: what went wrong, in the order it did.
    """

    def __init__(
        self,
        board: Board,
        npu: NpuConfig,
        image: Image,
        memory: GuestMemory,
        console: Console,
        deadline: Deadline,
        *,
        semihosting: Settings | None = None,
        timing: TimingProfile | None = None,
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._board, self._image, self._memory = board, image, memory
        self._console, self._deadline = console, deadline
        self.clock, self._nvic, self._bus = Clock(), Nvic(), Bus()
        adapted = any(slot.model == "timing-adapter" for slot in board.devices)
        assumed = (timing or default_profile(npu)) if adapted else timing_profile("none")
        self.adapters = TimingAdapters(assumed)
        self.faults: list[str] = []
        self._accesses: dict[int, Access] = {}
        self._systick = SysTick(self.clock, lambda: self._nvic.pend(SYSTICK))
        self._semihosting = (
            Semihosting(semihosting, board, memory, self.clock, console.put_text, report)
            if semihosting
            else None
        )
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
            interrupt = functools.partial(self._nvic.set_line, irq)
            self.npu = EthosU(npu, system, interrupt, self.adapters.profile)
            return self.npu
        models: Mapping[str, Callable[[], Device]] = {
            "scs": lambda: self._scs,
            "ignore": Ignore,
            "fpgaio": lambda: FpgaIo(self.clock),
            "cmsdk-uart": lambda: CmsdkUart(self._console),
            "timing-adapter": lambda: self.adapters,
            "trace": lambda: Trace(self.clock),
        }
        return models[slot.model]()

    def run(self, client: GdbClient, hooks: Mapping[int, Hook], *, cycle_limit: int | None = None) -> Ending:
        """Start from the vector table and serve the guest until the run ends.

        Args:
            client: the connection to the stopped guest, after its handshake.
            hooks: address to what is done there before or in place of the guest's code.
            cycle_limit: virtual cycles after which the run is ended at the next stop.

        Raises:
            RunFailed: the guest ended, or did what cannot be served.
            PlatformTimeout: the deadline of `client` passed.
            StubError: the emulator went away.
        """
        changes = self._start()
        for address in hooks:
            client.insert_breakpoint(address)
        try:
            while not self._console.ended:
                if cycle_limit is not None and self.clock.cycles >= cycle_limit:
                    return Ending(Reason.CYCLE_LIMIT)
                stop = client.resume(changes)
                self.stops += 1
                changes = self._serve(stop, client, hooks).changed
            return Ending(Reason.CONSOLE)
        except Exit as end:
            return Ending(Reason.EXIT, end.status, end.reason)
        except PlatformTimeout as error:
            if not self.faults:
                raise
            why = f"{error.why}, after a fault: {self.faults[-1]}"
            raise PlatformTimeout(error.what, where=error.where, why=why, hint=error.hint) from None
        finally:
            if self._semihosting:
                self._semihosting.close()

    def _start(self) -> dict[int, int]:
        """Stack pointer and program counter after reset, from the vector table or the ELF's entry point."""
        vectors, entry = self._image.vectors, self._image.entry
        stack, reset = 0, 0
        if self._board.has_memory(vectors, 8):
            stack, reset = struct.unpack("<2I", self._memory.read(vectors, 8))
        if not (reset & 1 and self._board.has_memory(reset & ~1)):
            stack, reset = 0, entry
        if not self._board.has_memory(reset & ~1):
            why = f"no vector table at {vectors:#010x}, entry point {entry:#010x}"
            raise RunFailed(f"{self._image.source} does not start", where="virtual", why=why)
        return {SP: stack, PC: reset & ~1}

    def _serve(self, stop: Stop, client: GdbClient, hooks: Mapping[int, Hook]) -> Registers:
        """Do what the guest stopped for; the registers to go on with."""
        if stop.ended:
            raise RunFailed("the simulated CPU ended", where="virtual", why=f"signal {stop.signal}")
        registers = Registers(stop.registers)
        pc = registers[PC]
        if stop.host_call:
            raise self._failure(registers, "supervisor call in code without mapping symbols")
        if stop.signal == SIGTRAP and pc in hooks:
            registers = self._breakpoint(registers, client, hooks[pc])
        elif stop.signal in (SIGILL, SIGTRAP) and pc in self._image.traps:
            self._trap(self._image.traps[pc], registers, client)
        elif stop.signal == SIGSEGV and pc >= EXC_RETURN_FIRST and self._nvic.active:
            leave_exception(registers, client, self._memory)
            self._nvic.leave()
        elif stop.signal == SIGSEGV:
            registers = self._access(registers, client)
        else:
            registers = self._signal(stop.signal, registers, client)
        self.clock.advance(CYCLES_PER_ACCESS)
        self._interrupt(registers, client)
        return registers

    def _trap(self, halfword: int, registers: Registers, client: GdbClient) -> None:
        """Do an instruction that QEMU would have taken for itself."""
        if halfword == SEMIHOSTING and self._semihosting is None:
            why = "semihosting call, but semihosting is not enabled"
            self._fault(Fault(HARD_FAULT, faults.Cfsr(0), why), registers, client)
            return
        registers[PC] = registers[PC] + 2
        if halfword == SEMIHOSTING and self._semihosting:
            registers[0] = self._semihosting.call(registers[0], registers[1])
        elif is_supervisor_call(halfword):
            self._take(SVCALL, registers, client)
        elif not self._nvic.next():
            self.clock.advance(self._systick.remaining() or _IDLE_CYCLES)

    def _signal(self, signal: int, registers: Registers, client: GdbClient) -> Registers:
        if signal == SIGTRAP and self._memory.read(registers[PC], 2) == _HOST_BREAKPOINT:
            signal = SIGILL
        fault = faults.by_signal(signal, bool(registers[XPSR] & _THUMB_BIT))
        if fault is None:
            raise self._failure(registers, f"signal {signal}")
        return self._fault(fault, registers, client)

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
            return self._fault(faults.no_code("branch to unmapped memory"), registers, client)
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
            why = f"{access.text}: {error} on {self._board.name}"
            return self._fault(faults.no_answer(why, error.address), registers, client)
        except CannotEmulate as error:
            raise self._failure(registers, str(error)) from None

    def _interrupt(self, registers: Registers, client: GdbClient) -> None:
        """Take the most urgent pending exception, if any can be taken here."""
        exception = None if registers.in_it_block else self._nvic.next()
        if exception is not None:
            self._take(exception, registers, client)

    def _take(self, exception: int, registers: Registers, client: GdbClient) -> None:
        """Enter the handler of an exception."""
        enter_exception(exception, self._scs.vectors, registers, client, self._memory, self._nvic.active)
        self._nvic.enter(exception)

    def _fault(self, fault: Fault, registers: Registers, client: GdbClient) -> Registers:
        """Take a fault's exception, or HardFault in its place.

        Raises:
            RunFailed: nobody handles it: no handler, no stack, or a fault in the handler of HardFault.
        """
        place = self._image.describe(registers[PC])
        self.faults.append(f"{fault.decoded()} at {place}: {fault.why}")
        own = self._scs.enabled(fault.exception) and self._nvic.preempts(fault.exception)
        exception = fault.exception if own else HARD_FAULT
        self._scs.record(fault, escalated=not own)
        why = self._unhandled(exception, registers)
        if why:
            raise self._failure(registers, f"{fault.why} ({fault.decoded()}); {why}")
        registers = clear_it_state(registers, client, self._memory, self._board.staging)
        self._take(exception, registers, client)
        return registers

    def _unhandled(self, exception: int, registers: Registers) -> str:
        """Why a fault's handler cannot run, "" if it can."""
        if not self._nvic.preempts(exception):
            return "a fault in the handler of HardFault locks the CPU up"
        if not self._board.has_memory(frame_address(registers), 8):
            return f"the stack pointer {registers[SP]:#010x} is in no memory"
        vector = self._scs.vectors + 4 * exception
        (handler,) = struct.unpack("<I", self._memory.read(vector, 4))
        if not self._board.has_memory(handler & ~1) or self._memory.read(handler & ~1, 2) == _SELF_BRANCH:
            return f"the firmware has no handler for exception {exception}"
        return ""

    def _failure(self, registers: Registers, why: str) -> RunFailed:
        place = self._image.describe(registers[PC])
        return RunFailed(f"the firmware cannot go on at {place}", where="virtual", why=why)
