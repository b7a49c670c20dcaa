# SPDX-License-Identifier: Apache-2.0
"""Small guests on a board: interrupts keep the interrupted state, priorities hold, faults are named."""

from __future__ import annotations

import struct
import time
from pathlib import Path

import pytest

from fvp.platform import Deadline
from fvp.virtual.boards import Board, DeviceSlot, Memory
from fvp.virtual.devices.console import Console
from fvp.virtual.elf import Image
from fvp.virtual.machine import Machine
from npu.config import npu_config
from report.errors import PlatformTimeout, RunFailed
from tests.fvp.guest import (
    CODE,
    CODE_BYTES,
    RAM,
    RAM_BYTES,
    STAGING,
    assemble,
    needs_assembler,
    needs_qemu,
    running,
)

pytestmark = [needs_qemu, needs_assembler]

UART, SCS = 0x4820_3000, 0xE000_E000
BOARD = Board(
    name="test board",
    cpu="Cortex-M55",
    qemu_cpu="cortex-m55",
    cpuid=0x410F_D221,
    memories=(Memory("code", CODE, CODE_BYTES), Memory("ram", RAM, RAM_BYTES)),
    pages=(),
    devices=(
        DeviceSlot("scs", "scs", (SCS,)),
        DeviceSlot("uart0", "cmsdk-uart", (UART,)),
        DeviceSlot("npu", "ethos-u", (0x5000_4000,), size=0x2000, irq=16),
    ),
    staging=STAGING,
)


def run(source: str, folder: Path, seconds: float = 20, dump: int = 0) -> tuple[str, bytes]:
    """Run a guest until it sends the end of transmission; console text and the first `dump` bytes of RAM.

    The source gets a vector table whose handlers are the labels it defines (`reset`, `systick`, `irq0` …,
    `pendsv`, `hard`), and the macro `put CHARACTER`.
    """
    vectors = [f"{RAM + RAM_BYTES:#x}", "reset", *["0"] * 30]
    for slot, label in (
        (3, "hard"),
        (14, "pendsv"),
        (15, "systick"),
        *((16 + n, f"irq{n}") for n in range(4)),
    ):
        if f"{label}:" in source:
            vectors[slot] = label
    table = "\n".join(f".word {entry}" + (" + 1" if entry[0] not in "0" else "") for entry in vectors)
    put = f".macro put c\nldr r4, ={UART:#x}\nmovs r5, #\\c\nstr r5, [r4]\n.endm"
    code = assemble(f"{put}\n{table}\n{source}\n.ltorg")
    image = Image(folder / "guest.elf", folder / "guest.axf", "", CODE, {"reset": CODE + 128})
    console = Console()
    with running(code, folder, seconds) as (qemu, client):
        machine = Machine(BOARD, npu_config("ethos-u85-256"), image, qemu.memory, console, Deadline(seconds))
        machine.run(client, {})
        return console.text, qemu.memory.read(RAM, dump)


END = "put 4\nforever: b forever"


def test_interrupt_keeps_the_interrupted_state(tmp_path: Path) -> None:
    """A handler that destroys what the calling convention lets it destroy must not be noticed."""
    source = f"""
    reset:
        ldr r0, ={SCS + 0x10:#x}
        movs r1, #90
        str r1, [r0, #4]
        movs r1, #7
        str r1, [r0]
        ldr r4, ={UART:#x}
        ldr r11, ={RAM:#x}
        movw r0, #0x1111
        movw r1, #0x2222
        movw r2, #0x3333
        movw r3, #0x4444
        movw r12, #0x5555
        movw lr, #0x6666
        vmov s0, s1, r0, r1
        vmov s14, s15, r2, r3
        movs r6, #0
        vmsr fpscr, r6
        cmp r6, r6
    wait:
        ldr r7, [r4, #4]
        ldr r8, [r11]
        tst r8, #8
        it eq
        beq wait
        add r9, r11, #16
        mrs r10, apsr
        stmia r9!, {{r0-r3, r12, lr}}
        vstmia r9!, {{s0-s1}}
        vstmia r9!, {{s14-s15}}
        str sp, [r9], #4
        str r10, [r9]
        {END}
    systick:
        ldr r0, ={RAM:#x}
        ldr r1, [r0]
        adds r1, #1
        str r1, [r0]
        mov r2, #-1
        movs r3, #0
        mov r12, #0
        vmov s0, s1, r2, r3
        vmov s14, s15, r2, r3
        vmsr fpscr, r2
        mov r2, #0x80000000
        cmp r3, r2
        bx lr
    """
    _, data = run(source, tmp_path, dump=64)
    count, *_ = struct.unpack_from("<I", data)
    saved = struct.unpack_from("<12I", data, 16)
    assert count == 8
    assert saved[:6] == (0x1111, 0x2222, 0x3333, 0x4444, 0x5555, 0x6666)
    assert saved[6:10] == (0x1111, 0x2222, 0x3333, 0x4444)
    assert saved[10] == RAM + RAM_BYTES
    assert saved[11] >> 28 == 0b0010  # C of the compare, no Z by the test, none of the handler's N and V


