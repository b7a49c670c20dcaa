# SPDX-License-Identifier: Apache-2.0
"""Device models by their registers."""

from __future__ import annotations

import io
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fvp.virtual.boards import BOARDS, PAGE, DeviceSlot
from fvp.virtual.devices import fpgaio, scs, systick, timing_adapter, trace, uart
from fvp.virtual.devices.base import Clock, Ignore
from fvp.virtual.devices.bus import Bus, UnmappedAddress
from fvp.virtual.devices.console import Console
from fvp.virtual.devices.nvic import ICER, ICPR, IPR, ISER, ISPR, Nvic

ENABLE_WITH_INTERRUPT = systick.ENABLE | systick.TICKINT | systick.CLKSOURCE


def test_uart_sends_and_is_never_busy() -> None:
    console = Console()
    device = uart.CmsdkUart(console)
    for byte in b"hello\r\n":
        assert device.read(uart.STATE, 4) == 0
        device.write(uart.DATA, 4, byte)
    device.write(uart.BAUDDIV, 4, 16)
    assert (console.text, device.read(uart.BAUDDIV, 4), console.ended) == ("hello\n", 16, False)
    device.write(uart.DATA, 1, 0x04)
    device.write(uart.DATA, 1, ord("x"))
    assert console.ended and console.text == "hello\n"


def test_console_echoes_as_it_comes() -> None:
    echo = io.StringIO()
    console = Console(echo)
    console.put("grüße\r\n".encode())
    assert echo.getvalue() == "grüße\n"
    console.put(b"end\x04dropped")
    assert console.text == "grüße\nend" and console.ended


class Ticks:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


def test_systick_counts_down_and_interrupts_at_zero() -> None:
    clock, expired = Clock(), Ticks()
    timer = systick.SysTick(clock, expired)
    timer.write(systick.LOAD, 4, 99)
    timer.write(systick.VAL, 4, 55)
    timer.write(systick.CTRL, 4, ENABLE_WITH_INTERRUPT)
    assert timer.read(systick.VAL, 4) == 0
    clock.advance(1)
    assert timer.read(systick.VAL, 4) == 99, "reloads one cycle after it was cleared"
    clock.advance(98)
    assert (timer.read(systick.VAL, 4), expired.count) == (1, 0)
    clock.advance(1)
    assert (timer.read(systick.VAL, 4), expired.count) == (0, 1)
    assert timer.read(systick.CTRL, 4) & systick.COUNTFLAG
    assert not timer.read(systick.CTRL, 4) & systick.COUNTFLAG, "cleared by reading"


@given(st.integers(1, 500), st.lists(st.integers(1, 1000), max_size=20))
def test_systick_value_does_not_depend_on_how_time_is_cut(load: int, steps: list[int]) -> None:
    values = []
    for advances in (steps, [1] * sum(steps)):
        clock = Clock()
        timer = systick.SysTick(clock, Ticks())
        timer.write(systick.LOAD, 4, load)
        timer.write(systick.CTRL, 4, systick.ENABLE)
        for cycles in advances:
            clock.advance(cycles)
        values.append(timer.read(systick.VAL, 4))
    assert values[0] == values[1]


def test_systick_off_stands_still() -> None:
    clock, expired = Clock(), Ticks()
    timer = systick.SysTick(clock, expired)
    timer.write(systick.LOAD, 4, 9)
    clock.advance(100)
    assert (timer.read(systick.VAL, 4), expired.count) == (0, 0)


def test_nvic_enable_and_pending_registers() -> None:
    nvic = Nvic()
    nvic.write(ISER + 4, 4, 1 << 24)
    nvic.write(ISPR + 4, 4, 1 << 24 | 1 << 3)
    assert nvic.read(ISER + 4, 4) == nvic.read(ICER + 4, 4) == 1 << 24
    assert nvic.read(ISPR + 4, 4) == 1 << 24 | 1 << 3
    assert nvic.next() == 16 + 56
    nvic.write(ICER + 4, 4, 1 << 24)
    assert nvic.next() is None
    nvic.write(ICPR + 4, 4, 1 << 24)
    nvic.write(ISER + 4, 4, 1 << 24)
    assert nvic.next() is None


def test_nvic_level_line_pends_again_after_the_handler() -> None:
    nvic = Nvic()
    nvic.write(ISER, 4, 1 << 16)
    nvic.set_line(16, True)
    assert nvic.next() == 32
    nvic.enter(32)
    assert nvic.next() is None and nvic.active
    nvic.leave()
    assert nvic.next() == 32, "still high"
    nvic.enter(32)
    nvic.set_line(16, False)
    nvic.leave()
    assert nvic.next() is None


def test_nvic_priorities_in_bytes_and_words() -> None:
    nvic = Nvic()
    nvic.write(IPR + 4, 4, 0xFF40_2000)
    assert [nvic.read(IPR + 4 + n, 1) for n in range(4)] == [0, 0x20, 0x40, 0xE0], "three bits implemented"
    nvic.write(ISER, 4, 0xF0)
    nvic.write(ISPR, 4, 0xE0)
    assert nvic.next() == 16 + 5
    nvic.enter(16 + 6)
    assert nvic.next() == 16 + 5, "0x20 preempts 0x40"
    nvic.enter(16 + 5)
    assert nvic.next() is None, "0xE0 waits"


