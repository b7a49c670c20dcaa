// SPDX-License-Identifier: Apache-2.0
// External interrupts: who serves them and how they are let through.
#pragma once

#include <cstdint>

#include "runtime/platform/system_control.h"

namespace armdeploy {

// The NPU's interrupt, in the vector table of every board; defined by the driver.
extern "C" void npu_interrupt();

inline void enable_interrupt(uint32_t number) {
  scs::reg(scs::kNvicEnable + number / 32 * 4) = 1u << number % 32;
}

}  // namespace armdeploy
