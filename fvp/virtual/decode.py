# SPDX-License-Identifier: Apache-2.0
"""Decode the load or store that a stopped guest was about to execute.

capstone decodes the instruction; this module reduces it to what an access needs. MVE's contiguous vector
loads and stores, which capstone 5 does not know, are decoded here (Armv8-M ARM, VLDRB/VLDRH/VLDRW and VSTR
counterparts).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Protocol

import capstone
from capstone import arm

from fvp.virtual.gdb import PC, SP

MASK = 0xFFFF_FFFF


class RegisterFile(Protocol):
    """r0-r15 by index."""

    def __getitem__(self, index: int, /) -> int: ...


class NotLoadStore(Exception):
    """The instruction is no load or store this module can serve; the text names it."""


@dataclass(frozen=True)
class Access:
    """One load or store, the address still relative to its registers.

    Attributes:
        text: disassembly, for messages.
        length: bytes of the instruction.
        load: True for a load.
        size: bytes of each transfer on the bus.
        count: transfers, at ascending addresses.
        signed: sign-extend a loaded value.
        registers: core registers transferred, one per transfer; empty when others are (floating point, MVE).
        base: base register.
        index, shift: index register (None without one) and its left shift.
        offset: bytes added before the access.
        writeback: bytes the base register grows by, None when it keeps its value.
        vector: whether lanes may be predicated (MVE).
    """

    text: str
    length: int
    load: bool
    size: int
    count: int
    signed: bool
    registers: tuple[int, ...]
    base: int
    index: int | None = None
    shift: int = 0
    offset: int = 0
    writeback: int | None = None
    vector: bool = False

    def address(self, registers: RegisterFile) -> int:
        """Address of the first transfer."""
        base = registers[self.base]
        if self.base == PC:
            base = (base & ~3) + 4
        index = 0 if self.index is None else registers[self.index] << self.shift
        return (base + index + self.offset) & MASK


_SIZES = {"b": 1, "sb": 1, "h": 2, "sh": 2, "": 4, "d": 4}

_FORMS = {
    f"{stem}{suffix}": (stem.startswith("ld"), _SIZES[suffix], suffix.startswith("s"))
    for stem in ("ldr", "str", "lda", "stl")
    for suffix in ("b", "h", "")
} | {
    "ldrsb": (True, 1, True),
    "ldrsh": (True, 2, True),
    "ldrd": (True, 4, False),
    "strd": (False, 4, False),
}
"""Mnemonic of single and double transfers: (load, bytes, signed)."""

_UNPRIVILEGED = {
    f"{name}t": name for name in ("ldr", "ldrb", "ldrh", "ldrsb", "ldrsh", "str", "strb", "strh")
}

_BLOCKS = {
    "ldm": (True, False),
    "ldmdb": (True, True),
    "stm": (False, False),
    "stmdb": (False, True),
    "vldmia": (True, False),
    "vldmdb": (True, True),
    "vstmia": (False, False),
    "vstmdb": (False, True),
}
"""Mnemonic of multiple transfers: (load, decrement before)."""

_STACK = {"push": "stmdb", "pop": "ldm", "vpush": "vstmdb", "vpop": "vldmia"}


@functools.lru_cache(maxsize=1)
def _disassembler() -> capstone.Cs:
    engine = capstone.Cs(
        capstone.CS_ARCH_ARM, capstone.CS_MODE_THUMB | capstone.CS_MODE_MCLASS | capstone.CS_MODE_V8
    )
    engine.detail = True
    return engine


def instruction_length(code: bytes) -> int:
    """2 or 4 bytes: first halfwords from 0b11101 up begin a 32-bit instruction."""
    return 4 if code[1] >= 0xE8 else 2


@functools.lru_cache(maxsize=4096)
def decode(code: bytes) -> Access:
    """The access made by the Thumb instruction at the start of `code` (4 bytes, or 2 for a short one).

    Raises:
        NotLoadStore: it is something else, or a form that cannot be served (exclusive, gather/scatter,
            interleaved).
    """
    length = instruction_length(code)
    vector = _decode_mve(code) if length == 4 else None
    if vector is not None:
        return vector
    instruction = next(_disassembler().disasm(code[:length], 0, 1), None)
    if instruction is None:
        raise NotLoadStore(f"unknown instruction {code[:length].hex()}")
    mnemonic = instruction.mnemonic.split(".")[0]
    if mnemonic in _STACK:
        return _block(instruction, _STACK[mnemonic], SP, instruction.operands, True)
    if mnemonic in _BLOCKS:
        base, *transferred = instruction.operands
        return _block(instruction, mnemonic, _core(base.reg), transferred, instruction.writeback)
    if mnemonic in ("vldr", "vstr"):
        return _floating(instruction, mnemonic == "vldr")
    form = _FORMS.get(_UNPRIVILEGED.get(mnemonic, mnemonic))
    if form is None:
        raise NotLoadStore(_text(instruction))
    return _single(instruction, *form)


def _single(instruction: capstone.CsInsn, load: bool, size: int, signed: bool) -> Access:
    operands = instruction.operands
    registers = [_core(item.reg) for item in operands if item.type == arm.ARM_OP_REG]
    memory = next(item for item in operands if item.type == arm.ARM_OP_MEM)
    post = operands[-1].imm if instruction.post_index else None
    return Access(
        text=_text(instruction),
        length=instruction.size,
        load=load,
        size=size,
        count=len(registers),
        signed=signed,
        registers=tuple(registers),
        base=_core(memory.mem.base),
        index=_core(memory.mem.index) if memory.mem.index else None,
        shift=memory.shift.value,
        offset=memory.mem.disp,
        writeback=post if post is not None else (memory.mem.disp if instruction.writeback else None),
    )


def _floating(instruction: capstone.CsInsn, load: bool) -> Access:
    register, memory = instruction.operands
    return Access(
        text=_text(instruction),
        length=instruction.size,
        load=load,
        size=4,
        count=_register_bytes(register.reg) // 4,
        signed=False,
        registers=(),
        base=_core(memory.mem.base),
        offset=memory.mem.disp,
    )


def _block(instruction: capstone.CsInsn, form: str, base: int, transferred: list, writeback: bool) -> Access:
    load, before = _BLOCKS[form]
    core = not form.startswith("v")
    size = 4 * len(transferred) if core else sum(_register_bytes(item.reg) for item in transferred)
    return Access(
        text=_text(instruction),
        length=instruction.size,
        load=load,
        size=4,
        count=size // 4,
        signed=False,
        registers=tuple(_core(item.reg) for item in transferred) if core else (),
        base=base,
        offset=-size if before else 0,
        writeback=(-size if before else size) if writeback else None,
    )


def _decode_mve(code: bytes) -> Access | None:
    """Contiguous MVE load or store: ``111 U 110 P A D W L .. Rn | Qd .. 111 size imm7``; None for others.

    Bit 12 of the second halfword tells a same-width access (element size in `size`, base in four bits) from a
    widening or narrowing one (memory element in bit 3 of the first halfword, base in three bits).
    """
    first, second = int.from_bytes(code[:2], "little"), int.from_bytes(code[2:4], "little")
    element = 1 << (second >> 7 & 3)
    pre, add, back, load = (first >> bit & 1 for bit in (8, 7, 5, 4))
    if first & 0xEE40 != 0xEC00 or second & 0x0E00 != 0x0E00 or not (pre or back) or element == 8:
        return None
    if second & 0x1000:
        if first & 0x1000:
            return None
        memory, base = element, first & 15
    else:
        memory, base = 1 + (first >> 3 & 1), first & 7
        if element <= memory:
            return None
    offset = (second & 0x7F) * memory * (1 if add else -1)
    return Access(
        text=f"v{'ld' if load else 'st'}r{'?bh?w'[memory]}.{8 * element} q{second >> 13}, [r{base}]",
        length=4,
        load=bool(load),
        size=memory,
        count=16 // element,
        signed=False,
        registers=(),
        base=base,
        offset=offset if pre else 0,
        writeback=offset if back else None,
        vector=True,
    )


def _text(instruction: capstone.CsInsn) -> str:
    return f"{instruction.mnemonic} {instruction.op_str}".strip()


_CORE = {getattr(arm, f"ARM_REG_R{number}"): number for number in range(13)} | {
    arm.ARM_REG_SP: 13,
    arm.ARM_REG_LR: 14,
    arm.ARM_REG_PC: 15,
}


def _core(register: int) -> int:
    """Number of a core register from capstone's name for it."""
    return _CORE[register]


def _register_bytes(register: int) -> int:
    """Bytes of a floating-point register."""
    return 8 if arm.ARM_REG_D0 <= register <= arm.ARM_REG_D31 else 4
