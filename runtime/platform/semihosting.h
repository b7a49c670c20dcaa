// SPDX-License-Identifier: Apache-2.0
// Arm semihosting: files, console and exit through the debugger, the FVP or the virtual platform.
// Source: Arm, "Semihosting for AArch32 and AArch64" (ARM IHI 0070), operation numbers and argument blocks.
#pragma once

#include <cstddef>
#include <cstdint>

namespace armdeploy::semihosting {

enum class Mode : uint32_t { ReadBinary = 1, WriteBinary = 5 };

// Opens a file; a negative value is a failure.
int32_t open(const char* path, Mode mode);
void close(int32_t handle);

// Length of an open file in bytes; negative when it has none.
int32_t length(int32_t handle);

// Reads exactly `size` bytes; false when the file is shorter or the host fails.
bool read(int32_t handle, void* data, size_t size);

// Writes exactly `size` bytes; false when the host wrote fewer.
bool write(int32_t handle, const void* data, size_t size);

// Writes a zero-terminated text to the host's console in one call.
void print(const char* text);

// Copies the command line, zero-terminated; false when there is none or it is longer than `size` - 1 bytes.
bool command_line(char* text, size_t size);

// Ends the run with an exit status.
[[noreturn]] void exit(uint32_t status);

}  // namespace armdeploy::semihosting
