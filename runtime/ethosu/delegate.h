// SPDX-License-Identifier: Apache-2.0
// The delegate that ExecuTorch's Ethos-U partitions call: "EthosUBackend".
#pragma once

#include "runtime/core/backend.h"

namespace armdeploy::ethosu {

// Reads a VelaBin, finds the NPU at the first call, refuses streams for another one.
Error init_delegate(BackendContext& context, Span<const uint8_t> blob, Span<const CompileSpec> specs,
                    void** handle);

// Runs the stream: inputs are copied to scratch and outputs from it, weights are read where they are.
Error execute_delegate(BackendContext& context, void* handle, Span<EValue*> args);

}  // namespace armdeploy::ethosu
