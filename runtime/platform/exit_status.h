// SPDX-License-Identifier: Apache-2.0
// Exit status of the firmware: armdeploy's exit codes, as far as they concern a device.
#pragma once

#include <cstdint>

#include "runtime/core/error.h"

namespace armdeploy::exit_status {

constexpr uint32_t kOk = 0;
constexpr uint32_t kInternal = 1;     // a fault, or an error of the NPU
constexpr uint32_t kUsage = 2;        // command line, missing or unsuitable files
constexpr uint32_t kDoesNotFit = 4;   // the program cannot run here: damaged, for another NPU, too big
constexpr uint32_t kWrongOutput = 5;  // a bundled program's outputs differ

// The status for an error of the runtime.
uint32_t of(Error error);

}  // namespace armdeploy::exit_status
