// SPDX-License-Identifier: Apache-2.0
// The NPU's performance counters, with the events that ExecuTorch's performance monitor selects.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/core/span.h"
#include "runtime/ethosu/registers.h"

namespace armdeploy::ethosu::pmu {

struct Event {
  uint32_t number;
  const char* name;  // the driver's name of it, without "ETHOSU_PMU_"
};

// The events of a family's counters, counter 0 first.
Span<const Event> events(Family family);

// Selects the events, clears all counters, leaves them paused.
void configure(Family family);

// Counters run between resume and pause: while a job runs.
void resume();
void pause();

struct Counts {
  uint64_t cycles;      // while the NPU was active
  uint32_t values[8];   // of events()
  uint32_t overflowed;  // bit n: counter n; bit 31: cycles
};
Counts read(Family family);

}  // namespace armdeploy::ethosu::pmu
