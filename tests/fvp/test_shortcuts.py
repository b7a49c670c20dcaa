# SPDX-License-Identifier: Apache-2.0
"""Shortcuts change nothing but the number of executed instructions."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fvp.platform import Deadline
from fvp.virtual import mlek, tools
from fvp.virtual.devices.console import Console
from fvp.virtual.elf import Image, read_firmware
from fvp.virtual.machine import Machine
from fvp.virtual.run import VirtualCorstone
from fvp.virtual.shortcuts import LinearSearch, calls
from npu.config import npu_config
from tests.fvp.guest import CODE, RAM, assemble, needs_assembler, needs_qemu, running
from tests.fvp.test_machine import BOARD, END
from tests.fvp.test_virtual_run import job, needs_platform

TEXT, BUFFER, SIZE = RAM + 0x100, RAM + 0x1000, 0x2000

LOOP = f"""
    .word {RAM + 0x8000:#x}, reset + 1
reset:
    ldr r6, ={BUFFER:#x}
    ldr r8, ={TEXT:#x}
    ldr r7, ={SIZE - 4:#x}
    movs r4, #0
    movs r5, #0
again:
    cmp r4, r7
    beq out
    adds r0, r6, r4
    mov r1, r8
    movs r2, #4
    bl compare
    cbz r0, out
    adds r4, #STEP
    EXTRA
    b again
out:
    ldr r9, ={RAM:#x}
    stmia r9, {{r4, r5}}
    .macro put c
    ldr r4, =0x48203000
    movs r5, #\\c
    str r5, [r4]
    .endm
    {END}
compare:
    ldr r3, [r0]
    ldr r12, [r1]
    subs r0, r3, r12
    bx lr
    .ltorg
"""


def final(folder: Path, step: int, extra: str, text_at: int | None, hooked: bool) -> tuple[bytes, int]:
    """What the loop stores, and how many instructions' worth of stops it took (hook stops included)."""
    code = assemble(LOOP.replace("STEP", str(step)).replace("EXTRA", extra))
    compare = code.index(bytes.fromhex("0368"))  # ldr r3, [r0]
    (site,) = calls(code, CODE, CODE + compare)
    console, deadline = Console(), Deadline(20)
    with running(code, folder) as (qemu, client):
        qemu.memory.write(TEXT, b"Sram")
        if text_at is not None:
            qemu.memory.write(BUFFER + text_at, b"Sram")
        image = Image(folder, folder, "", CODE, {})
        machine = Machine(BOARD, npu_config("ethos-u85-256"), image, qemu.memory, console, deadline)
        machine.run(client, {site: LinearSearch(BUFFER + SIZE)} if hooked else {})
        return qemu.memory.read(RAM, 8), machine.stops


@needs_qemu
@needs_assembler
@pytest.mark.parametrize("text_at", [0, 1, 2, 3, 0x1234, SIZE - 5, None])
def test_search_ends_where_it_would_have_ended(tmp_path: Path, text_at: int | None) -> None:
    expected, _ = final(tmp_path, 1, "nop", text_at, hooked=False)
    actual, stops = final(tmp_path, 1, "nop", text_at, hooked=True)
    assert actual == expected
    assert stops <= 3


@needs_qemu
@needs_assembler
@pytest.mark.parametrize(("step", "extra"), [(2, "nop"), (1, "adds r5, #2"), (1, "eor r5, r5, #8")])
def test_loop_of_another_kind_is_left_alone(tmp_path: Path, step: int, extra: str) -> None:
    expected, _ = final(tmp_path, step, extra, 0x400, hooked=False)
    assert final(tmp_path, step, extra, 0x400, hooked=True)[0] == expected


@needs_qemu
@needs_assembler
def test_second_counter_is_moved_too(tmp_path: Path) -> None:
    expected, _ = final(tmp_path, 1, "adds r5, #1", 0x777, hooked=False)
    assert final(tmp_path, 1, "adds r5, #1", 0x777, hooked=True)[0] == expected


@needs_assembler
@pytest.mark.parametrize("distance", [-0x10_0000, -0x1000, -4, 4, 0x1000, 0x20_0000])
def test_calls_are_decoded_as_the_assembler_encodes_them(distance: int) -> None:
    target = CODE + 8 + distance
    code = assemble(f"nop\nnop\nbl {target:#x}\nb.w {target:#x}\nbl {target + 2:#x}")
    assert list(calls(code, CODE, target)) == [CODE + 4]


@needs_platform
@pytest.mark.parametrize("board", ["corstone-320", "corstone-300"])
def test_call_in_arms_firmware_is_objdumps(board: str) -> None:
    image = tools.require_image(board)
    symbols = read_firmware(image).symbols
    function = symbols["_ZN3arm3app3fwk2et7EtModel15LogOperatorInfoEv"]
    end = min(address for address in symbols.values() if address > function)
    limits = [f"--start-address={function}", f"--stop-address={end}"]
    listing = subprocess.run(
        ["arm-none-eabi-objdump", "-d", *limits, image], capture_output=True, text=True, check=True
    ).stdout
    expected = [int(line.split(":")[0], 16) for line in listing.splitlines() if "<memcmp>" in line]
    (code,) = (
        data[function - start : end - start]
        for start, data in read_firmware(image).contents
        if start <= function < start + len(data)
    )
    assert list(calls(code, function, symbols["memcmp"])) == expected and len(expected) == 1


@needs_platform
@pytest.mark.parametrize("stem", ["mixed_u85_256", "layouts_u55_128"])
def test_firmware_does_the_same_without_the_shortcut(stem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fast = VirtualCorstone().run(job(stem)[0])
    monkeypatch.setattr(mlek, "searches", lambda *_: {})
    slow = VirtualCorstone().run(job(stem)[0])
    assert fast.log == slow.log and "NPU memory mode" in fast.log
    assert [a.tobytes() for a in fast.outputs] == [b.tobytes() for b in slow.outputs]
