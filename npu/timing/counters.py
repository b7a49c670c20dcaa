# SPDX-License-Identifier: Apache-2.0
"""A finished job as PMU events: what the model can tell, by the names in `npu.registers`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from npu.config import Family, NpuConfig
from npu.errors import NotModelled
from npu.program import from_commands
from npu.registers import MEM_ATTR, Reg
from npu.timing.estimate import Timing, estimate
from npu.timing.profile import MemoryMap, TimingProfile, memory_map_from_registers

_MEM_ATTRS = 4


def pmu_events(timing: Timing) -> dict[str, int]:
    """Counts of one job; an event that is missing is one that the model cannot tell.

    NPU_IDLE is among those: it is how long the CPU took to stop the counters. So are the other stalls and the
    latencies: the model has rates of streams, not single transactions. The MAC array's time by width is that
    of the IFM.
    """
    events = {
        "CYCLE": timing.total,
        "NPU_ACTIVE": timing.total,
        "MAC_ACTIVE": timing.mac_cycles,
        "AO_ACTIVE": timing.output_cycles,
        "WD_ACTIVE": timing.decoder_cycles,
    }
    events["CC_STALLED_ON_BLOCKDEP"] = sum(op.dependency_cycles for op in timing.ops)
    if timing.config.family is not Family.U85:
        events["CC_STALLED_ON_SHRAM_RECONFIG"] = timing.reconfiguration_cycles
        for bits in (8, 16, 32):
            events[f"MAC_ACTIVE_{bits}BIT"] = sum(op.mac_cycles for op in timing.ops if op.bits == bits)
    for port, traffic in timing.traffic.items():
        events[f"{port}_RD_DATA_BEAT_RECEIVED"] = traffic.read
        events[f"{port}_WR_DATA_BEAT_WRITTEN"] = traffic.written
    return events


class TimingCounters:
    """Counts jobs for `npu.device.RegisterBlock`; a job like the one before is not estimated again.

    Args:
        profile: called at the start of a job; the firmware may have set the memory timing since the last.

    Attributes:
        timing: of the last job, None if it could not be timed.
    """

    def __init__(self, config: NpuConfig, profile: Callable[[], TimingProfile]):
        self._config, self._profile = config, profile
        self._last: tuple[bytes, TimingProfile, MemoryMap] | None = None
        self.timing: Timing | None = None

    def __call__(self, commands: bytes, registers: Mapping[int, int]) -> dict[str, int]:
        """PMU events of a job; none for a job that cannot be timed.

        Args:
            commands: what QBASE and QSIZE point at.
            registers: values by byte offset of the register block; missing ones are 0.
        """
        memory = memory_map_from_registers(
            self._config,
            registers.get(Reg.REGIONCFG, 0),
            registers.get(Reg.QCONFIG, 0),
            tuple(registers.get(MEM_ATTR + 4 * index, 0) for index in range(_MEM_ATTRS)),
        )
        job = commands, self._profile(), memory
        if self.timing is None or job != self._last:
            self._last, self.timing = job, None
            program = from_commands(commands, self._config.family)
            try:
                self.timing = estimate(program, self._config, job[1], memory)
            except NotModelled:
                return {}
        return pmu_events(self.timing)
