# SPDX-License-Identifier: Apache-2.0
"""The quick decoder against capstone, over every encoding it takes."""

from __future__ import annotations

import dataclasses
import itertools
import random

import pytest

from fvp.virtual.decode import _decode_immediate, decode
from fvp.virtual.disassembly import disassemble

WIDE = (0xF880, 0xF890, 0xF8A0, 0xF8B0, 0xF8C0, 0xF8D0)


def quick_and_capstone(code: bytes) -> None:
    quick = _decode_immediate(code)
    assert quick is not None and quick == decode(code)
    other = disassemble(code)
    assert dataclasses.replace(quick, text="") == dataclasses.replace(other, text="")
    assert quick.text.split()[0] == other.text.split()[0]  # registers have other names there


def test_every_16_bit_form() -> None:
    for halfword in range(0x6000, 0x9000):
        quick_and_capstone(halfword.to_bytes(2, "little"))


@pytest.mark.parametrize("first", WIDE)
def test_32_bit_forms(first: int) -> None:
    offsets = [0, 1, 9, 10, 0xFFF, *random.Random(first).sample(range(0x1000), 20)]
    for base, register, offset in itertools.product(range(15), range(15), offsets):
        second = register << 12 | offset
        quick_and_capstone((first | base).to_bytes(2, "little") + second.to_bytes(2, "little"))


@pytest.mark.parametrize("code", ["dff804f0", "d8f800f0", "0148", "0447", "00bf", "51f8041b"])
def test_other_forms_are_left_to_capstone(code: str) -> None:
    """Program counter as base or target, literals, write-back and what is no load or store."""
    assert _decode_immediate(bytes.fromhex(code)) is None
