// SPDX-License-Identifier: Apache-2.0
#include "runtime/core/registry.h"

#include <cstdarg>
#include <cstring>

#include "runtime/core/backend.h"
#include "runtime/core/format.h"

namespace armdeploy {
namespace {

// Whether `full` is name + "." + overload, or name alone when the overload is empty.
bool is_named(const char* full, const char* name, const char* overload) {
  const size_t length = std::strlen(name);
  if (std::strncmp(full, name, length) != 0) return false;
  full += length;
  if (*overload == 0) return *full == 0;
  return *full == '.' && std::strcmp(full + 1, overload) == 0;
}

}  // namespace

const Kernel* find_kernel(const char* name, const char* overload) {
  for (size_t i = 0; i < kKernelCount; ++i) {
    if (is_named(kKernels[i].name, name, overload)) return &kKernels[i];
  }
  return nullptr;
}

const Backend* find_backend(const char* id) {
  for (size_t i = 0; i < kBackendCount; ++i) {
    if (std::strcmp(kBackends[i].id, id) == 0) return &kBackends[i];
  }
  return nullptr;
}

Error KernelContext::fail(Error error, const char* format, ...) {
  char message[kLogLine + 1];
  va_list arguments;
  va_start(arguments, format);
  format_text(message, sizeof message, format, arguments);
  va_end(arguments);
  return armdeploy::fail(error, "%s: %s", op, message);
}

}  // namespace armdeploy
