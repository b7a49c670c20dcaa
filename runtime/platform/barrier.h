// SPDX-License-Identifier: Apache-2.0
// Order of memory accesses between the CPU and other bus masters.
#pragma once

namespace armdeploy {

// Everything before is visible to the NPU, and everything it wrote is visible, before anything after.
inline void memory_barrier() { asm volatile("dsb" ::: "memory"); }

}  // namespace armdeploy
