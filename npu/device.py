# SPDX-License-Identifier: Apache-2.0
"""The NPU as a driver sees it: a memory-mapped register block with interrupt and PMU.

A job runs to its end inside the store to CMD; the driver then finds the interrupt pending. Registers without
behaviour of their own (AXI limits, memory attributes, power control, debug) hold what is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from npu.config import Family, NpuConfig
from npu.errors import BusError, NpuError
from npu.machine import Npu, RunResult
from npu.memory import Memory
from npu.registers import (
    BASE_POINTERS,
    BLOCK_BYTES,
    CMD_RESET,
    CYCLE_BIT,
    EVENTS,
    IDENTIFICATION,
    PID0,
    PID0_OFFSET,
    PMCR_COUNT_SHIFT,
    PMU_BASE,
    PMU_COUNTERS,
    Cmd,
    Pmcr,
    Pmu,
    Reg,
    Status,
)

MemoryFactory = Callable[[tuple[int, ...]], Memory]
Fetch = Callable[[int, int], bytes]
CountEvents = Callable[[bytes, Mapping[int, int]], Mapping[str, int]]
"""PMU events of a job by name, from its commands and the registers that are set, by byte offset."""


class RegisterBlock:
    """Registers of one NPU.

    Attributes:
        irq: level of the interrupt output.
        result: record of the last job, None if it failed or none ran.
        fault: why the last job failed, None if it did not; STATUS carries the error bit.
    """

    def __init__(
        self,
        config: NpuConfig,
        memory_factory: MemoryFactory,
        fetch: Fetch,
        count_events: CountEvents | None = None,
    ):
        """
        Args:
            memory_factory: called at the start of a job with the eight BASEP values; returns the job's
                memory.
            fetch: reads the command stream: (address, bytes) to data; raises BusError where nothing is
                mapped.
            count_events: tells what a job adds to the performance counters, as `npu.timing` does; without it
                nothing counts.
        """
        self.config = config
        self.size = BLOCK_BYTES[config.family]
        self._npu = Npu(config)
        self._memory_factory = memory_factory
        self._fetch = fetch
        self._count_events = count_events
        self._protection = 0
        self._reset()

    def _reset(self) -> None:
        self._plain: dict[int, int] = {}
        self._status = Status(0)
        self._irq_history = 0
        self._cmd = CMD_RESET
        self.pmu = PmuBlock(self.config.family)
        self.result: RunResult | None = None
        self.fault: NpuError | None = None

    @property
    def irq(self) -> bool:
        return bool(self._status & Status.IRQ_RAISED)

    def read32(self, offset: int) -> int:
        """Value of the register at a byte offset.

        Raises:
            ValueError: not a word of the block.
        """
        self._check(offset)
        if offset == Reg.STATUS:
            return int(self._status) | self._irq_history << 16
        fixed = {
            Reg.ID: self.config.id_word,
            Reg.CONFIG: self.config.config_word,
            Reg.CMD: int(self._cmd),
            Reg.PROT: self._protection,
            Reg.RESET: 0,
            PID0_OFFSET: PID0[self.config.family],
            **IDENTIFICATION,
        }
        if offset in fixed:
            return fixed[offset]
        if self.pmu.holds(offset):
            return self.pmu.read(offset)
        return self._plain.get(offset, 0)

    def write32(self, offset: int, value: int) -> None:
        """Store to the register at a byte offset; a RUN bit in CMD runs the job.

        Raises:
            ValueError: not a word of the block. A failing job raises nothing: see `fault`.
        """
        self._check(offset)
        value &= 0xFFFFFFFF
        if offset == Reg.CMD:
            self._command(value)
        elif offset == Reg.RESET:
            self._reset()
            self._protection = value & 3
        elif self.pmu.holds(offset):
            self.pmu.write(offset, value)
        else:
            self._plain[offset] = value

    def _check(self, offset: int) -> None:
        if offset % 4 or not 0 <= offset < self.size:
            raise ValueError(f"no register at {offset:#x} of {self.config.name}")

    def _command(self, value: int) -> None:
        if value & Cmd.CLEAR_IRQ:
            self._status &= ~Status.IRQ_RAISED
        self._irq_history &= ~(value >> 16)
        self._cmd = Cmd(value) & CMD_RESET
        if value & Cmd.RUN:
            self._run()

    def _pair(self, offset: int) -> int:
        return self._plain.get(offset, 0) | self._plain.get(offset + 4, 0) << 32

    def _run(self) -> None:
        """Run the job at QBASE; errors become status bits and the job's `fault`."""
        self.result = self.fault = None
        errors = Status.BUS_ERROR | Status.CMD_PARSE_ERROR | Status.BRANCH_FAULT | Status.CMD_END_REACHED
        self._status &= ~errors
        size = self._plain.get(Reg.QSIZE, 0)
        try:
            commands = self._fetch(self._pair(Reg.QBASE_LO), size)
            memory = self._memory_factory(tuple(self._pair(Reg.BASEP + 8 * n) for n in range(BASE_POINTERS)))
            self.result = self._npu.run_commands(commands, memory)
            if self._count_events is not None:
                self.pmu.count(self._count_events(commands, self._plain))
        except NpuError as error:
            self.fault = error
            self._status |= _error_bit(error, self.config.family)
        else:
            self._status |= Status.CMD_END_REACHED
            self._irq_history |= self.result.irq_mask
        self._plain[Reg.QREAD] = size
        self._status |= Status.IRQ_RAISED


