// SPDX-License-Identifier: Apache-2.0
// The register block of Ethos-U55, U65 and U85 as data. Names and values are those of npu/registers.py; a
// test compares the two tables.
#pragma once

#include <cstddef>
#include <cstdint>

namespace armdeploy::ethosu {

enum class Family : uint32_t { U55 = 0, U65 = 1, U85 = 2 };  // the product field of CONFIG

namespace reg {
constexpr uint32_t ID = 0x00;
constexpr uint32_t STATUS = 0x04;
constexpr uint32_t CMD = 0x08;
constexpr uint32_t RESET = 0x0C;
constexpr uint32_t QBASE_LO = 0x10;
constexpr uint32_t QBASE_HI = 0x14;
constexpr uint32_t QREAD = 0x18;
constexpr uint32_t QCONFIG = 0x1C;
constexpr uint32_t QSIZE = 0x20;
constexpr uint32_t PROT = 0x24;
constexpr uint32_t CONFIG = 0x28;
constexpr uint32_t POWER_CTRL = 0x38;
constexpr uint32_t REGIONCFG = 0x3C;
constexpr uint32_t BASEP = 0x80;
}  // namespace reg

// Bus limits and memory attributes: which of them exist depends on the family.
constexpr uint32_t kAxiLimit0 = 0x40;  // U55, U65: four, AXI0 counters 0 and 1, AXI1 counters 2 and 3
constexpr uint32_t kMemAttr0 = 0x40;   // U85: four
constexpr uint32_t kAxiSram = 0x50;    // U85
constexpr uint32_t kAxiExt = 0x54;     // U85

namespace status {
constexpr uint32_t RUNNING = 1 << 0;
constexpr uint32_t IRQ_RAISED = 1 << 1;
constexpr uint32_t BUS_ERROR = 1 << 2;
constexpr uint32_t RESET_ACTIVE = 1 << 3;
constexpr uint32_t CMD_PARSE_ERROR = 1 << 4;
constexpr uint32_t CMD_END_REACHED = 1 << 5;
constexpr uint32_t PMU_IRQ_RAISED = 1 << 6;
constexpr uint32_t WD_FAULT = 1 << 7;
constexpr uint32_t ECC_FAULT = 1 << 8;
constexpr uint32_t BRANCH_FAULT = 1 << 9;
}  // namespace status

namespace cmd {
constexpr uint32_t RUN = 1 << 0;
constexpr uint32_t CLEAR_IRQ = 1 << 1;
constexpr uint32_t CLOCK_Q_ENABLE = 1 << 2;
constexpr uint32_t POWER_Q_ENABLE = 1 << 3;
constexpr uint32_t STOP_REQUEST = 1 << 4;
}  // namespace cmd

constexpr size_t kBasePointers = 8;

// Offsets from the PMU's base.
namespace pmu {
constexpr uint32_t PMCR = 0x00;
constexpr uint32_t CNTENSET = 0x04;
constexpr uint32_t CNTENCLR = 0x08;
constexpr uint32_t OVSSET = 0x0C;
constexpr uint32_t OVSCLR = 0x10;
constexpr uint32_t CCNTR_LO = 0x20;
constexpr uint32_t CCNTR_HI = 0x24;
constexpr uint32_t CCNTR_CFG = 0x28;
constexpr uint32_t EVCNTR = 0x180;
constexpr uint32_t EVTYPER = 0x200;
}  // namespace pmu

constexpr uint32_t kPmuBase[] = {0x180, 0x180, 0x1180};  // by Family
constexpr uint32_t kPmuCounters[] = {4, 4, 8};           // by Family
constexpr uint32_t kCycleBit = 1u << 31;

namespace pmcr {
constexpr uint32_t ENABLE = 1 << 0;
constexpr uint32_t EVENT_RESET = 1 << 1;
constexpr uint32_t CYCLE_RESET = 1 << 2;
}  // namespace pmcr

// PMU event numbers.
namespace event {
constexpr uint32_t CYCLE = 17;
constexpr uint32_t NPU_IDLE = 32;
constexpr uint32_t NPU_ACTIVE = 35;
constexpr uint32_t MAC_ACTIVE = 48;
constexpr uint32_t WD_ACTIVE = 80;
constexpr uint32_t PORT0_RD_DATA_BEAT_RECEIVED = 130;  // U55, U65: AXI0; U85: SRAM
constexpr uint32_t PORT0_WR_DATA_BEAT_WRITTEN = 135;
constexpr uint32_t PORT1_RD_DATA_BEAT_RECEIVED = 386;  // U55, U65: AXI1; U85: EXT
constexpr uint32_t PORT1_WR_DATA_BEAT_WRITTEN = 391;
}  // namespace event

}  // namespace armdeploy::ethosu
