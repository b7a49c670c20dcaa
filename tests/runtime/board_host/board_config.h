// SPDX-License-Identifier: Apache-2.0
// Stands in for the generated board_config.h: an NPU whose registers are plain memory.
#pragma once

#include <cstdint>

namespace armdeploy::board {

inline uint32_t npu_registers[0x2000 / 4];

inline const uintptr_t kNpuBase = reinterpret_cast<uintptr_t>(npu_registers);
constexpr uint32_t kNpuIrq = 16;
constexpr uint32_t kClockHz = 32000000;
constexpr uint32_t kQconfig = 3;
constexpr uint32_t kRegioncfg = 0x3DF;

}  // namespace armdeploy::board