def _error_bit(error: NpuError, family: Family) -> Status:
    if isinstance(error, BusError):
        return Status.BUS_ERROR
    if family is Family.U85 and error.opcode == "OP_BRANCH":
        return Status.BRANCH_FAULT
    return Status.CMD_PARSE_ERROR


class PmuBlock:
    """Performance counters: enables, event selection and counts.

    Jobs add to the counters that are enabled when they end. An event that no job told a count of leaves its
    counter as it is, and `unavailable` names it.
    """

    def __init__(self, family: Family):
        self._base = PMU_BASE[family]
        self._count = PMU_COUNTERS[family]
        self._events = EVENTS[family]
        self._plain: dict[int, int] = {}
        self._control = Pmcr(0)
        self._sets: dict[int, int] = dict.fromkeys((Pmu.CNTENSET, Pmu.OVSSET, Pmu.INTSET), 0)
        self._known: set[str] = set()

    def holds(self, offset: int) -> bool:
        """The offset (from the start of the register block) belongs to the PMU."""
        return 0 <= offset - self._base < Pmu.EVTYPER + 4 * self._count

    def read(self, offset: int) -> int:
        """Value of a PMU register."""
        register = offset - self._base
        if register == Pmu.PMCR:
            return int(self._control) | self._count << PMCR_COUNT_SHIFT
        return self._sets.get(_SET_OF.get(register, register), self._plain.get(register, 0))

    def write(self, offset: int, value: int) -> None:
        """Store to a PMU register."""
        register = offset - self._base
        valid = (1 << self._count) - 1 | 1 << CYCLE_BIT
        if register == Pmu.PMCR:
            self._write_control(Pmcr(value & 0xF))
        elif register in self._sets:
            self._sets[register] |= value & valid
        elif register in _SET_OF:
            self._sets[_SET_OF[register]] &= ~value
        else:
            self._plain[register] = value

    def _write_control(self, value: Pmcr) -> None:
        if value & Pmcr.EVENT_RESET:
            for counter in range(self._count):
                self._plain.pop(Pmu.EVCNTR + 4 * counter, None)
        if value & Pmcr.CYCLE_RESET:
            self._plain.pop(Pmu.CCNTR_LO, None)
            self._plain.pop(Pmu.CCNTR_HI, None)
        self._control = value & (Pmcr.ENABLE | Pmcr.MASK_ENABLE)

    def count(self, events: Mapping[str, int]) -> None:
        """Add a job's events, by name, to the enabled counters."""
        self._known.update(events)
        if not self._control & Pmcr.ENABLE:
            return
        for counter in range(self._count):
            if self._enabled(counter):
                self._add(counter, events.get(self._event(counter), 0))
        if self._enabled(CYCLE_BIT):
            self._add_cycles(events.get(self._cycle_event(), 0))

    def _enabled(self, bit: int) -> bool:
        return bool(self._sets[Pmu.CNTENSET] >> bit & 1)

    def _event(self, counter: int) -> str:
        return self._name(self._plain.get(Pmu.EVTYPER + 4 * counter, 0))

    def _name(self, number: int) -> str:
        return self._events.get(number, f"event {number}")

    def _cycle_event(self) -> str:
        """What the cycle counter counts: all cycles, or those from a start event to a stop event."""
        start = self._plain.get(Pmu.CCNTR_CFG, 0) & 0x3FF
        return self._name(start) if start else "CYCLE"

    def _add(self, counter: int, amount: int) -> None:
        register = Pmu.EVCNTR + 4 * counter
        total = self._plain.get(register, 0) + amount
        self._plain[register] = total & 0xFFFFFFFF
        if total >> 32:
            self._sets[Pmu.OVSSET] |= 1 << counter

    def _add_cycles(self, amount: int) -> None:
        total = (self._plain.get(Pmu.CCNTR_LO, 0) | self._plain.get(Pmu.CCNTR_HI, 0) << 32) + amount
        self._plain[Pmu.CCNTR_LO] = total & 0xFFFFFFFF
        self._plain[Pmu.CCNTR_HI] = total >> 32 & 0xFFFF
        if total >> 48:
            self._sets[Pmu.OVSSET] |= 1 << CYCLE_BIT

    @property
    def unavailable(self) -> tuple[str, ...]:
        """Names of the enabled counters' events of which no job told a count."""
        names = [self._event(counter) for counter in range(self._count) if self._enabled(counter)]
        if self._enabled(CYCLE_BIT):
            names.insert(0, self._cycle_event())
        return tuple(name for name in names if name != _NO_EVENT and name not in self._known)


_NO_EVENT = "NO_EVENT"
_SET_OF: dict[int, int] = {Pmu.CNTENCLR: Pmu.CNTENSET, Pmu.OVSCLR: Pmu.OVSSET, Pmu.INTCLR: Pmu.INTSET}
