# SPDX-License-Identifier: Apache-2.0
"""Address constants of a firmware: all of them found, nothing else touched."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fvp.virtual import tools
from fvp.virtual.boards import BOARDS, CORSTONE_320
from fvp.virtual.elf import read_firmware
from fvp.virtual.relocate import Code, encode_immediate, expand_immediate, relocate, sites
from tests.fvp.guest import CODE, assemble, needs_assembler


@given(st.integers(8, 31), st.integers(0x80, 0xFF))
def test_immediates_round_trip(rotation: int, byte: int) -> None:
    value = (byte >> rotation | byte << (32 - rotation)) & 0xFFFF_FFFF
    assert expand_immediate(encode_immediate(value)) == value


@pytest.mark.parametrize(
    ("imm12", "value"), [(0x0AB, 0xAB), (0x1AB, 0xAB_00AB), (0x2AB, 0xAB00_AB00), (0x3AB, 0xABAB_ABAB)]
)
def test_replicated_immediates(imm12: int, value: int) -> None:
    assert expand_immediate(imm12) == value


def test_value_without_a_rotated_form_is_refused() -> None:
    with pytest.raises(ValueError, match="no rotated byte"):
        encode_immediate(0x1234_5678)


SOURCE = """
mov.w r6, #{model}
mov.w r10, #{outputs}
add.w r1, r6, #{inputs}
adds.w r9, r8, #{frame}
and.w r1, r2, #0x90000000
cmp.w r3, #0x92000000
orr.w r1, r2, #0x93000000
mov.w r0, #0xA0000000
mov.w r0, #0x8F000000
mov.w r0, #0x70000000
add.w r0, r1, #0x90
movw r0, #0x9000
ldr r0, =0x12345678
nop
"""


@needs_assembler
def test_rewritten_code_is_what_the_assembler_makes_of_the_moved_addresses() -> None:
    """Only address formation is rewritten: masks, comparisons and other values stay."""
    before = assemble(
        SOURCE.format(model="0x90000000", outputs="0x93000000", inputs="0x92000000", frame="0x96000000")
    )
    after = assemble(
        SOURCE.format(model="0x60000000", outputs="0x63000000", inputs="0x62000000", frame="0x66000000")
    )
    code = [Code(CODE, CODE + len(before), thumb=True)]
    assert relocate([(CODE, before)], code, CORSTONE_320) == [(CODE, after)]


def test_second_half_of_an_instruction_is_not_taken_for_one() -> None:
    """A 32-bit instruction whose second halfword looks like the start of ``mov.w``."""
    data = struct.pack("<4H", 0xF24F, 0xF04F, 0x4010, 0xBF00)
    assert list(sites(CODE, data, [Code(CODE, CODE + 8, thumb=True)], next(CORSTONE_320.moved()))) == []


def test_literals_near_a_boundary_are_moved_and_others_not() -> None:
    words = (0x9200_0000, 0x9600_0024, 0x9200_83FF, 0x8000_0000, 0x9712_3456)
    data = struct.pack("<5I", *words)
    ((_, moved),) = relocate([(CODE, data)], [Code(CODE, CODE + 20, thumb=False)], CORSTONE_320)
    assert struct.unpack("<5I", moved) == (0x6200_0000, 0x6600_0024, *words[2:])


def test_contents_outside_code_stay() -> None:
    data = struct.pack("<I", 0x9200_0000)
    assert relocate([(CODE, data)], [], CORSTONE_320) == [(CODE, data)]


@pytest.mark.parametrize(
    ("board", "section"), [("corstone-320", ".text.at_bram"), ("corstone-300", ".text.at_itcm")]
)
@pytest.mark.skipif(shutil.which("arm-none-eabi-objdump") is None, reason="binutils for Arm are missing")
def test_sites_in_arms_firmware_equal_objdumps(board: str, section: str) -> None:
    """Every ``mov.w``/``add.w`` with such an immediate in objdump's listing, and no other."""
    image = tools.find_image(board)
    if image is None:
        pytest.skip("Arm's firmware is not installed (setup.sh)")
    command = ["arm-none-eabi-objdump", "-d", "--no-show-raw-insn", "-j", section, image]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    line = re.compile(r"^ *([0-9a-f]+):\t(?:mov|add)s?\.w\t.*#(\d+)\t", re.MULTILINE)
    expected = {(int(a, 16), int(v)) for a, v in line.findall(listing) if 0x9000_0000 <= int(v) < 0xA000_0000}
    firmware = read_firmware(image)
    code = sorted(firmware.code, key=lambda item: item.start)
    found = {
        (site.address, site.value)
        for memory in BOARDS[board].moved()
        for address, data in firmware.contents
        for site in sites(address, data, code, memory)
        if not site.literal
    }
    assert found == expected and len(found) >= 8
