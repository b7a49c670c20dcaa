// SPDX-License-Identifier: Apache-2.0
// Whole files.
#pragma once

#include "runtime/host/buffer.h"

namespace armdeploy::host {

// False when the file cannot be read.
bool read_file(const char* path, Buffer* out);

// False when not all bytes could be written.
bool write_file(const char* path, const void* bytes, size_t size);

}  // namespace armdeploy::host
