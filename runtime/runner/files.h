// SPDX-License-Identifier: Apache-2.0
// Files of the run, through semihosting.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/core/arena.h"
#include "runtime/core/error.h"
#include "runtime/core/span.h"

namespace armdeploy::files {

// Reads a whole file into `arena`. Errors: AccessFailed, MemoryAllocationFailed.
Error load(const char* path, Arena& arena, Span<const uint8_t>* out);

// Reads a file of exactly `size` bytes. Errors: AccessFailed, InvalidArgument (another size).
Error read_exactly(const char* path, void* data, size_t size);

// Errors: AccessFailed.
Error write(const char* path, const void* data, size_t size);

}  // namespace armdeploy::files
