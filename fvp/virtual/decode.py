# SPDX-License-Identifier: Apache-2.0
"""Decode the load or store that a stopped guest was about to execute.

The forms that compilers use for device registers are decoded here, and MVE's contiguous vector loads and
stores, which capstone 5 does not know (Armv8-M ARM, VLDRB/VLDRH/VLDRW and VSTR counterparts). Everything else
goes to `disassembly`, whose import costs more than a short run has to do otherwise.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Protocol

from fvp.virtual.gdb import PC

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


_IMMEDIATE = {
    0x6000: ("str", 4), 0x6800: ("ldr", 4), 0x7000: ("strb", 1), 0x7800: ("ldrb", 1),
    0x8000: ("strh", 2), 0x8800: ("ldrh", 2),
}  # fmt: skip
"""16-bit forms ``[Rn, #imm5 * size]`` by the upper five bits: mnemonic and bytes."""

_WIDE_IMMEDIATE = {
    0xF880: ("strb.w", 1), 0xF890: ("ldrb.w", 1), 0xF8A0: ("strh.w", 2), 0xF8B0: ("ldrh.w", 2),
    0xF8C0: ("str.w", 4), 0xF8D0: ("ldr.w", 4),
}  # fmt: skip
"""32-bit forms ``[Rn, #imm12]`` by the upper twelve bits of the first halfword."""


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
    code = code[: instruction_length(code)]
    access = _decode_immediate(code) or (_decode_mve(code) if len(code) == 4 else None)
    if access is not None:
        return access
    from fvp.virtual.disassembly import disassemble

    return disassemble(code)


def _decode_immediate(code: bytes) -> Access | None:
    """A single transfer at a base register plus a positive offset; None for other forms."""
    first = int.from_bytes(code[:2], "little")
    if len(code) == 2:
        mnemonic, size = _IMMEDIATE.get(first & 0xF800, ("", 0))
        register, base, offset = first & 7, first >> 3 & 7, (first >> 6 & 31) * size
    else:
        second = int.from_bytes(code[2:], "little")
        mnemonic, size = _WIDE_IMMEDIATE.get(first & 0xFFF0, ("", 0))
        register, base, offset = second >> 12, first & 15, second & 0xFFF
    if not mnemonic or PC in (register, base):
        return None
    load = mnemonic.startswith("ldr")
    place = f"[{_NAMES[base]}, #{offset:#x}]" if offset > 9 else f"[{_NAMES[base]}, #{offset}]"
    text = f"{mnemonic} {_NAMES[register]}, {place if offset else f'[{_NAMES[base]}]'}"
    return Access(text, len(code), load, size, 1, False, (register,), base, offset=offset)


_NAMES = (*(f"r{number}" for number in range(13)), "sp", "lr", "pc")


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
