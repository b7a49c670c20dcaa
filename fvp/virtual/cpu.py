# SPDX-License-Identifier: Apache-2.0
"""What the stopped CPU does: perform a trapped load or store, take and return from exceptions.

QEMU's user mode executes instructions only. A load or store that no memory answers, and everything about
exceptions, is done here on the registers of the stopped guest.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Protocol

from fvp.virtual.decode import MASK, Access, decode
from fvp.virtual.devices.bus import Bus
from fvp.virtual.gdb import LR, PC, SIGTRAP, SP, XPSR, GdbClient

EXC_RETURN_FIRST = 0xFFFF_FF00
"""Branch targets from here up are returns from an exception."""

_EXC_RETURN_THREAD, _EXC_RETURN_HANDLER = 0xFFFF_FFE9, 0xFFFF_FFE1
"""Main stack, secure, floating-point context stacked; to thread or handler mode."""

_FRAME_BYTES = 0x68
"""Extended exception frame: r0-r3, r12, lr, pc, xPSR, s0-s15, FPSCR, VPR."""

_NOP, _LONGEST_IT_BLOCK = b"\x00\xbf", 4

_STACKED = (0, 1, 2, 3, 12, LR)
_FLOATING = tuple(f"d{number}" for number in range(8))
_ALIGNED_BIT = 1 << 9
"""In the stacked xPSR: the stack pointer was moved by 4 to align the frame."""

_FPSCR_WHOLE_VECTORS = 4 << 16
"""FPSCR with LTPSIZE = 4, no tail predication: what a handler starts with."""


class Memory(Protocol):
    """Guest memory by address."""

    def read(self, address: int, size: int) -> bytes: ...
    def write(self, address: int, data: bytes) -> None: ...


class CannotEmulate(Exception):
    """The stopped instruction needs something this module does not do; the text says what."""


class Registers:
    """r0-r15 and xPSR of the stopped guest; what is assigned goes to the guest when it resumes."""

    def __init__(self, values: tuple[int, ...]) -> None:
        self._values = list(values)
        self.changed: dict[int, int] = {}

    def __getitem__(self, index: int) -> int:
        return self._values[index]

    def __setitem__(self, index: int, value: int) -> None:
        self._values[index] = self.changed[index] = value & MASK

    def __len__(self) -> int:
        return len(self._values)

    @property
    def in_it_block(self) -> bool:
        """Whether the stopped instruction is conditional by an IT instruction (xPSR bits 26:25, 15:10)."""
        return bool(self._values[XPSR] & 0x0600_FC00)


def perform(access: Access, registers: Registers, bus: Bus) -> None:
    """Do a core-register load or store on the bus: transfers, write-back, next instruction.

    Raises:
        UnmappedAddress: nothing answers; registers are as before then.
    """
    address = access.address(registers)
    if access.load:
        values = [bus.read(address + i * access.size, access.size) for i in range(access.count)]
    else:
        values = []
        for i, register in enumerate(access.registers):
            bus.write(
                address + i * access.size, access.size, registers[register] & ((1 << 8 * access.size) - 1)
            )
    if access.writeback is not None:
        registers[access.base] = registers[access.base] + access.writeback
    registers[PC] = registers[PC] + access.length
    for register, value in zip(access.registers, values, strict=False):
        registers[register] = _extended(value, access)


def _extended(value: int, access: Access) -> int:
    sign = 1 << (8 * access.size - 1)
    return (value ^ sign) - sign if access.signed else value


def perform_in_place(
    access: Access, registers: Registers, bus: Bus, client: GdbClient, memory: Memory, staging: int
) -> Registers:
    """Let QEMU execute the access on scratch memory: it transfers no core register, or is in an IT block.

    QEMU offers no way to write the IT state, so an instruction in an IT block cannot be skipped: it is
    stepped, with its base register moved to the page at `staging`.

    Returns:
        The registers after the instruction.

    Raises:
        CannotEmulate: lanes are predicated, or the base is the program counter.
        UnmappedAddress: nothing answers.
    """
    if access.base == PC:
        raise CannotEmulate(f"{access.text}: relative to the program counter")
    if access.vector:
        _require_all_lanes(access, registers, client)
    address = access.address(registers)
    size = access.size * access.count
    delta = staging - address
    if access.load:
        data = [bus.read(address + i * access.size, access.size) for i in range(access.count)]
        memory.write(staging, b"".join(value.to_bytes(access.size, "little") for value in data))
    stop = client.resume(registers.changed | {access.base: registers[access.base] + delta & MASK}, step=True)
    if stop.signal != SIGTRAP:
        raise CannotEmulate(f"{access.text}: the step ended with signal {stop.signal}")
    after = Registers(stop.registers)
    if not (access.load and access.base in access.registers):
        after[access.base] = after[access.base] - delta
    if not access.load:
        _store_staged(access, address, memory.read(staging, size), delta, bus)
    return after


def _store_staged(access: Access, address: int, staged: bytes, delta: int, bus: Bus) -> None:
    """Put on the bus what the stepped store left in the staging page."""
    for i in range(access.count):
        value = int.from_bytes(staged[i * access.size : (i + 1) * access.size], "little")
        if access.registers and access.registers[i] == access.base:
            value = value - delta & ((1 << 8 * access.size) - 1)
        bus.write(address + i * access.size, access.size, value)


def _require_all_lanes(access: Access, registers: Registers, client: GdbClient) -> None:
    state = client.read_registers(["fpscr", "vpr"])
    element_log2 = state["fpscr"] >> 16 & 7
    tail = element_log2 < 4 and registers[LR] < 16 >> element_log2
    if state["vpr"] >> 16 or tail:
        raise CannotEmulate(f"{access.text}: predicated vector access to a device")


def access_at(registers: Registers, memory: Memory, cache: dict[int, Access]) -> Access:
    """The decoded load or store at the program counter.

    Raises:
        NotLoadStore: it is none.
    """
    pc = registers[PC]
    access = cache.get(pc)
    if access is None:
        code = memory.read(pc, 2)
        if code[1] >= 0xE8:
            code += memory.read(pc + 2, 2)
        access = cache[pc] = decode(code)
    return access


def frame_address(registers: Registers) -> int:
    """Where the context is stacked: the lowest address of the frame."""
    return (registers[SP] - _FRAME_BYTES - (registers[SP] & 4)) & MASK


def clear_it_state(registers: Registers, client: GdbClient, memory: Memory, staging: int) -> Registers:
    """The registers outside any IT block, reached by steps over ``nop``: the IT state cannot be written.

    Raises:
        CannotEmulate: the emulator stopped elsewhere.
    """
    if not registers.in_it_block:
        return registers
    pc = registers[PC]
    memory.write(staging, _NOP * _LONGEST_IT_BLOCK)
    changes = registers.changed | {PC: staging}
    for _ in range(_LONGEST_IT_BLOCK):
        stop = client.resume(changes, step=True)
        if stop.signal != SIGTRAP:
            raise CannotEmulate(f"a step over nop ended with signal {stop.signal}")
        changes = {}
    after = Registers(stop.registers)
    after[PC] = pc
    return after


def enter_exception(
    number: int, vectors: int, registers: Registers, client: GdbClient, memory: Memory, nested: bool
) -> None:
    """Stack the context and go to the handler of exception `number`."""
    floating = client.read_registers([*_FLOATING, "fpscr", "vpr"])
    aligned = registers[SP] & 4
    frame = frame_address(registers)
    words = [registers[index] for index in _STACKED]
    words += [registers[PC], registers[XPSR] & ~_ALIGNED_BIT | (_ALIGNED_BIT if aligned else 0)]
    doubles = [floating[name] for name in _FLOATING]
    memory.write(frame, struct.pack("<8I8Q2I", *words, *doubles, floating["fpscr"], floating["vpr"]))
    client.write_registers({"fpscr": (_FPSCR_WHOLE_VECTORS, 4), "vpr": (0, 4)})
    registers[SP] = frame
    registers[LR] = _EXC_RETURN_HANDLER if nested else _EXC_RETURN_THREAD
    registers[PC] = struct.unpack("<I", memory.read(vectors + 4 * number, 4))[0] & ~1


def leave_exception(registers: Registers, client: GdbClient, memory: Memory) -> None:
    """Take the context back from the stack."""
    frame = registers[SP]
    *core, fpscr, vpr = struct.unpack("<8I8Q2I", memory.read(frame, _FRAME_BYTES))
    words, doubles = core[:8], core[8:]
    floating: Mapping[str, tuple[int, int]] = {
        name: (value, 8) for name, value in zip(_FLOATING, doubles, strict=True)
    }
    client.write_registers({**floating, "fpscr": (fpscr, 4), "vpr": (vpr, 4)})
    for index, value in zip((*_STACKED, PC, XPSR), words, strict=True):
        registers[index] = value
    registers[SP] = frame + _FRAME_BYTES + (4 if words[7] & _ALIGNED_BIT else 0)
