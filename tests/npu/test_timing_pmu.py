# SPDX-License-Identifier: Apache-2.0
"""PMU registers that count: the register block with the cycle model behind it."""

from __future__ import annotations

import golden
import pytest
from test_device import VICTIMS, Host, start

from npu.config import npu_config
from npu.device import RegisterBlock
from npu.registers import EVENTS, PMU_BASE, Pmcr, Pmu
from npu.timing import timing_profile
from npu.timing.counters import TimingCounters

NPU_IDLE, NPU_ACTIVE, MAC_ACTIVE, PORT0_READ_BEATS = 32, 35, 48, 130
CYCLES = 1 << 31


class Bench:
    """A register block, its host, and the PMU by register."""

    def __init__(self, victim: str):
        case = golden.load(victim)
        config = npu_config(case.npu)
        self.host = Host(case)
        self.counters = TimingCounters(config, lambda: timing_profile("mlek:ta_config_u55_high_end"))
        self.block = RegisterBlock(config, self.host.memory, self.host.fetch, self.counters)
        self.base = PMU_BASE[config.family]
        self.events = EVENTS[config.family]

    def write(self, register: int, value: int) -> None:
        self.block.write32(self.base + register, value)

    def read(self, register: int) -> int:
        return self.block.read32(self.base + register)

    def select(self, *events: int) -> None:
        """Counter n counts events[n], and the cycle counter from NPU_ACTIVE to NPU_IDLE."""
        for counter, event in enumerate(events):
            self.write(Pmu.EVTYPER + 4 * counter, event)
        self.write(Pmu.CCNTR_CFG, NPU_ACTIVE | NPU_IDLE << 16)
        self.write(Pmu.CNTENSET, (1 << len(events)) - 1 | CYCLES)

    def run(self) -> None:
        """Once more, as a driver does between two inferences: without a reset."""
        self.block.write32(0x20, len(self.host.commands))
        self.block.write32(0x08, self.block.read32(0x08) & 0xC | 1)
        assert self.block.fault is None


@pytest.fixture(params=VICTIMS.values(), ids=VICTIMS)
def bench(request: pytest.FixtureRequest) -> Bench:
    result = Bench(request.param)
    start(result.block, len(result.host.commands))
    return result


def test_counts_of_a_job(bench: Bench) -> None:
    bench.select(NPU_ACTIVE, MAC_ACTIVE, PORT0_READ_BEATS, NPU_IDLE)
    bench.write(Pmu.PMCR, Pmcr.ENABLE | Pmcr.EVENT_RESET | Pmcr.CYCLE_RESET)
    bench.run()
    timing = bench.counters.timing
    assert timing is not None and timing.total > 0
    port = next(iter(timing.traffic.values()))
    values = [bench.read(Pmu.EVCNTR + 4 * counter) for counter in range(4)]
    assert values == [timing.total, timing.mac_cycles, port.read, 0]
    assert bench.read(Pmu.CCNTR_LO) == timing.total
    assert bench.read(Pmu.CCNTR_HI) == 0
    assert bench.block.pmu.unavailable == ("NPU_IDLE",)


def test_counts_add_up_and_stop(bench: Bench) -> None:
    bench.select(NPU_ACTIVE)
    bench.write(Pmu.PMCR, Pmcr.ENABLE)
    bench.run()
    once = bench.read(Pmu.EVCNTR)
    bench.run()
    assert bench.read(Pmu.EVCNTR) == 2 * once > 0
    bench.write(Pmu.PMCR, 0)
    bench.run()
    assert bench.read(Pmu.EVCNTR) == 2 * once
    bench.write(Pmu.PMCR, Pmcr.ENABLE)
    bench.write(Pmu.CNTENCLR, 1)
    bench.run()
    assert bench.read(Pmu.EVCNTR) == 2 * once


def test_overflow(bench: Bench) -> None:
    bench.select(NPU_ACTIVE, MAC_ACTIVE)
    bench.write(Pmu.PMCR, Pmcr.ENABLE)
    bench.write(Pmu.EVCNTR, 0xFFFFFFFF)
    bench.write(Pmu.CCNTR_LO, 0xFFFFFFFF)
    bench.write(Pmu.CCNTR_HI, 0xFFFF)
    bench.run()
    assert bench.counters.timing is not None
    total = bench.counters.timing.total
    assert bench.read(Pmu.EVCNTR) == bench.read(Pmu.CCNTR_LO) == total - 1
    assert bench.read(Pmu.CCNTR_HI) == 0
    assert bench.read(Pmu.OVSSET) == 1 | CYCLES
    bench.write(Pmu.OVSCLR, 1)
    assert bench.read(Pmu.OVSSET) == CYCLES


def test_an_unmodelled_event_is_named(bench: Bench) -> None:
    stalled = 53
    bench.select(stalled)
    bench.write(Pmu.PMCR, Pmcr.ENABLE)
    bench.run()
    assert bench.read(Pmu.EVCNTR) == 0
    assert bench.block.pmu.unavailable == (bench.events[stalled],)