def make_scs() -> tuple[scs.SystemControlSpace, Nvic]:
    nvic = Nvic()
    return scs.SystemControlSpace(0x411F_D230, 0x1100_0000, systick.SysTick(Clock(), Ticks()), nvic), nvic


def test_scs_registers() -> None:
    space, nvic = make_scs()
    assert space.read(scs.CPUID, 4) == 0x411F_D230
    space.write(scs.CPUID, 4, 0)
    assert space.read(scs.CPUID, 4) == 0x411F_D230
    space.write(scs.VTOR, 4, 0x3000_0000)
    assert space.vectors == 0x3000_0000
    space.write(scs.CPACR, 4, 0xF0_0000)
    assert space.read(scs.CPACR + 2, 1) == 0xF0
    space.write(scs.CCR + 2, 1, 3)
    assert space.read(scs.CCR, 4) == 0x3_0000
    space.write(0xF60, 4, 5)
    assert space.read(0xF60, 4) == 0, "cache maintenance is write-only"
    space.write(scs.SHPR1 + 11, 1, 0x60)
    assert nvic.priority(15) == 0x60 and space.read(0xD20, 4) == 0x6000_0000


def test_scs_pends_system_exceptions() -> None:
    space, nvic = make_scs()
    space.write(scs.ICSR, 4, 1 << 26)
    assert nvic.next() == 15
    space.write(scs.ICSR, 4, 1 << 25 | 1 << 28)
    assert nvic.next() == 14
    space.write(scs.ICSR, 4, 1 << 27)
    assert nvic.next() is None


def test_fpgaio_counters_follow_the_clock() -> None:
    clock = Clock()
    device = fpgaio.FpgaIo(clock)
    clock.advance(3 * fpgaio.CLOCK_HZ)
    assert (device.read(fpgaio.CLK1HZ, 4), device.read(fpgaio.CLK100HZ, 4)) == (3, 300)
    assert device.read(fpgaio.COUNTER, 4) == 3 * fpgaio.CLOCK_HZ
    device.write(fpgaio.PRESCALE, 4, 31)
    assert device.read(fpgaio.COUNTER, 4) == 3 * fpgaio.CLOCK_HZ // 32
    device.write(0, 4, 5)
    assert device.read(0, 4) == 5


def test_cycle_counter_counts_only_while_enabled() -> None:
    clock = Clock()
    device = trace.Trace(clock)
    clock.advance(100)
    device.write(trace.CYCCNT, 4, 7)
    assert device.read(trace.CYCCNT, 4) == 7
    device.write(trace.CTRL, 4, trace.CYCCNTENA)
    clock.advance(50)
    assert device.read(trace.CTRL, 4) & trace.CYCCNTENA
    assert device.read(trace.CTRL, 4) & trace.NOCYCCNT  # it moves, but it counts no CPU cycles
    assert device.read(trace.CYCCNT, 4) == 57
    device.write(trace.CYCCNT, 4, 0)
    clock.advance(5)
    device.write(trace.CTRL, 4, 0)
    clock.advance(1000)
    assert device.read(trace.CYCCNT, 4) == 5


def test_timing_adapter_keeps_settings_but_not_its_version() -> None:
    device = timing_adapter.TimingAdapters()
    device.write(0x20C, 4, 64)
    device.write(0x200 + timing_adapter.VERSION, 4, 1)
    assert device.read(0x20C, 4) == 64
    assert device.read(0x200 + timing_adapter.VERSION, 4) == timing_adapter.VERSION_VALUE


def test_bus_routes_to_every_alias_and_says_what_is_missing() -> None:
    bus, device = Bus(), uart.CmsdkUart(Console())
    bus.attach(DeviceSlot("uart", "cmsdk-uart", (0x4000_0000, 0x5000_0000), size=2 * PAGE), device)
    bus.write(0x5000_0010, 4, 7)
    assert bus.read(0x4000_0010, 4) == 7
    assert bus.read(0x4000_1FFC, 4) == 0
    with pytest.raises(UnmappedAddress, match="0x40002000"):
        bus.read(0x4000_2000, 4)


def test_ignored_block() -> None:
    device = Ignore()
    device.write(4, 4, 1)
    assert device.read(4, 4) == 0


@pytest.mark.parametrize("board", BOARDS.values(), ids=lambda board: board.name)
def test_board_table_is_consistent(board) -> None:  # type: ignore[no-untyped-def]
    """Nothing overlaps, everything is page aligned, memories lie below QEMU's 2 GiB limit."""
    ranges = [(memory.base, memory.end) for memory in board.memories]
    assert all(end <= 0x8000_0000 for _, end in ranges)
    ranges += [(base, base + PAGE) for page in board.pages for base in page.bases]
    ranges += [(base, base + slot.size) for slot in board.devices for base in slot.bases]
    ranges.append((board.staging, board.staging + PAGE))
    assert all(start % PAGE == 0 and end % PAGE == 0 for start, end in ranges)
    ordered = sorted(ranges)
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(ordered))
    assert board.guest_address(0x9200_0010) == 0x6200_0010
    assert board.has_memory(board.vectors)
    with pytest.raises(LookupError, match="0xdead0000"):
        board.guest_address(0xDEAD_0000)
