# SPDX-License-Identifier: Apache-2.0
"""The memory-mapped registers (APB) as tables: offsets, bits, PMU registers and events, per family."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType

from npu.config import Family


class Reg(enum.IntEnum):
    """Offsets of the base block, the same on all families unless noted."""

    ID = 0x00
    STATUS = 0x04
    CMD = 0x08
    RESET = 0x0C
    QBASE_LO = 0x10
    QBASE_HI = 0x14
    QREAD = 0x18
    QCONFIG = 0x1C
    QSIZE = 0x20
    PROT = 0x24
    CONFIG = 0x28
    LOCK = 0x2C  # U55, U65
    COND_STATUS = 0x30  # U85
    POWER_CTRL = 0x38  # U85
    REGIONCFG = 0x3C
    BASEP = 0x80  # eight pairs of low and high word


class Status(enum.IntFlag):
    """STATUS bits; the interrupt history is bits 31:16."""

    RUNNING = 1 << 0
    IRQ_RAISED = 1 << 1
    BUS_ERROR = 1 << 2
    RESET_ACTIVE = 1 << 3
    CMD_PARSE_ERROR = 1 << 4
    CMD_END_REACHED = 1 << 5
    PMU_IRQ_RAISED = 1 << 6
    WD_FAULT = 1 << 7
    ECC_FAULT = 1 << 8
    BRANCH_FAULT = 1 << 9


class Cmd(enum.IntFlag):
    """CMD bits; bits 31:16 clear the interrupt history."""

    RUN = 1 << 0
    CLEAR_IRQ = 1 << 1
    CLOCK_Q_ENABLE = 1 << 2
    POWER_Q_ENABLE = 1 << 3
    STOP_REQUEST = 1 << 4


CMD_RESET = Cmd.CLOCK_Q_ENABLE | Cmd.POWER_Q_ENABLE
BASE_POINTERS = 8
MEM_ATTR = 0x40
"""First of the U85's four MEM_ATTR registers; bit 2 of each is the port (0 SRAM, 1 EXT)."""
BLOCK_BYTES: Mapping[Family, int] = MappingProxyType(
    {Family.U55: 0x1000, Family.U65: 0x1000, Family.U85: 0x2000}
)

# Peripheral and component identification (read only).
IDENTIFICATION: Mapping[int, int] = MappingProxyType(
    {0xFD0: 4, 0xFE4: 0xB5, 0xFE8: 0x0B, 0xFF0: 0x0D, 0xFF4: 0xF0, 0xFF8: 0x05, 0xFFC: 0xB1}
)
PID0_OFFSET = 0xFE0
PID0: Mapping[Family, int] = MappingProxyType({Family.U55: 0x80, Family.U65: 0x81, Family.U85: 0x82})


class Pmu(enum.IntEnum):
    """Offsets from the PMU's base."""

    PMCR = 0x00
    CNTENSET = 0x04
    CNTENCLR = 0x08
    OVSSET = 0x0C
    OVSCLR = 0x10
    INTSET = 0x14
    INTCLR = 0x18
    CCNTR_LO = 0x20
    CCNTR_HI = 0x24
    CCNTR_CFG = 0x28
    CAXI_CHAN = 0x2C
    LUT = 0x30  # U85
    EVCNTR = 0x180  # 4 bytes a counter
    EVTYPER = 0x200  # 4 bytes a counter


PMU_BASE: Mapping[Family, int] = MappingProxyType({Family.U55: 0x180, Family.U65: 0x180, Family.U85: 0x1180})
PMU_COUNTERS: Mapping[Family, int] = MappingProxyType({Family.U55: 4, Family.U65: 4, Family.U85: 8})
CYCLE_BIT = 31


class Pmcr(enum.IntFlag):
    """PMCR bits; bits 15:11 give the number of event counters."""

    ENABLE = 1 << 0
    EVENT_RESET = 1 << 1
    CYCLE_RESET = 1 << 2
    MASK_ENABLE = 1 << 3


PMCR_COUNT_SHIFT = 11

