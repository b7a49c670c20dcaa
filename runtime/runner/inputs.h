// SPDX-License-Identifier: Apache-2.0
// Where a method's inputs come from.
#pragma once

#include "runtime/core/method.h"
#include "runtime/runner/options.h"

namespace armdeploy {

// Reads every input from its file: tensors straight into their memory, scalars as 8 bytes (a bool as one).
// Errors: InvalidArgument (number of files, size of one), AccessFailed.
Error read_inputs(Method& method, const Options& options);

// Sets every element of every input to one, as ExecuTorch's runner does when nobody gives it inputs.
Error fill_inputs_with_ones(Method& method);

}  // namespace armdeploy
