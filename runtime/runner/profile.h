// SPDX-License-Identifier: Apache-2.0
// The ETDump of a run: recorded in CPU cycles, written to a file or to the console.
#pragma once

#include "runtime/core/arena.h"
#include "runtime/core/error.h"
#include "runtime/etdump/etdump.h"

namespace armdeploy {

// A recorder in `arena`; null when the arena has no room for one.
EtDump* start_profile(Arena& arena);

// Writes the dump to a file; without a path, as the base64 block that ExecuTorch's runner prints.
// Errors: MemoryAllocationFailed, AccessFailed, OutOfResources (events were dropped).
Error deliver_profile(const EtDump& dump, Arena& arena, const char* path);

}  // namespace armdeploy
