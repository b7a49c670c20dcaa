// SPDX-License-Identifier: Apache-2.0
// Error codes (ExecuTorch's, by number) and the log: each error is explained once, where it is found.
#pragma once

#include <cstddef>
#include <cstdint>

namespace armdeploy {

// The codes of executorch/runtime/core/error.h, 1.5.1. Numbers are part of what users read in logs.
#define ARMDEPLOY_ERRORS(X)                \
  X(Ok, 0x00)                              \
  X(Internal, 0x01)                        \
  X(InvalidState, 0x02)                    \
  X(EndOfMethod, 0x03)                     \
  X(AlreadyLoaded, 0x04)                   \
  X(NotSupported, 0x10)                    \
  X(NotImplemented, 0x11)                  \
  X(InvalidArgument, 0x12)                 \
  X(InvalidType, 0x13)                     \
  X(OperatorMissing, 0x14)                 \
  X(RegistrationExceedingMaxKernels, 0x15) \
  X(RegistrationAlreadyRegistered, 0x16)   \
  X(NotFound, 0x20)                        \
  X(MemoryAllocationFailed, 0x21)          \
  X(AccessFailed, 0x22)                    \
  X(InvalidProgram, 0x23)                  \
  X(InvalidExternalData, 0x24)             \
  X(OutOfResources, 0x25)                  \
  X(DelegateInvalidCompatibility, 0x30)    \
  X(DelegateMemoryAllocationFailed, 0x31)  \
  X(DelegateInvalidHandle, 0x32)

enum class [[nodiscard]] Error : uint32_t{
#define X(name, code) name = code,
    ARMDEPLOY_ERRORS(X)
#undef X
};

// "InvalidProgram"; "unknown error" for a number outside the table. Never null.
const char* error_name(Error error);

enum class Level : uint8_t { Debug, Info, Error };

// Receives one whole line at a time, without a newline. `length` counts no terminator; line[length] is 0.
using LogWriter = void (*)(Level level, const char* line, size_t length);

// Before the first call nothing is logged.
void set_log_writer(LogWriter writer);

// Writes one line; longer than kLogLine characters is cut. See format.h for the conversions.
constexpr size_t kLogLine = 255;
void report(Level level, const char* format, ...) __attribute__((format(printf, 2, 3)));

// Reports at Level::Error and returns `error`: `return fail(Error::InvalidProgram, "…", …);`
Error fail(Error error, const char* format, ...) __attribute__((format(printf, 2, 3)));

}  // namespace armdeploy
