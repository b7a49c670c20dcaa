// SPDX-License-Identifier: Apache-2.0
// What the runner tells: memory, performance and outputs, in the lines that ExecuTorch's tools parse.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/core/arena.h"
#include "runtime/core/method.h"

namespace armdeploy {

// Use of the memories after loading: program, pools.
struct MemoryUse {
  size_t program_bytes;
  size_t loaded_bytes;  // the whole file; 0 for a program that is in place
  size_t planned_bytes;
  const Arena* file;
  const Arena* method;
  const Arena* temp;
};
void report_memory(const MemoryUse& use);

// CPU cycles of all inferences and the NPU's counters. Before: delegates executed once or more.
void report_performance(uint32_t inferences, uint32_t cpu_cycles);

// "Output[0][0]: 1.000000" for every element.
void report_outputs(const Method& method);

}  // namespace armdeploy
