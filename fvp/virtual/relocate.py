# SPDX-License-Identifier: Apache-2.0
"""Move a firmware's address constants from a board's memories above 2 GiB to where they are mapped here.

Found by decoding the code, never by file offset. Two forms exist: a Thumb-2 modified immediate that forms an
address (``mov.w rd, #0x9X000000``, ``add.w rd, rn, #0x9X000000``), rewritten in place to an immediate of the
same length, and a literal-pool word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from fvp.virtual.boards import KIB, Board, Memory

_LITERAL_REACH = 4 * KIB
"""A literal this close above a 16 MiB boundary of the moved memory is taken as an address in it."""

_ADDRESS_BOUNDARY = 1 << 24


@dataclass(frozen=True)
class Code:
    """A stretch [start, end) of load addresses: Thumb instructions, or the literals between them."""

    start: int
    end: int
    thumb: bool


@dataclass(frozen=True)
class Site:
    """One constant: its load address, its value, and whether it is a literal word."""

    address: int
    value: int
    literal: bool


def expand_immediate(imm12: int) -> int:
    """Value of a T32 modified immediate (Armv8-M ARM, ThumbExpandImm)."""
    if imm12 >> 10:
        rotation, byte = imm12 >> 7, 0x80 | (imm12 & 0x7F)
        return (byte >> rotation | byte << (32 - rotation)) & 0xFFFF_FFFF
    byte = imm12 & 0xFF
    return byte * (0x1, 0x10001, 0x1000100, 0x1010101)[imm12 >> 8 & 3]


def encode_immediate(value: int) -> int:
    """The rotated-byte form of `value` as a T32 modified immediate.

    Raises:
        ValueError: the value has no such form.
    """
    for rotation in range(8, 32):
        byte = (value << rotation | value >> (32 - rotation)) & 0xFFFF_FFFF
        if 0x80 <= byte <= 0xFF:
            return rotation << 7 | byte & 0x7F
    raise ValueError(f"{value:#x} is no rotated byte")


def relocate(
    contents: Iterable[tuple[int, bytes]], code: Iterable[Code], board: Board
) -> list[tuple[int, bytes]]:
    """`contents` (load address, bytes) with every constant that points into a moved memory rewritten."""
    stretches = sorted(code, key=lambda item: item.start)
    return [(address, _relocated(address, data, stretches, board)) for address, data in contents]


def _relocated(address: int, data: bytes, code: list[Code], board: Board) -> bytes:
    out = bytearray(data)
    for memory in board.moved():
        for site in sites(address, data, code, memory):
            value = board.guest_address(site.value)
            offset = site.address - address
            if site.literal:
                out[offset : offset + 4] = value.to_bytes(4, "little")
            else:
                out[offset : offset + 4] = _with_immediate(data[offset : offset + 4], encode_immediate(value))
    return bytes(out)


def sites(address: int, data: bytes, code: list[Code], memory: Memory) -> Iterator[Site]:
    """The constants in `data` (loaded at `address`) that point into the moved `memory`."""
    first, last = memory.hardware or 0, (memory.hardware or 0) + memory.size
    for stretch in code:
        if not address <= stretch.start < stretch.end <= address + len(data):
            continue
        part = data[stretch.start - address : stretch.end - address]
        found = _immediates(part) if stretch.thumb else _literals(part)
        for offset, value in found:
            if first <= value < last:
                yield Site(stretch.start + offset, value, not stretch.thumb)


def _literals(part: bytes) -> Iterator[tuple[int, int]]:
    """(offset, value) of literal words just above a 16 MiB boundary."""
    words = np.frombuffer(part, "<u4", len(part) // 4)
    for index in np.flatnonzero(words % _ADDRESS_BOUNDARY < _LITERAL_REACH):
        yield int(index) * 4, int(words[index])


def _immediates(part: bytes) -> Iterator[tuple[int, int]]:
    """(offset, value) of ``mov.w``/``add.w`` whose modified immediate is a multiple of 16 MiB."""
    halves = np.frombuffer(part, "<u2", len(part) // 2)
    first, second = halves[:-1], halves[1:]
    # 11110 0 0 0010 S 1111 (MOV) or 11110 0 0 1000 S Rn (ADD); 0 100 Rd 0 bcdefgh: 1bcdefgh rotated by 8
    operation = ((first & 0xFFEF) == 0xF04F) | ((first & 0xFFE0) == 0xF100)
    candidates = np.flatnonzero(operation & ((second & 0xF080) == 0x4000))
    if candidates.size == 0:
        return
    starts = instruction_starts(halves)
    for index in candidates:
        if int(index) in starts:
            yield int(index) * 2, expand_immediate(_immediate(int(first[index]), int(second[index])))


def instruction_starts(halves: np.ndarray) -> set[int]:
    """Indices of the halfwords that begin an instruction (first halfwords 0b11101.. and up take two)."""
    starts, index = set(), 0
    while index < len(halves):
        starts.add(index)
        index += 2 if halves[index] >= 0xE800 else 1
    return starts


def _immediate(first: int, second: int) -> int:
    return (first >> 10 & 1) << 11 | (second >> 12 & 7) << 8 | second & 0xFF


def _with_immediate(instruction: bytes, imm12: int) -> bytes:
    first, second = int.from_bytes(instruction[:2], "little"), int.from_bytes(instruction[2:], "little")
    first = first & ~0x0400 | (imm12 >> 11) << 10
    second = second & ~0x70FF | (imm12 >> 8 & 7) << 12 | imm12 & 0xFF
    return first.to_bytes(2, "little") + second.to_bytes(2, "little")