_COMMON_EVENTS = {
    0: "NO_EVENT",
    17: "CYCLE",
    32: "NPU_IDLE",
    33: "CC_STALLED_ON_BLOCKDEP",
    34: "CC_STALLED_ON_SHRAM_RECONFIG",
    35: "NPU_ACTIVE",
    48: "MAC_ACTIVE",
    51: "MAC_DPU_ACTIVE",
    52: "MAC_STALLED_BY_W_OR_ACC",
    53: "MAC_STALLED_BY_W",
    54: "MAC_STALLED_BY_ACC",
    55: "MAC_STALLED_BY_IB",
    57: "MAC_STALLED_BY_INT_W",
    58: "MAC_STALLED_BY_INT_ACC",
    64: "AO_ACTIVE",
    67: "AO_STALLED_BY_BS_OR_OB",
    68: "AO_STALLED_BY_BS",
    69: "AO_STALLED_BY_OB",
    70: "AO_STALLED_BY_AB_OR_CB",
    71: "AO_STALLED_BY_AB",
    72: "AO_STALLED_BY_CB",
    80: "WD_ACTIVE",
    81: "WD_STALLED",
    83: "WD_STALLED_BY_WD_BUF",
    176: "ECC_DMA",
}
_PORT_EVENTS = {
    0: "RD_TRANS_ACCEPTED",
    1: "RD_TRANS_COMPLETED",
    2: "RD_DATA_BEAT_RECEIVED",
    3: "RD_TRAN_REQ_STALLED",
    4: "WR_TRANS_ACCEPTED",
    5: "WR_TRANS_COMPLETED_M",
    6: "WR_TRANS_COMPLETED_S",
    7: "WR_DATA_BEAT_WRITTEN",
    8: "WR_TRAN_REQ_STALLED",
    9: "WR_DATA_BEAT_STALLED",
    12: "ENABLED_CYCLES",
    14: "RD_STALL_LIMIT",
    15: "WR_STALL_LIMIT",
}
_LATENCIES = ("ANY", "32", "64", "128", "256", "512", "1024")
_PORTS = {
    Family.U55: {128: "AXI0", 384: "AXI1"},
    Family.U65: {128: "AXI0", 384: "AXI1"},
    Family.U85: {128: "SRAM", 384: "EXT"},
}
_EVENTS_5X = {
    49: "MAC_ACTIVE_8BIT",
    50: "MAC_ACTIVE_16BIT",
    56: "MAC_ACTIVE_32BIT",
    65: "AO_ACTIVE_8BIT",
    66: "AO_ACTIVE_16BIT",
    82: "WD_STALLED_BY_WS",
    84: "WD_PARSE_ACTIVE",
    85: "WD_PARSE_STALLED",
    86: "WD_PARSE_STALLED_IN",
    87: "WD_PARSE_STALLED_OUT",
    88: "WD_TRANS_WS",
    89: "WD_TRANS_WB",
    90: "WD_TRANS_DW0",
    91: "WD_TRANS_DW1",
    177: "ECC_SB0",
    433: "ECC_SB1",
}
_EVENTS_85 = {
    84: "WD_STALLED_BY_FC_STREAM",
    85: "WD_STALLED_BY_TC_STREAM",
    89: "WD_TRANS_WBLK",
    90: "WD_TRANS_WS_FC",
    91: "WD_TRANS_WS_TC",
}


def _events(family: Family) -> Mapping[int, str]:
    names = dict(_COMMON_EVENTS)
    names.update(_EVENTS_85 if family is Family.U85 else _EVENTS_5X)
    names.update({160 + index: f"AXI_LATENCY_{name}" for index, name in enumerate(_LATENCIES)})
    for base, port in _PORTS[family].items():
        names.update({base + event: f"{port}_{name}" for event, name in _PORT_EVENTS.items()})
    return MappingProxyType(names)


EVENTS: Mapping[Family, Mapping[int, str]] = MappingProxyType({family: _events(family) for family in Family})
"""PMU event numbers and names; the U85's per-stream weight decoder events (96-123) are not named."""
