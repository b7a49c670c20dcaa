// SPDX-License-Identifier: Apache-2.0
// Where a method's outputs go.
#pragma once

#include "runtime/core/method.h"

namespace armdeploy {

// Writes output n to "<base>-n.bin": a tensor's bytes as they lie in memory, a scalar's 8 bytes (a bool's
// one). Errors: AccessFailed, NotSupported (another kind of value).
Error write_outputs(const Method& method, const char* base);

}  // namespace armdeploy
