// SPDX-License-Identifier: Apache-2.0
// Delegates: a backend turns a blob into a handle once, then executes it on values of the method.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/core/arena.h"
#include "runtime/core/error.h"
#include "runtime/core/evalue.h"
#include "runtime/core/event.h"
#include "runtime/core/span.h"

namespace armdeploy {

class Program;

struct CompileSpec {
  const char* key;
  Span<const uint8_t> value;
};

struct BackendContext {
  Arena& method;  // lives as long as the method; allocate here in init only
  Arena& temp;    // released when init or execute returns
  Arena* fast;    // fast scratch (SRAM beside DRAM); null when the board has none. Released like temp
  const Program& program;  // program.named_data("key")
  const char* method_name;
  uint32_t delegate;     // index of the delegate in its method
  uint32_t chain;        // of the call (0 in init)
  uint32_t instruction;  // of the call (0 in init)
  const EventHook* events;
};

struct Backend {
  const char* id;  // "EthosUBackend"
  // `blob` and `specs`' keys and values stay where they are as long as the program (specs' array itself does
  // not outlive init). The blob's content is unchecked: every byte of it is the file's word.
  Error (*init)(BackendContext& context, Span<const uint8_t> blob, Span<const CompileSpec> specs,
                void** handle);
  // `args`: inputs, then outputs, as the .pte lists them. Check number, tags, types and sizes.
  Error (*execute)(BackendContext& context, void* handle, Span<EValue*> args);
};

extern const Backend kBackends[];
extern const size_t kBackendCount;

// Null when no backend has that id.
const Backend* find_backend(const char* id);

}  // namespace armdeploy
