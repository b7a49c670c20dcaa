# SPDX-License-Identifier: Apache-2.0
"""Loads and stores of every form that capstone knows, reduced to what an access needs."""

from __future__ import annotations

import functools

import capstone
from capstone import arm

from fvp.virtual.decode import Access, NotLoadStore
from fvp.virtual.gdb import SP

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


def disassemble(code: bytes) -> Access:
    """The access made by one whole Thumb instruction.

    Raises:
        NotLoadStore: it is something else, or a form that cannot be served (exclusive, gather/scatter,
            interleaved).
    """
    instruction = next(_disassembler().disasm(code, 0, 1), None)
    if instruction is None:
        raise NotLoadStore(f"unknown instruction {code.hex()}")
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