def priority(irq: int, value: int) -> str:
    return f"ldr r0, ={SCS + 0x400 + irq:#x}\nmovs r1, #{value}\nstrb r1, [r0]"


def pend(irq: int) -> str:
    return f"ldr r0, ={SCS + 0x200:#x}\nmovs r1, #{1 << irq}\nstr r1, [r0]"


def test_more_urgent_interrupt_preempts_and_less_urgent_waits(tmp_path: Path) -> None:
    source = f"""
    reset:
        {priority(1, 0x40)}
        {priority(2, 0x20)}
        {priority(3, 0x60)}
        ldr r0, ={SCS + 0x100:#x}
        movs r1, #14
        str r1, [r0]
        {pend(1)}
        put 'e'
        {END}
    irq1:
        push {{r4, r5, r6, lr}}
        put 'a'
        {pend(2)}
        put 'b'
        {pend(3)}
        put 'c'
        pop {{r4, r5, r6, pc}}
    irq2:
        push {{r4, r5, r6, lr}}
        put 'X'
        pop {{r4, r5, r6, pc}}
    irq3:
        push {{r4, r5, r6, lr}}
        put 'Y'
        pop {{r4, r5, r6, pc}}
    """
    assert run(source, tmp_path)[0] == "aXbcYe"


def test_disabled_interrupt_waits_until_enabled_and_pendsv_runs(tmp_path: Path) -> None:
    source = f"""
    reset:
        {pend(0)}
        put 'a'
        ldr r0, ={SCS + 0x100:#x}
        movs r1, #1
        str r1, [r0]
        put 'b'
        ldr r0, ={SCS + 0xD04:#x}
        mov r1, #0x10000000
        str r1, [r0]
        put 'c'
        {END}
    irq0:
        push {{r4, lr}}
        put 'I'
        pop {{r4, pc}}
    pendsv:
        push {{r4, lr}}
        put 'P'
        pop {{r4, pc}}
    """
    assert run(source, tmp_path)[0] == "aIbPc"


FAULTS = {
    "load": ("ldr r0, =0x44440000\nldr r1, [r0, #8]", "nothing is at 0x44440008 on test board"),
    "store": ("ldr r0, =0x44440000\nstr r1, [r0]", "nothing is at 0x44440000 on test board"),
    "branch": ("ldr r0, =0x44440001\nbx r0", "branch to unmapped memory"),
    "udf": ("udf #0", "undefined instruction"),
    "bkpt": ("bkpt #0", "breakpoint instruction"),
    "exclusive": ("ldr r0, =0x48203000\nldrex r1, [r0]", "fault in ldrex r1"),
    "gather": ("ldr r0, =0x44440000\nvmov.i32 q1, #0\nvldrw.u32 q0, [r0, q1]", "unknown instruction"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_named(name: str, tmp_path: Path) -> None:
    body, message = FAULTS[name]
    with pytest.raises(RunFailed, match=message) as caught:
        run(f"reset:\n{body}\n{END}", tmp_path)
    assert name == "branch" or "(reset" in caught.value.what


def test_spinning_guest_ends_at_the_time_limit(tmp_path: Path) -> None:
    start = time.monotonic()
    with pytest.raises(PlatformTimeout, match="neither ended nor touched"):
        run("reset: b reset", tmp_path, seconds=0.5)
    assert time.monotonic() - start < 2


def test_time_limit_in_a_fault_handler_names_the_fault(tmp_path: Path) -> None:
    source = "reset: ldr r0, =0x44440000\nldr r1, [r0]\nhard: nop\nb hard"
    with pytest.raises(PlatformTimeout, match=r"after a fault: BusFault, .*BFAR 0x44440000 at .*\(reset"):
        run(source, tmp_path, seconds=0.5)


def test_guest_that_only_polls_ends_at_the_time_limit(tmp_path: Path) -> None:
    source = f"reset: ldr r0, ={UART:#x}\npoll: ldr r1, [r0, #4]\nb poll"
    with pytest.raises(PlatformTimeout):
        run(source, tmp_path, seconds=0.5)


def test_deadline_needs_time_left() -> None:
    deadline = Deadline(0.01, "here")
    time.sleep(0.02)
    with pytest.raises(PlatformTimeout, match=r"here: no result within 0.01 s: waiting"):
        deadline.remaining("waiting")
