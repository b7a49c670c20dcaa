// SPDX-License-Identifier: Apache-2.0
// The CPU's cycle counter (DWT CYCCNT). Not every core, and no emulator without timing, has one.
#pragma once

#include <cstdint>

#include "runtime/platform/system_control.h"

namespace armdeploy {

inline void start_cycle_counter() {
#if __ARM_ARCH >= 7
  scs::reg(scs::kDebugMonitorControl) = scs::kTraceEnable;
  scs::reg(scs::kDwtCtrl) = scs::kCycleCountEnable;
#endif
}

// Whether cycle_count() means CPU cycles.
inline bool has_cycle_counter() {
#if __ARM_ARCH >= 7
  return (scs::reg(scs::kDwtCtrl) & scs::kNoCycleCount) == 0;
#else
  return false;
#endif
}

// Cycles since start_cycle_counter(), modulo 2^32.
inline uint32_t cycle_count() {
#if __ARM_ARCH >= 7
  return scs::reg(scs::kDwtCycleCount);
#else
  return 0;
#endif
}

}  // namespace armdeploy
