// SPDX-License-Identifier: Apache-2.0
// Stands in for runtime/platform/interrupts.h on the host: no interrupt comes, the driver has to poll.
#pragma once

#include <cstdint>

namespace armdeploy {

inline void enable_interrupt(uint32_t) {}

}  // namespace armdeploy
