// SPDX-License-Identifier: Apache-2.0
// Stands in for runtime/platform/barrier.h on the host, where the fake NPU is memory of the same thread.
#pragma once

namespace armdeploy {

inline void memory_barrier() { asm volatile("" ::: "memory"); }

}  // namespace armdeploy
