# SPDX-License-Identifier: Apache-2.0
"""Every load and store form, emulated on a device and executed by QEMU on RAM, must give the same state."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from fvp.virtual.boards import DeviceSlot
from fvp.virtual.cpu import CannotEmulate, Registers, access_at, perform, perform_in_place
from fvp.virtual.devices.bus import Bus, UnmappedAddress
from fvp.virtual.gdb import PC, SIGSEGV, SIGTRAP
from tests.fvp.guest import CODE, PAGE, RAM, STAGING, assemble, needs_assembler, needs_qemu, running

pytestmark = [needs_qemu, needs_assembler]

DEVICE = 0x4000_0000
MIDDLE = 0x800
"""Where in RAM and in the device page the accesses go."""

FORMS = """
ldr r0, [r1, #4]
ldr.w r0, [r1, #4]
ldr r0, [r1], #4
ldr r0, [r1, #-4]!
ldr.w r8, [r9, #-252]
ldr r0, [r1, r2]
ldr.w r0, [r1, r2, lsl #2]
ldr r0, [sp, #8]
ldr r1, [r1]
ldrb r0, [r1, #3]
ldrsb r0, [r1, r2]
ldrsb.w r0, [r1, #1]
ldrsh r0, [r1, r2]
ldrsh.w r8, [r9, #6]
ldrh r0, [r1], #-2
ldrh r3, [r4, #2]
ldrb.w r10, [r1, r2, lsl #3]
ldrd r0, r3, [r1, #8]
ldrd r0, r3, [r1], #8
ldrd r0, r3, [r1, #-8]!
ldrd r1, r3, [r1]
str r0, [r1, #4]
str r0, [r1], #4
str r0, [r1, #4]!
str r1, [r1]
str.w lr, [r1, #16]
strb r0, [r1, #3]
strb.w r0, [r1, r2, lsl #1]
strb r0, [r1], #1
strh r3, [r4, #2]
strh r3, [r4, r2]
strd r0, r3, [r1, #8]!
strd r0, r3, [r1], #-8
str r0, [sp, #4]
ldmia r1!, {r2, r3}
ldmia.w r1, {r2, r3, r9}
ldmia r1, {r1, r2}
ldmdb r1!, {r2, r3}
stmia r1!, {r2, r3}
stmia.w r1, {r1, r2, r9}
stmdb r1, {r2, r3}
stmdb r1!, {r2, r3, r10}
push {r4, lr}
push {r0-r7}
pop {r4, r5}
pop.w {r0, r9, lr}
ldrt r0, [r1, #4]
strbt r0, [r1, #4]
lda r0, [r1]
ldah r0, [r1]
stlb r0, [r1]
stl r0, [r1]
vldr s0, [r1, #8]
vldr d1, [r1, #-8]
vstr s3, [r1, #4]
vstr d7, [r1, #8]
vldmia r1!, {s0-s3}
vldmdb r1!, {d4-d5}
vstmia r1, {d0-d2}
vstmdb r1!, {s4-s9}
vpush {d0-d1}
vpop {d0-d1}
vldrw.u32 q0, [r1]
vldrw.u32 q5, [r9, #16]!
vldrb.u8 q0, [r1], #16
vldrb.s16 q0, [r1]
vldrb.u32 q7, [r1, #4]!
vldrh.s32 q7, [r1, #-4]
vldrh.u16 q3, [r4, #6]
vstrw.32 q1, [r10, #-16]
vstrb.8 q0, [r1], #-16
vstrh.32 q1, [r1]
vstrb.16 q1, [r1], #2
vstrb.32 q1, [r1]
vstrh.16 q2, [r9, #8]!
""".strip().splitlines()

LITTLE_INDEX = 12
START = {index: 0x8001_0203 * (index + 3) & 0xFFFF_FFFF for index in (0, 3, 5, 6, 7, 8, 11, 12, 14)}
BASES = (1, 4, 9, 10, 13)


class Page:
    """A device that behaves like a page of RAM and remembers what was asked of it."""

    def __init__(self, data: bytes) -> None:
        self.data = bytearray(data)

    def read(self, offset: int, size: int) -> int:
        return int.from_bytes(self.data[offset : offset + size], "little")

    def write(self, offset: int, size: int, value: int) -> None:
        self.data[offset : offset + size] = value.to_bytes(size, "little")


PATTERN = bytes((i * 73 + 41) & 0xFF for i in range(PAGE))


def start_registers(base: int) -> dict[int, int]:
    """Base registers in the middle of the page at `base`, r2 a small index, the others arbitrary."""
    return START | dict.fromkeys(BASES, base + MIDDLE) | {2: LITTLE_INDEX}


def relative(values: tuple[int, ...], base: int) -> list[int]:
    """Registers with addresses in the page at `base` made comparable between two pages."""
    return [value - base if base <= value < base + PAGE else value for value in values]


def words(data: bytes, base: int) -> list[int]:
    """A page's words, stored base registers made comparable."""
    return relative(struct.unpack(f"<{len(data) // 4}I", data), base)


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory):
    """A guest whose code holds each form once, followed by a breakpoint trap; and the forms' addresses."""
    lines, places = [f".word {RAM + PAGE:#x}, {CODE + 9:#x}"], {}
    for number, form in enumerate(FORMS):
        lines += [f"form{number}: {form}", "nop", "nop"]
    code = assemble("\n".join(lines))
    offset = 8
    for form in FORMS:
        places[form] = CODE + offset
        offset += (4 if code[offset + 1] >= 0xE8 else 2) + 4
    with running(code, tmp_path_factory.mktemp("guest")) as (qemu, client):
        yield qemu, client, places


def floating(client) -> dict[str, int]:  # type: ignore[no-untyped-def]
    return client.read_registers([f"d{number}" for number in range(16)])


def preload(client) -> None:  # type: ignore[no-untyped-def]
    client.write_registers(
        {f"d{number}": (0x0123_4567_89AB_CDEF * (number + 1) & (1 << 64) - 1, 8) for number in range(16)}
    )


def on_ram(qemu, client, pc: int) -> tuple[list[int], dict[str, int], list[int]]:  # type: ignore[no-untyped-def]
    """QEMU executes the instruction on RAM."""
    qemu.memory.write(RAM, PATTERN)
    preload(client)
    stop = client.resume(start_registers(RAM) | {PC: pc}, step=True)
    assert stop.signal == SIGTRAP
    return relative(stop.registers, RAM), floating(client), words(qemu.memory.read(RAM, PAGE), RAM)


def on_device(qemu, client, pc: int) -> tuple[list[int], dict[str, int], list[int]]:  # type: ignore[no-untyped-def]
    """The instruction faults on a device page and is emulated."""
    page, bus = Page(PATTERN), Bus()
    bus.attach(DeviceSlot("page", "test", (DEVICE,)), page)
    preload(client)
    stop = client.resume(start_registers(DEVICE) | {PC: pc})
    assert stop.signal == SIGSEGV and stop.registers[PC] == pc
    registers = Registers(stop.registers)
    access = access_at(registers, qemu.memory, {})
    if access.registers:
        perform(access, registers, bus)
    else:
        registers = perform_in_place(access, registers, bus, client, qemu.memory, STAGING)
    after = tuple(registers[index] for index in range(len(registers)))
    return relative(after, DEVICE), floating(client), words(bytes(page.data), DEVICE)


@pytest.mark.parametrize("form", FORMS)
def test_emulated_access_equals_executed_one(guest, form: str) -> None:  # type: ignore[no-untyped-def]
    qemu, client, places = guest
    expected = on_ram(qemu, client, places[form])
    actual = on_device(qemu, client, places[form])
    assert actual[0] == expected[0], "core registers"
    assert actual[1] == expected[1], "floating-point registers"
    assert actual[2] == expected[2], "memory"


IT_FORMS = (
    "ldr r0, [r1, #4]",
    "str r0, [r1], #4",
    "ldm r1!, {r3, r5}",
    "strd r0, r3, [r1, #8]!",
    "vldr s0, [r1]",
)


@pytest.mark.parametrize("form", IT_FORMS)
def test_access_in_it_block_keeps_the_it_state(form: str, tmp_path: Path) -> None:
    """The instructions behind the access in the same IT block must still see their own conditions."""
    name, operands = form.split(" ", 1)
    body = f"""
        .word {RAM + PAGE:#x}, {CODE + 9:#x}
        cmp r2, r2
        ittee eq
        {name}eq {operands}
        moveq r6, #1
        movne r6, #2
        movne r7, #3
        nop
    end: nop"""
    code = assemble(body)
    access = CODE + 8 + 4  # behind the compare and the IT
    with running(code, tmp_path) as (qemu, client):
        results = []
        for base in (RAM, DEVICE):
            qemu.memory.write(RAM, PATTERN)
            page, bus = Page(PATTERN), Bus()
            bus.attach(DeviceSlot("page", "test", (DEVICE,)), page)
            preload(client)
            client.insert_breakpoint(CODE + len(code) - 2)
            stop = client.resume(start_registers(base) | {PC: CODE + 8})
            if base == DEVICE:
                assert (stop.signal, stop.registers[PC]) == (SIGSEGV, access)
                registers = Registers(stop.registers)
                assert registers.in_it_block
                decoded = access_at(registers, qemu.memory, {})
                after = perform_in_place(decoded, registers, bus, client, qemu.memory, STAGING)
                stop = client.resume(after.changed)
            client.remove_breakpoint(CODE + len(code) - 2)
            assert stop.signal == SIGTRAP
            data = bytes(page.data) if base == DEVICE else qemu.memory.read(RAM, PAGE)
            results.append((relative(stop.registers, base), floating(client), words(data, base)))
        assert results[0] == results[1]
        assert results[0][0][6] == 1


def test_nothing_there_leaves_the_registers_alone(guest) -> None:  # type: ignore[no-untyped-def]
    qemu, client, places = guest
    stop = client.resume(start_registers(DEVICE) | {PC: places["str r0, [r1], #4"]})
    registers = Registers(stop.registers)
    with pytest.raises(UnmappedAddress, match="0x40000800"):
        perform(access_at(registers, qemu.memory, {}), registers, Bus())
    assert registers.changed == {}


def test_predicated_vector_access_is_refused(tmp_path: Path) -> None:
    code = assemble(f".word {RAM + PAGE:#x}, {CODE + 9:#x}\nvctp.8 r2\nvpst\nvstrbt.8 q0, [r1]\nnop")
    with running(code, tmp_path) as (qemu, client):
        stop = client.resume(start_registers(DEVICE) | {PC: CODE + 8})
        registers = Registers(stop.registers)
        access = access_at(registers, qemu.memory, {})
        with pytest.raises(CannotEmulate, match="predicated"):
            perform_in_place(access, registers, Bus(), client, qemu.memory, STAGING)
