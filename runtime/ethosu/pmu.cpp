// SPDX-License-Identifier: Apache-2.0
#include "runtime/ethosu/pmu.h"

#include "runtime/ethosu/driver.h"

namespace armdeploy::ethosu::pmu {
namespace {

constexpr Event kEvents5x[] = {
    {event::PORT0_RD_DATA_BEAT_RECEIVED, "AXI0_RD_DATA_BEAT_RECEIVED"},
    {event::PORT1_RD_DATA_BEAT_RECEIVED, "AXI1_RD_DATA_BEAT_RECEIVED"},
    {event::PORT0_WR_DATA_BEAT_WRITTEN, "AXI0_WR_DATA_BEAT_WRITTEN"},
    {event::NPU_IDLE, "NPU_IDLE"},
};
constexpr Event kEvents85[] = {
    {event::PORT0_RD_DATA_BEAT_RECEIVED, "SRAM_RD_DATA_BEAT_RECEIVED"},
    {event::PORT0_WR_DATA_BEAT_WRITTEN, "SRAM_WR_DATA_BEAT_WRITTEN"},
    {event::PORT1_RD_DATA_BEAT_RECEIVED, "EXT_RD_DATA_BEAT_RECEIVED"},
    {event::PORT1_WR_DATA_BEAT_WRITTEN, "EXT_WR_DATA_BEAT_WRITTEN"},
    {event::NPU_IDLE, "NPU_IDLE"},
    {event::MAC_ACTIVE, "MAC_ACTIVE"},
    {event::WD_ACTIVE, "WD_ACTIVE"},
};

uint32_t base;  // of the PMU in the register block

void write(uint32_t offset, uint32_t value) { write_register(base + offset, value); }

uint32_t counter_offset(size_t index) { return static_cast<uint32_t>(4 * index); }

}  // namespace

Span<const Event> events(Family family) {
  if (family == Family::U85) return {kEvents85, sizeof kEvents85 / sizeof *kEvents85};
  return {kEvents5x, sizeof kEvents5x / sizeof *kEvents5x};
}

void configure(Family family) {
  base = kPmuBase[static_cast<size_t>(family)];
  const Span<const Event> selected = events(family);
  for (size_t index = 0; index < selected.size; ++index) {
    write(EVTYPER + counter_offset(index), selected[index].number);
  }
  write(CCNTR_CFG, event::NPU_ACTIVE | event::NPU_IDLE << 16);  // start and stop event
  write(OVSCLR, kCycleBit | 0xFF);
  write(CNTENSET, kCycleBit | ((1u << selected.size) - 1));
  write(PMCR, pmcr::EVENT_RESET | pmcr::CYCLE_RESET);
}

void resume() { write(PMCR, pmcr::ENABLE); }

void pause() { write(PMCR, 0); }

Counts read(Family family) {
  Counts counts{};
  const uint32_t low = read_register(base + CCNTR_LO);
  counts.cycles = low | static_cast<uint64_t>(read_register(base + CCNTR_HI)) << 32;
  counts.overflowed = read_register(base + OVSSET);
  for (size_t index = 0; index < events(family).size; ++index) {
    counts.values[index] = read_register(base + EVCNTR + counter_offset(index));
  }
  return counts;
}

}  // namespace armdeploy::ethosu::pmu
