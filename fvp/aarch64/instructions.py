# SPDX-License-Identifier: Apache-2.0
"""Classes of A64 instructions: one table over bits 28 to 25, the first level of the encoding.

Source: Arm Architecture Reference Manual, "A64 instruction set encoding", table of op0 and op1.
"""

from __future__ import annotations

CLASSES = ("sme", "sve", "simd and fp", "load and store", "branch and system", "integer", "reserved")
"""SME holds outer products, moves to and from ZA and ZA's loads and stores; in streaming mode the other
instructions over scalable vectors are SVE's."""

_SME, _SVE, _SIMD, _MEMORY, _BRANCH, _INTEGER, _RESERVED = range(len(CLASSES))

_BY_OP1 = (
    _SME,  # 0000: SME where bit 31 is set
    _RESERVED,
    _SVE,
    _RESERVED,
    _MEMORY,  # x1x0
    _INTEGER,  # x101: register
    _MEMORY,
    _SIMD,  # x111
    _INTEGER,  # 100x: immediate
    _INTEGER,
    _BRANCH,  # 101x
    _BRANCH,
    _MEMORY,
    _INTEGER,
    _MEMORY,
    _SIMD,
)


def class_of(word: int) -> int:
    """Index into `CLASSES` of the instruction word `word`."""
    op1 = word >> 25 & 0xF
    return _RESERVED if op1 == 0 and not word >> 31 else _BY_OP1[op1]
